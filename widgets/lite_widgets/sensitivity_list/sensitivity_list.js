// Which layers mind being int8: worst first.
import { html, nothing } from "#template";
import { widget } from "#view";
import { distinct, fixed } from "../_shared/format.js";
import { key, keyed, square } from "../_shared/parts.js";
import { tr, trn } from "../_shared/words.js";

/** {shown, more, rest}: the worst ones, how many are left and the most that one of those costs. */
export function worst(layers, most) {
  const sorted = [...layers].sort((a, b) => (b.cost ?? 0) - (a.cost ?? 0));
  return {
    shown: sorted.slice(0, most),
    more: Math.max(0, sorted.length - most),
    rest: sorted[most]?.cost ?? 0,
  };
}

const layerRow = (l, text, kept, max) =>
  html`<button type="button" tabindex="-1" data-k="${l.name}">
    <span class="cut">${text}</span
    ><i
      class="ib ${kept ? "kept" : ""}"
      style="width:${Math.max((100 * (l.cost ?? 0)) / max, 0.6).toFixed(1)}%"
    ></i
    ><span class="num">${fixed(l.cost, 2)}</span>
  </button>`;

export default widget({
  name: "sensitivity",
  empty: {
    title: tr("Sensitivity is not measured yet"),
    text: tr("The loss of accuracy when only one layer runs in int8."),
  },
  ready: (c) => c.get("layers").length > 0,
  view(c) {
    const { shown, more, rest } = worst(c.get("layers"), c.get("most")),
      kept = new Set(c.get("kept")),
      named = distinct(c.get("layers").map((l) => l.name)),
      max = Math.max(shown[0].cost, 1e-9);
    const others = trn(
      "{n} more layer costs at most {cost}.",
      "{n} more layers cost at most {cost} each.",
      more,
      { cost: `${fixed(rest, 2)} ${c.get("unit")}` },
    );
    return html`<div class="card">
      <div class="ch">
        <h3>${tr("Which layers lose accuracy?")}</h3>
        <span class="mu">${c.get("note")}</span><span class="sp"></span
        ><span class="lg"
          >${key(square("var(--accent)"), tr("kept in float"))}${key(
            square("var(--ink2)"),
            "int8",
          )}</span
        >
      </div>
      <div class="cb list" ${keyed(tr("Layers by cost. Arrow keys select."))}>
        ${shown.map((l) => layerRow(l, named(l.name), kept.has(l.name), max))}
      </div>
      ${more ? html`<div class="cb mu others">${others}</div>` : nothing}
    </div>`;
  },
  watch: ["layers", "kept", "most"],
  order: (c) => worst(c.get("layers"), c.get("most")).shown.map((l) => l.name),
  tip: (c, name) => (name.includes("/") || name.length > 34 ? name : ""),
  say(c, name) {
    const l = c.get("layers").find((x) => x.name === name);
    return l
      ? tr("{name}, costs {cost}", { name, cost: `${fixed(l.cost, 2)} ${c.get("unit")}` }) +
          (c.get("kept").includes(name) ? tr(", kept in float") : "")
      : name;
  },
});
