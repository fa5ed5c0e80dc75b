// Everything about one layer, what it could be, and what to try.
import { html, nothing, STILL } from "#template";
import { widget } from "#view";
import { backendName } from "../_shared/colour.js";
import { bytes, fixed, ms, percent, shape, short, signed, THIN, wholePercent } from "../_shared/format.js";
import { button, choice, dot, link, prose } from "../_shared/parts.js";
import { ICONS } from "../_shared/icons.js";
import { roofPart } from "../_shared/encode.js";
import { tr, trn } from "../_shared/words.js";

const row = (name, value) =>
  value
    ? html`<dt>${name}</dt>
        <dd>${value}</dd>`
    : nothing;

function rate(layer, roof) {
  if (!(layer.gflops > 0)) return "";
  const part = 100 * roofPart(layer, roof);
  const told =
    part > 110 ? tr(", above the measured peak") : tr(", {share} of the roofline", { share: wholePercent(part / 100) });
  return html`${fixed(layer.gflops, layer.gflops < 1 ? 3 : 1)} GFLOP/s${part ? told : ""}`;
}

const shapes = (list) => (list || []).map(shape).join(", ");

function copyFacts(c, l) {
  const share = (100 * l.median_ms) / c.get("total_ms");
  const info = l.copy || {};
  return html`<div>
      <div class="row"><b>${l.name}</b><span class="mu">${bytes(info.bytes)}</span></div>
      <dl class="kv">
        ${row(tr("From → to"), `${backendName(info.source)} → ${backendName(info.target)}`)}
        ${row(tr("Why"), info.why || l.why)}
      </dl>
    </div>
    <dl class="kv">
      ${row(tr("Time"), html`<b>${ms(l.median_ms)}${THIN}ms</b>, ${percent(share)}`)}
      ${row(tr("Fix"), info.fix && html`<code>${info.fix}</code>`)}
    </dl>`;
}

function adviceLine({ text, button: word, code }) {
  const again = word ? link("advice", word, { code: code || "" }) : nothing;
  return html`<div class="advice">${ICONS.info}<span>${prose(text)} ${again}</span></div>`;
}

const nth = ({ op, index }, count) =>
  count
    ? tr("{op}, layer {number} of {count}", { op, number: index + 1, count })
    : tr("{op}, layer {number}", { op, number: index + 1 });

function layerFacts(c, l) {
  const emulated = c.get("emulated"), // then times, and what follows from them, mean nothing
    value = emulated ? (l.instructions || 0) / 1e6 : l.median_ms,
    unit = emulated ? tr("M instr.") : "ms";
  const spread = !emulated && l.ci_ms ? ` ± ${short(l.ci_ms)}` : "";
  const others = c
    .get("others")
    .map(
      (o) =>
        html`<span class="row" style="display:inline-flex;gap:4px;margin-right:12px"
          >${dot(o.backend, c.dark)} ${backendName(o.backend)} ${ms(o.median_ms)}${THIN}ms</span
        >`,
    );
  const advice = c.get("advice");
  const whole = emulated ? c.get("instructions") / 1e6 : c.get("total_ms");
  const part = (emulated ? null : l.share) ?? (whole > 0 ? value / whole : null);
  const share = part === null ? "" : `, ${percent(100 * part)}`;
  return html`<div>
      <div class="row">
        <b>${l.name}</b
        ><span class="mu"
          >${nth(l, c.get("count"))}</span
        >
      </div>
      <dl class="kv">
        ${row(
          tr("Kernel"),
          html`<code>${l.kernel || "–"}</code> <span class="mu">${l.why || ""}</span>`,
        )}${row(tr("Shapes"), `${shapes(l.input_shapes)} → ${shapes(l.output_shapes)}`)}${row(
          tr("From"),
          l.sources && l.sources.length ? html`<code>${l.sources.join(" + ")}</code>` : "",
        )}
      </dl>
    </div>
    <div>
      <dl class="kv">
        ${row(emulated ? tr("Instructions") : tr("Time"), html`<b>${ms(value)}${THIN}${unit}</b>${spread}${share}`)}
        ${row(tr("Rate"), emulated ? "" : rate(l, c.get("roof")))} ${row(tr("Other backends"), others.length ? others : "")}
      </dl>
      ${advice ? adviceLine(advice) : nothing}
    </div>`;
}

const PARTS = ["backend", "precision"];

function overrides(c) {
  if (STILL || (!c.get("backends").length && !c.get("precisions").length)) return nothing;
  const labeled = (name, label, options, word = (o) => o) =>
    options.length
      ? html`<label class="lbl"
          ><span>${label}</span
          >${choice(name, [["", tr("as planned")], ...options.map((o) => [o, word(o)])], c.get(name))}</label
        >`
      : nothing;
  const also = c.get("also").length;
  const m = c.get("measured"),
    delta = m ? m.after_ms - m.before_ms : 0;
  return html`<div class="ovr">
    ${also ? html`<small
          >${trn("For this and {n} other selected layer:", "For this and {n} other selected layers:", also)}</small
        >` : nothing}
    ${labeled("override_backend", tr("Backend"), c.get("backends"), backendName)}
    ${labeled("override_precision", tr("Precision"), c.get("precisions"))}${button(
      "measure",
      tr("Measure the change"),
      {
        kind: "sm",
        disabled: PARTS.every((n) => c.get(`override_${n}`) === (c.get("current")[n] || "")),
        why: tr("Choose another backend or precision first."),
      },
    )}${
      m
        ? html`<small role="status" class="${delta > 0 ? "bad" : ""}"
            >${ms(m.before_ms)} → ${ms(m.after_ms)}${THIN}ms
            (${signed(delta)})${m.text ? ` · ${m.text}` : ""}</small
          >`
        : nothing
    }
  </div>`;
}

export default widget({
  name: "inspector",
  empty: {
    title: tr("Pick a layer"),
    text: tr("Click a bar, a row or a node to see its kernel and what could be changed."),
  },
  ready: (c) => Boolean(c.get("layer")),
  view(c) {
    const l = c.get("layer");
    return html`<div class="card insp">
      ${l.copy || l.op === "Copy" ? copyFacts(c, l) : layerFacts(c, l)}
      ${l.copy ? nothing : overrides(c)}
    </div>`;
  },
  watch: [
    "layer",
    "count",
    "total_ms",
    "roof",
    "others",
    "advice",
    "backends",
    "precisions",
    "override_backend",
    "override_precision",
    "current",
    "also",
    "measured",
    "emulated",
  ],
  click(c, event) {
    if (event.target.closest("[data-action=measure]")) {
      c.act("measure", {
        layers: [c.get("layer").name, ...c.get("also")],
        backend: c.get("override_backend"),
        precision: c.get("override_precision"),
      });
      return true;
    }
    return false;
  },
});
