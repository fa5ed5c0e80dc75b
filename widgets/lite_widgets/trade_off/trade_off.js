// Accuracy against latency; the line is what may be lost, the filled circle what that buys.
import { html, live, nothing, STILL, svg } from "#template";
import { widget } from "#view";
import { linear, ticks } from "../_shared/scale.js";
import { bytes, capital, fixed, ms, signed, THIN } from "../_shared/format.js";
import { grip, key } from "../_shared/parts.js";
import { tr, trn } from "../_shared/words.js";

const LEFT = 56,
  RIGHT = 22,
  TOP = 40,
  BOTTOM = 38,
  STEP = 0.1,
  LEAST = 0.5; // points that the budget can always reach

const noise = (p) => p.latency_ci_ms || 0;

/** Index of the fastest version of `method` within the budget, or −1; of those that the measurement
 * cannot tell from it the most accurate, then the smallest. */
export function choose(points, method, float, budget) {
  const inside = points
    .map((p, i) => ({ ...p, i }))
    .filter((p) => p.method === method && p.accuracy >= float.accuracy - budget - 1e-9);
  if (!inside.length) return -1;
  const fastest = inside.reduce((a, b) => (b.latency_ms < a.latency_ms ? b : a));
  return inside
    .filter((p) => p.latency_ms - fastest.latency_ms <= noise(p) + noise(fastest))
    .reduce((a, b) => (b.accuracy - a.accuracy || a.bytes - b.bytes) > 0 ? b : a).i;
}

/** Axis ranges: they hold everything, end at 100 % and do not move with the budget. */
export function frame(points, float) {
  const all = [...points, float],
    xs = all.map((p) => p.latency_ms),
    ys = all.map((p) => p.accuracy);
  const pad = (Math.max(...xs) - Math.min(...xs)) * 0.08 || Math.max(...xs) * 0.1;
  const [low, high] = [Math.min(...ys), Math.max(...ys)];
  const span = Math.max(high - low, 2.5);
  return {
    x: [Math.max(0, Math.min(...xs) - pad), Math.max(...xs) + pad],
    y: [
      Math.min(low - span * 0.18, float.accuracy - LEAST - STEP),
      Math.min(Math.max(100, high), high + span * 0.14),
    ],
  };
}

function limits(c) {
  const lost = c.get("float_").accuracy - frame(c.get("points"), c.get("float_")).y[0];
  return [0, Math.max(LEAST, Math.floor(lost / STEP + 1e-6) * STEP)];
}

function setBudget(c, value, soft = true) {
  const [low, high] = limits(c);
  const budget = +Math.min(high, Math.max(low, Math.round(value / STEP) * STEP)).toFixed(2);
  c.set(
    { budget, best: choose(c.get("points"), c.get("method"), c.get("float_"), budget) },
    { soft },
  );
}

function scales(c, width) {
  const f = frame(c.get("points"), c.get("float_")),
    bottom = c.get("height") - BOTTOM;
  return { X: linear(f.x, [LEFT, width - RIGHT]), Y: linear(f.y, [bottom, TOP]), f, bottom };
}

/** What a version is: its own label or, of a quantized one, how many layers are in float. */
const named = (p) =>
  p.label ?? trn("int8, {n} layer in float", "int8, {n} layers in float", p.kept.length);

const pointTip = (p) =>
  `${named(p)}\n` +
  `${fixed(p.accuracy, 1)}${THIN}% · ${ms(p.latency_ms)}${THIN}ms · ${bytes(p.bytes)}` +
  (p.ran ? `\n${p.ran}` : "");

/** A number of percentage points. */
const inPoints = (count) => tr("{count} points", { count: count.toFixed(1) });

/** "int8 in all layers except 6 layers: a, b, c, d and 2 more." */
function exceptFor(kept) {
  const links = kept
    .slice(0, 4)
    .map(
      (name, i) =>
        html`${i ? ", " : ""}<button type="button" class="lnk" data-k="${name}">${name}</button>`,
    );
  const more = kept.length > 4 ? tr(" and {count} more", { count: kept.length - 4 }) : "";
  const [before, count, then, after] = trn(
    "int8 in all layers except **{n} layer**: {names}.",
    "int8 in all layers except **{n} layers**: {names}.",
    kept.length,
    { names: "**" },
  ).split("**");
  return html`${before}<b>${count}</b>${then}${links}${more}${after}`;
}

const said = (p) => p.label ?? (p.kept.length ? exceptFor(p.kept) : tr("int8 in all layers."));

const shortName = (p) =>
  p.label ??
  (p.kept.length ? tr("{count} in float", { count: p.kept.length }) : tr("all int8"));

/** Multiples of `step` within a range. */
export function rounds([low, high], step) {
  const first = Math.ceil(low / step - 1e-9),
    last = Math.floor(high / step + 1e-9);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, i) =>
    +((first + i) * step).toPrecision(12),
  );
}

function chart(c, width) {
  if (width < 200) return nothing;
  const points = c.get("points"),
    fp = c.get("float_"),
    method = c.get("method"),
    height = c.get("height"),
    budget = c.get("budget");
  const { X, Y, f, bottom } = scales(c, width),
    right = width - RIGHT;
  const most = Math.max(1, fp.bytes, ...points.map((p) => p.bytes)); // 0 without any weights
  const radius = (p) => 2.6 + 5 * (p.bytes / most);
  const stepY = ticks(f.y[1] - f.y[0], 4)[1],
    grid = [];
  for (const v of rounds(f.y, stepY))
    grid.push(
      svg`<line class="grid" x1="${LEFT}" x2="${right}" y1="${Y(v)}" y2="${Y(v)}" /><text
          x="${LEFT - 6}"
          y="${Y(v) + 4}"
          text-anchor="end"
          >${v}${THIN}%</text
        >`,
    );
  const stepX = ticks(f.x[1] - f.x[0], 5)[1];
  for (const v of rounds(f.x, stepX))
    grid.push(
      svg`<text x="${X(v)}" y="${bottom + 16}" text-anchor="middle">${v}</text>`,
    );
  const path = (list) =>
    list
      .map((p, i) => `${i ? "L" : "M"}${X(p.latency_ms).toFixed(1)} ${Y(p.accuracy).toFixed(1)}`)
      .join("");
  const by = (m) =>
    points.filter((p) => p.method === m).sort((a, b) => a.latency_ms - b.latency_ms);
  const others = [...new Set(points.map((p) => p.method))]
    .filter((m) => m !== method)
    .map((m) => {
      const list = by(m);
      return svg`<path
          d="${path(list)}"
          fill="none"
          stroke="var(--ink2)"
          stroke-opacity=".5"
          stroke-dasharray="2 3"
        /><text
          x="${X(list[0].latency_ms) + 5}"
          y="${Math.min(bottom - 4, Y(list[0].accuracy) + 13)}"
          >${m}</text
        >`;
    });
  const best = c.get("best"),
    yb = Math.min(Y(fp.accuracy - budget), bottom); // set on other points, it may lie below them
  const dots = points.map((p, i) =>
    p.method !== method
      ? nothing
      : svg`<g data-point="${i}" data-tip="${pointTip(p)}"
          ><circle cx="${X(p.latency_ms)}" cy="${Y(p.accuracy)}" r="12" fill="transparent" />
          <circle
            cx="${X(p.latency_ms)}"
            cy="${Y(p.accuracy)}"
            r="${radius(p).toFixed(1)}"
            fill="${i === best ? "var(--accent)" : "var(--bg)"}"
            stroke="${i === best ? "var(--accent)" : "var(--ink2)"}"
            stroke-width="1.4"
        /></g>`,
  );
  const beyond = svg`<text x="${right - 10}" y="${bottom - 10}" text-anchor="end"
    >${tr("loss exceeds the budget")}</text
  >`;
  const chosen = points[best]
    ? svg`<text
        class="t1 b halo"
        x="${X(points[best].latency_ms) - 10}"
        y="${Y(points[best].accuracy) - 11}"
        text-anchor="middle"
        >${shortName(points[best])}</text
      >`
    : nothing;
  return html`<svg
    class="chart"
    height="${height}"
    viewBox="0 0 ${width} ${height}"
    role="group"
    aria-label=${tr("Accuracy against latency")}
  >
    ${grid}
    <text x="4" y="10">${c.get("metric")}</text>
    <text x="${(LEFT + right) / 2}" y="${height - 4}" text-anchor="middle">
      ${tr("latency on {backend}, ms", { backend: c.get("backend") })}
    </text>
    <line class="ax" x1="${LEFT}" x2="${right}" y1="${bottom}" y2="${bottom}" />
    <rect
      x="${LEFT}"
      y="${yb}"
      width="${right - LEFT}"
      height="${Math.max(0, bottom - yb)}"
      fill="var(--ink)"
      fill-opacity=".05"
    />
    ${bottom - yb > 40 ? beyond : nothing}${others}
    <path d="${path(by(method))}" fill="none" stroke="var(--ink2)" stroke-width="1.2" />
    <circle
      cx="${X(fp.latency_ms)}"
      cy="${Y(fp.accuracy)}"
      r="${radius(fp).toFixed(1)}"
      fill="var(--ink2)"
    />
    <text class="t1 halo" x="${X(fp.latency_ms)}" y="${Y(fp.accuracy) - 12}" text-anchor="middle">
      fp32
    </text>
    <g
      ${grip("budget", tr("Accuracy budget"), {
        low: limits(c)[0],
        high: limits(c)[1],
        now: budget,
        said: inPoints(budget),
      })}
    >
      <rect x="${LEFT}" y="${yb - 8}" width="${right - LEFT}" height="16" fill="transparent" />
      <line
        x1="${LEFT}"
        x2="${right}"
        y1="${yb}"
        y2="${yb}"
        stroke="var(--accent)"
        stroke-width="1.5"
      />
      <rect x="${right - 4}" y="${yb - 5}" width="8" height="10" rx="2" fill="var(--accent)" />
    </g>
    <text
      class="b acc halo"
      x="${right - 10}"
      y="${yb + 20 < bottom ? yb + 14 : yb - 8}"
      text-anchor="end"
      pointer-events="none"
    >
      ${tr("budget −{points}", { points: inPoints(budget) })}
    </text>
    ${dots}${chosen}
  </svg>`;
}

function summary(c) {
  const fp = c.get("float_"),
    p = c.get("points")[c.get("best")];
  if (!p)
    return html`<p class="mu">
      ${tr("No version stays within {points}. Drag the line down, or use the float model.", {
        points: inPoints(c.get("budget")),
      })}
    </p>`;
  const loss = fp.accuracy - p.accuracy,
    less = (a, b) => (b ? `${signed((100 * a) / b - 100, 0)}${THIN}%` : "–");
  return html`<div class="three">
      <small>${c.get("metric")}</small><small>${tr("latency")}</small><small>${tr("weights")}</small>
      <span class="big">${p.accuracy.toFixed(1)}<small>${THIN}%</small></span
      ><span class="big">${ms(p.latency_ms)}<small>${THIN}ms</small></span
      ><span class="big"
        >${bytes(p.bytes).split(THIN)[0]}<small
          >${THIN}${bytes(p.bytes).split(THIN)[1]}</small
        ></span
      >
      <small
        >${tr("{count} points", {
          count: Math.abs(loss) < 0.05 ? "±0" : `${loss > 0 ? "−" : "+"}${Math.abs(loss).toFixed(1)}`,
        })}</small
      ><small>${less(p.latency_ms, fp.latency_ms)}</small><small>${less(p.bytes, fp.bytes)}</small>
    </div>
    <p>${said(p)}${p.ran ? html` <span class="mu">${capital(p.ran)}.</span>` : nothing}</p>`;
}

function slider(c) {
  const [low, high] = limits(c),
    said = inPoints(c.get("budget"));
  return html`<div class="row" style="margin-top:8px">
    <label class="lbl"
      >${tr("Accuracy budget")}
      <input
        type="range"
        step="0.1"
        data-range="budget"
        style="width:160px"
        min=${low}
        max=${high}
        .value=${live(String(c.get("budget")))}
        aria-valuetext=${said} /></label
    ><b>−${said}</b>
  </div>`;
}

export default widget({
  name: "tradeoff",
  empty: {
    title: tr("No quantized version yet"),
    text: tr("64 to 200 typical inputs are enough. They stay on this machine."),
  },
  ready: (c) => Boolean(c.get("float_") && c.get("points").length),
  view(c) {
    const sizes = c.get("points").map((p) => p.bytes);
    const small = Math.min(...sizes),
      large = Math.max(...sizes);
    const circles = html`<svg width="26" height="12">
      <circle cx="5" cy="6" r="3.2" fill="none" stroke="var(--ink2)" />
      <circle cx="18" cy="6" r="5.5" fill="none" stroke="var(--ink2)" />
    </svg>`;
    return html`<div class="card">
      <div class="ch">
        <h3>${tr("Accuracy against latency")}</h3>
        <span class="lg"
          >${key(circles, tr("weights {least} … {most}", { least: bytes(small), most: bytes(large) }))}<span
            >${tr("drag the line to set the budget")}</span
          ></span
        >
      </div>
      <div class="cb">
        <div data-part="chart">${c.fitted((width) => chart(c, width))}</div>
        ${STILL ? nothing : slider(c)}
        <div class="best" data-part="summary">${summary(c)}</div>
      </div>
    </div>`;
  },
  watch: ["points", "method", "float_", "metric", "backend", "height", "budget", "best"],
  input: (c, name, value) => setBudget(c, +value),
  drag(c, name, event) {
    const svg = c.root.querySelector("[data-part=chart] svg"),
      box = svg.getBoundingClientRect();
    const { Y } = scales(c, box.width);
    setBudget(
      c,
      c.get("float_").accuracy -
        Y.invert(((event.clientY - box.top) * c.get("height")) / box.height),
    );
  },
  key(c, event) {
    if (!event.target.closest("[data-drag]")) return false;
    const by = { ArrowUp: -STEP, ArrowRight: STEP, ArrowDown: STEP, ArrowLeft: -STEP }[event.key];
    if (by) setBudget(c, c.get("budget") + by, false);
    return Boolean(by);
  },
  click(c, event) {
    const dot = event.target.closest("[data-point]");
    if (!dot) return false;
    setBudget(
      c,
      Math.ceil(
        (c.get("float_").accuracy - c.get("points")[+dot.dataset.point].accuracy) * 10 - 1e-6,
      ) / 10,
      false,
    );
    return true;
  },
});
