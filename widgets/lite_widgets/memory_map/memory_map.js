// The arena: execution step across, offset upwards, one rectangle per tensor.
import { html, nothing, svg } from "#template";
import { widget } from "#view";
import { keyed } from "../_shared/parts.js";
import { fit, lastPart, linear, ticks } from "../_shared/scale.js";
import { inkOn, scale } from "../_shared/colour.js";
import { bytes, tail } from "../_shared/format.js";
import { tr } from "../_shared/words.js";

const LEFT = 52,
  RIGHT = 12,
  TOP = 20,
  CHARACTER = 7,
  BOTTOM = 34;

/** {peak, top, step, alive}: the highest end, whose it is, and the fullest step. */
export function peakOf(tensors, steps) {
  const end = (t) => t.offset + t.bytes;
  const top = tensors.reduce((a, t) => (end(t) > end(a) ? t : a), tensors[0]);
  const alive = new Float64Array(steps + 1);
  for (const t of tensors) {
    alive[t.first] += t.bytes;
    if (t.last + 1 <= steps) alive[t.last + 1] -= t.bytes;
  }
  let sum = 0,
    most = 0,
    step = 0;
  for (let i = 0; i < steps; i++) {
    sum += alive[i];
    if (sum > most) {
      most = sum;
      step = i;
    }
  }
  return { peak: end(top), top, step, alive: most };
}

/** A tensor's name in its rectangle, where that is large enough for most of it. */
function label(tensor, { x, w, y1, h }, fill) {
  const name = lastPart(tensor.name);
  const text = h < 16 ? "" : fit(name, w - 10, 6.4);
  if (!text || text.length < Math.min(name.length, 8)) return nothing;
  return svg`<text
    class="t1"
    pointer-events="none"
    x="${(x + w / 2).toFixed(1)}"
    y="${(y1 + h / 2 + 4).toFixed(1)}"
    text-anchor="middle"
    style="fill:${inkOn(fill)}"
    >${text}</text
  >`;
}

export function memorySvg(memory, { width, height, dark }) {
  const { tensors, steps } = memory,
    n = Math.max(steps.length, 1);
  const { peak, top } = peakOf(tensors, n);
  const named = Math.max(12, Math.floor((width - LEFT - RIGHT) / CHARACTER) - 24);
  const bottom = height - BOTTOM,
    right = width - RIGHT;
  const X = linear([0, n], [LEFT, right]),
    Y = linear([0, peak * 1.08], [bottom, TOP]);
  const [unit, size] = peak >= 1e6 ? ["MB", 1e6] : ["kB", 1e3];
  const grid = ticks(peak / size, 4).map(
    (v) =>
      svg`<line
          class="grid"
          x1="${LEFT}"
          x2="${right}"
          y1="${Y(v * size)}"
          y2="${Y(v * size)}"
        /><text x="${LEFT - 6}" y="${Y(v * size) + 4}" text-anchor="end">${v}</text>`,
  );
  const boxes = tensors.map((t) => {
    const x = X(t.first),
      w = X(t.last + 1) - x,
      y1 = Y(t.offset + t.bytes),
      h = Y(t.offset) - y1;
    const fill = scale("rate", 0.2 + (0.5 * t.bytes) / peak, dark);
    return svg`<g data-k="${t.name}"
      ><rect
        class="nd mark"
        x="${(x + 0.5).toFixed(1)}"
        y="${y1.toFixed(1)}"
        width="${Math.max(w - 1, 0.8).toFixed(1)}"
        height="${Math.max(h - 0.7, 0.8).toFixed(1)}"
        fill="${fill}"
        stroke="var(--ink2)"
        stroke-opacity=".25" />
      <rect
        class="ring"
        x="${x.toFixed(1)}"
        y="${(y1 - 1).toFixed(1)}"
        width="${w.toFixed(1)}"
        height="${(h + 2).toFixed(1)}"
    />${label(t, { x, w, y1, h }, fill)}</g>`;
  });
  return html`<svg
    class="chart"
    height="${height}"
    viewBox="0 0 ${width} ${height}"
    role="img"
    aria-label=${tr("Arena map")}
  >
    ${grid}
    <text x="${LEFT - 6}" y="10" text-anchor="end">${unit}</text>
    ${boxes}
    <line
      x1="${LEFT}"
      x2="${right}"
      y1="${Y(peak)}"
      y2="${Y(peak)}"
      stroke="var(--ink)"
      stroke-dasharray="3 3"
    />
    <text class="t1 b halo" x="${right}" y="${Y(peak) - 6}" text-anchor="end">
      ${tr("peak {size}, at {layer}", { size: bytes(peak), layer: tail(top.name, named) })}
    </text>
    <line class="ax" x1="${LEFT}" x2="${right}" y1="${bottom}" y2="${bottom}" />
    <text x="${LEFT}" y="${bottom + 16}">${tr("step 1")}</text>
    <text x="${right}" y="${bottom + 16}" text-anchor="end">${n}</text>
    <text x="${(LEFT + right) / 2}" y="${height - 4}" text-anchor="middle">${tr("execution step")}</text>
  </svg>`;
}

const tensor = (c, name) => c.get("memory").tensors.find((t) => t.name === name);
const life = (t) =>
  tr("{size} at offset {offset}, alive in steps {first} to {last}", {
    size: bytes(t.bytes),
    offset: bytes(t.offset),
    first: t.first + 1,
    last: t.last + 1,
  });

export default widget({
  name: "memory",
  empty: {
    title: tr("No plan yet"),
    text: tr("Each tensor of the arena: its offset and its lifetime."),
  },
  ready: (c) => Boolean(c.get("memory") && c.get("memory").tensors.length),
  view(c) {
    const weights = c.get("memory").weight_bytes;
    return html`<div class="card pad">
      <div class="lg">
        <span>${tr("each block is a tensor: its offset in the arena and its lifetime")}</span
        >${weights ? html`<span>${tr("weights are not in it ({size})", { size: bytes(weights) })}</span>` : nothing}
      </div>
      <div data-part="chart" ${keyed(tr("Arena map. Arrow keys go through the tensors."), "drag")}>
        ${c.fitted((width) =>
          width < 160
            ? nothing
            : memorySvg(c.get("memory"), { width, height: c.get("height"), dark: c.dark }),
        )}
      </div>
    </div>`;
  },
  watch: ["memory", "height"],
  order: (c) => [...c.get("memory").tensors].sort((a, b) => a.first - b.first).map((t) => t.name),
  tip: (c, name) => tensor(c, name) && `${name}\n${life(tensor(c, name))}`,
  say: (c, name) => (tensor(c, name) ? `${name}, ${life(tensor(c, name))}` : name),
});
