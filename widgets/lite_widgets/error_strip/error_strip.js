// The verdict, and the error per layer on a log axis, with a tolerance to drag.
import { html, live, nothing, STILL } from "#template";
import { widget } from "#view";
import { log } from "../_shared/scale.js";
import { isUsual, marks, ownTolerances, usualOf } from "../_shared/line.js";
import { error } from "../_shared/format.js";
import { button, key, keyed, notice, tick } from "../_shared/parts.js";
import { extent, logRange, stripSvg } from "./strip.js";
import { tr } from "../_shared/words.js";

/** {comparison, now}: the layers that the line marks now. */
function state(c) {
  const inputs = ["comparison", "tolerance", "op_tolerances", "metric"].map((n) => c.get(n));
  return c.memo("state", inputs, () => {
    const [comparison, tolerance, byOp, metric] = inputs;
    return { comparison, now: marks(comparison, tolerance, { byOp, metric }) };
  });
}

/** What was found: in the Workbench's words, or in the engine's. */
export const verdict = (comparison) =>
  comparison.notice ?? {
    kind: comparison.agrees ? "done" : "error",
    what: comparison.verdict,
    layer: comparison.first_divergence?.name,
  };

function setTolerance(c, value, soft = true) {
  const [low, high] = logRange(state(c).now.layers);
  const tolerance = +Math.min(10 ** high, Math.max(10 ** low, value)).toPrecision(2);
  c.set({ tolerance, ...band(c, tolerance) }, { soft });
}

/** The stepped band belongs to the line: it moves along. */
const band = (c, tolerance) =>
  c.get("by_operator") ? { op_tolerances: ownTolerances(c.get("comparison"), tolerance) } : {};

const usual = (c) => usualOf(c.get("comparison"));

const actions = (c, { layer, actions: own = [] }) =>
  layer && !(c.selected.length === 1 && c.selected[0] === layer)
    ? [["show", tr("Show it")], ...own]
    : own;

const legend = (a) =>
  html`<span class="lg"
    >${key(
      html`<svg width="14" height="12">
        <path d="M7 12V5" stroke="var(--ink2)" stroke-width="1.5" />
        <circle cx="7" cy="4" r="2.5" fill="var(--ink2)" />
      </svg>`,
      tr("isolated: on the input of {a}", { a }),
    )}${key(
      html`<svg width="20" height="12">
        <path d="M0 6h20" stroke="var(--ink2)" />
        <circle cx="10" cy="6" r="2.8" fill="var(--bg)" stroke="var(--ink2)" />
      </svg>`,
      tr("accumulated: on its own input"),
    )}${key(
      html`<svg width="12" height="12"><path d="M6 0l6 6-6 6-6-6z" fill="var(--bad)" /></svg>`,
      tr("fails on its own"),
    )}</span
  >`;

const BY_OPERATOR =
  tr("A convolution rounds more than an addition, so each operator has its own tolerance.");

function controls(c, now) {
  const [low, high] = logRange(now.layers),
    tolerance = c.get("tolerance");
  const own = c.get("comparison").layers.some((row) => row.tolerance > 0);
  return html`${
      own
        ? html`<label class="lbl" data-tip=${BY_OPERATOR}
            >${tick("data-set", "by_operator", c.get("by_operator"))}${tr("per operator")}</label
          >`
        : nothing
    }<label class="lbl"
      >${tr("Tolerance")}
      <input
        type="range"
        step="0.05"
        data-range="tolerance"
        style="width:120px"
        min=${Math.ceil(low)}
        max=${high}
        .value=${live(String(Math.log10(tolerance)))}
        aria-valuetext=${error(tolerance)}
      /><b class="ink" style="min-width:48px">${error(tolerance)}</b></label
    >${button("usual", tr("Use {tolerance}", { tolerance: error(usual(c)) }), {
      kind: "sm",
      disabled: isUsual(tolerance, usual(c)),
      why: tr("This is already the tolerance."),
    })}`;
}

export default widget({
  name: "errors",
  empty: {
    title: tr("Nothing compared yet"),
    text:
      tr("Every layer of two backends, precisions or files on the same input. The graph is not changed and fusions are kept."),
  },
  ready: (c) => Boolean(c.get("comparison") && c.get("comparison").layers.length),
  view(c) {
    const { comparison, now } = state(c);
    const said = verdict(comparison);
    return html`<div class="verdict">
        ${notice({ ...said, actions: actions(c, said) })}
      </div>
      <div class="card">
        <div class="ch">
          <h3>${tr("Error per layer")}</h3>
          ${legend(comparison.baseline)}<span class="sp"></span>${STILL ? nothing : html`<span class="row">${controls(c, now)}</span>`}
        </div>
        <div class="cb tight">
          <div
            data-part="strip"
            ${keyed(tr("Error per layer. Left and right arrow keys select a layer."), "drag")}
          >
            ${c.fitted((width) =>
              width < 120
                ? nothing
                : stripSvg(now, {
                    width,
                    height: c.get("height"),
                    tolerance: c.get("tolerance"),
                    metric: c.get("metric"),
                    paint: c.paint,
                  }),
            )}
          </div>
        </div>
      </div>`;
  },
  watch: [
    "comparison",
    "metric",
    "tolerance",
    "op_tolerances",
    "height",
    "by_operator",
    "selected",
  ],
  order: (c) => c.get("comparison").layers.map((l) => l.name),
  say(c, name) {
    const l = state(c).now.layers.find((x) => x.name === name);
    return l ? tr("{name}, isolated {own}, accumulated {whole}", {
          name,
          own: error(l.iso),
          whole: error(l.acc),
        }) : name;
  },
  tip(c, name) {
    const l = state(c).now.layers.find((x) => x.name === name);
    return (
      l &&
      `${name}\n` +
        tr("isolated {own} · accumulated {whole}", { own: error(l.iso), whole: error(l.acc) }) +
        (l.nan ? `\n${tr("{count} values are not numbers", { count: l.nan })}` : "") +
        `\n${tr("tolerance {tolerance}", { tolerance: error(l.tol) })}`
    );
  },
  set(c, name, value) {
    c.set({ [name]: value });
    if (name === "by_operator") {
      c.set({ op_tolerances: {} });
      setTolerance(c, c.get("tolerance"), false);
    }
  },
  input: (c, name, value) => setTolerance(c, 10 ** +value),
  drag(c, name, event) {
    const box = c.root.querySelector("[data-part=strip] svg").getBoundingClientRect(),
      { now } = state(c);
    const [low, high] = logRange(now.layers);
    const inverse = log(
      [10 ** low, 10 ** high],
      extent(c.get("height"), now),
    ).invert;
    setTolerance(c, inverse(((event.clientY - box.top) * c.get("height")) / box.height));
  },
  key(c, event) {
    if (!event.target.closest("[data-drag]")) return false;
    const up = {
      ArrowUp: 0.1,
      ArrowRight: 0.1,
      ArrowDown: -0.1,
      ArrowLeft: -0.1,
      PageUp: 0.5,
      PageDown: -0.5,
    }[event.key];
    if (up) setTolerance(c, c.get("tolerance") * 10 ** up, false);
    return Boolean(up);
  },
  click(c, event) {
    const id = event.target.closest("[data-action]")?.dataset.action;
    const { layer } = verdict(c.get("comparison"));
    if (id === "show") c.select([layer]);
    else if (id === "usual") c.set({ tolerance: usual(c), ...band(c, usual(c)) });
    else if (id) c.act(id, { layer });
    return Boolean(id);
  },
});
