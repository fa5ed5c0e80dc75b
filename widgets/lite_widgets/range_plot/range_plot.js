// One layer's values, where clipping cuts them off, and the range of its weights per channel.
import { html, nothing, svg } from "#template";
import { widget } from "#view";
import { histogramSvg } from "../_shared/histogram.js";
import { linear } from "../_shared/scale.js";
import { fixed, percent } from "../_shared/format.js";
import { chip } from "../_shared/parts.js";
import { tr } from "../_shared/words.js";

const LEFT = 48,
  RIGHT = 10;

/** Whether a value is outside of the clipping range. */
const outside = ({ clip_low: a, clip_high: b }) => (v) =>
  v > b || (a !== null && a !== undefined && v < a);

/** Share of the values outside of the clipping range. */
export function clipped(layer) {
  const { low, high, counts } = layer,
    out = outside(layer);
  const middle = (i) => low + ((high - low) * (i + 0.5)) / counts.length;
  const total = counts.reduce((s, n) => s + n, 0);
  return total ? counts.reduce((s, n, i) => s + (out(middle(i)) ? n : 0), 0) / total : 0;
}

const round = (v) => fixed(v, Math.abs(v) >= 100 ? 0 : Math.abs(v) >= 10 ? 1 : 2);

/** The lines of clipping, the upper one named. */
const clips = ({ low, high, clip_low: a, clip_high: b, method }) => (X, { left, right, top, bottom }) => {
  const line = (v, label) => {
    if (v === null || v === undefined || v < low || v > high) return nothing;
    const x = X(v),
      flip = x > left + 0.6 * (right - left);
    const named = svg`<text
      class="b acc halo"
      x="${x + (flip ? -6 : 6)}"
      y="${top}"
      text-anchor="${flip ? "end" : "start"}"
      >${label}</text
    >`;
    return svg`<line
        x1="${x}"
        x2="${x}"
        y1="${top - 8}"
        y2="${bottom}"
        stroke="var(--accent)"
        stroke-width="1.5"
      />${label ? named : nothing}`;
  };
  const said = tr("{method} clips at {value}", { method: method || tr("The range"), value: round(b) });
  return svg`${line(a, "")}${line(b, said)}`;
};

const rangeSvg = (layer, width) =>
  histogramSvg(layer, {
    width,
    height: 156,
    ends: [round(layer.low), round(layer.high)],
    title: tr("Histogram of values"),
    caption: tr("input activation"),
    marked: outside(layer),
    over: clips(layer),
  });

function weightSvg(weights, { width, height = 96 }) {
  const top = 6,
    bottom = height - 22,
    right = width - RIGHT,
    most = Math.max(...weights.flat().map(Math.abs), 1e-9);
  const shown = [...weights].sort((p, q) => q[1] - q[0] - (p[1] - p[0])).slice(0, 256);
  const Y = linear([-most, most], [bottom, top]),
    step = (right - LEFT) / shown.length;
  return html`<svg
    class="chart"
    height="${height}"
    viewBox="0 0 ${width} ${height}"
    role="img"
    aria-label=${tr("Weight range per channel")}
  >
    <text x="${LEFT - 6}" y="${top + 8}" text-anchor="end">+${round(most)}</text>
    <text x="${LEFT - 6}" y="${bottom}" text-anchor="end">${round(-most)}</text>
    ${shown.map(
      ([lo, hi], i) =>
        svg`<rect
          x="${(LEFT + i * step + 0.3).toFixed(1)}"
          y="${Y(hi).toFixed(1)}"
          width="${Math.max(step - 0.7, 0.5).toFixed(1)}"
          height="${Math.max(Y(lo) - Y(hi), 0.6).toFixed(1)}"
          fill="var(--ink2)"
          fill-opacity=".5"
        />`,
    )}
    <line class="ax" x1="${LEFT}" x2="${right}" y1="${Y(0)}" y2="${Y(0)}" />
    <text x="${(LEFT + right) / 2}" y="${height - 3}" text-anchor="middle">
      ${tr("weight range per output channel, widest first ({count})", { count: weights.length })}
    </text>
  </svg>`;
}

export default widget({
  name: "ranges",
  empty: { title: tr("Pick a layer"), text: tr("The distribution of its values, and what is clipped.") },
  ready: (c) => Boolean(c.get("layer")),
  view(c) {
    const l = c.get("layer"),
      out = clipped(l),
      known = l.cost !== null && l.cost !== undefined;
    const plot = (draw) =>
      html`<div>${c.fitted((width) => (width < 120 ? nothing : draw(width)))}</div>`;
    return html`<div class="card pad body">
      <div class="row">
        <h3>${l.name}</h3>
        ${chip(l.kept ? tr("kept in float") : "int8")}<span class="mu"
          >${known ? tr("costs {cost} points on its own", { cost: l.cost.toFixed(2) }) : ""}${
            out > 0 ? " · " + tr("{share} of values clipped", { share: percent(100 * out, out < 0.001 ? 3 : 1) }) : ""
          }</span
        >
      </div>
      ${plot((width) => rangeSvg(l, width))}
      ${l.weights?.length ? plot((width) => weightSvg(l.weights, { width })) : nothing}
    </div>`;
  },
  watch: ["layer"],
});
