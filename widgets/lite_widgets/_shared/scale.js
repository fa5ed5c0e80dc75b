// Axes: round numbers, ticks, logarithms, and the block brackets under a model-order axis.
import { nothing, svg } from "#template";

export function nice(max) {
  if (!(max > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(max) + 1e-9);
  return (
    ([1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((x) => x * power >= max * 0.999999) || 10) * power
  );
}

/** Three to five round values from 0 to max. */
export function ticks(max, n = 4) {
  const raw = max / n;
  const power = 10 ** Math.floor(Math.log10(raw) + 1e-9);
  const step = [1, 2, 2.5, 5, 10].find((x) => x * power >= raw * 0.999) * power;
  const out = [];
  for (let i = 0; i * step <= max * 1.001; i++) out.push(+(i * step).toPrecision(12));
  return out;
}

export function linear(domain, range) {
  const [a, b] = domain,
    [p, q] = range;
  const to = (v) => p + ((v - a) / (b - a || 1)) * (q - p);
  to.invert = (x) => a + ((x - p) / (q - p || 1)) * (b - a);
  return to;
}

export function log(domain, range) {
  const inner = linear(domain.map(Math.log10), range);
  const to = (v) => inner(Math.log10(Math.max(v, Number.MIN_VALUE)));
  to.invert = (x) => 10 ** inner.invert(x);
  return to;
}

/** Contiguous runs of equal key: [{key, first, last}]. */
export function runs(items, key) {
  const out = [];
  items.forEach((item, i) => {
    const k = key(item);
    if (out.length && out[out.length - 1].key === k) out[out.length - 1].last = i;
    else out.push({ key: k, first: i, last: i });
  });
  return out;
}

export const lastPart = (name) => String(name).split("/").pop();

/** Largest text that fits about `width` pixels of chart type, or "". */
export function fit(text, width, charWidth = 6) {
  const room = Math.floor(width / charWidth);
  if (text.length <= room) return text;
  return room >= 4 ? text.slice(0, room - 1) + "…" : "";
}

/** (name) → it, with the number of the time from its second on: "neck", "neck (2)". */
export function counted() {
  const seen = new Map();
  return (name) => {
    const times = (seen.get(name) || 0) + 1;
    seen.set(name, times);
    return times > 1 ? `${name} (${times})` : name;
  };
}

/** What a region of these blocks is called in the graph and under charts; `again`: `counted()`. */
export function regionLabel(region, blocks, again) {
  if (blocks.length > 1) return again(region);
  const [block] = blocks,
    [short] = region.split(": ");
  if (region.startsWith(block)) return region;
  return block.startsWith(`${short}.`) ? block : `${block} · ${region}`;
}

const ONE_ROW = 28,
  SECOND = 18;
const hasRegions = (rows) => rows.some((r) => r.region);

/** The height that brackets with their names take under an axis. */
export const bracketsHeight = (rows) => (hasRegions(rows) ? ONE_ROW + SECOND : ONE_ROW);

function bracket(text, { x0, x1, y }) {
  if (x1 - x0 < 2) return nothing;
  const name = text
    ? svg`<text x=${(x0 + x1) / 2} y=${y + 15} text-anchor="middle">${text}</text>`
    : nothing;
  return svg`<path class="bracket" d="M${x0} ${y}v3H${x1}v-3" />${name}`;
}

/** A name of which little would be left is not written, "par…" says nothing. */
function blockText(block, width) {
  const name = lastPart(block),
    cut = fit(name, width);
  return cut === name || cut.length >= 8 ? cut : "";
}

/** "stage 4: inverted bottleneck ×6", where that is too long "stage 4". */
const regionText = (label, width) =>
  [label, label.split(": ")[0]].find((text) => fit(text, width) === text) ?? "";

/** Brackets under a model-order axis: blocks, and below them the regions that hold them. */
export function brackets(rows, { left, step, y }) {
  const span = ({ first, last }) => ({
    x0: left + first * step + 1.5,
    x1: left + (last + 1) * step - 1.5,
  });
  const room = ({ x0, x1 }) => x1 - x0 - 2;
  const blocks = runs(rows, (r) => r.block).map((run) => {
    const at = span(run);
    return { ...at, text: blockText(run.key, room(at)), block: run.key };
  });
  if (!hasRegions(rows)) return blocks.map(({ text, ...at }) => bracket(text, { ...at, y }));
  const again = counted();
  const regions = runs(rows, (r) => r.region || "").map((run) => {
    const inside = runs(rows.slice(run.first, run.last + 1), (r) => r.block).map((r) => r.key);
    const at = span(run);
    const text = run.key && regionText(regionLabel(run.key, inside.map(lastPart), again), room(at));
    return { ...at, text, blocks: inside };
  });
  // A block that is a whole region is named in the region's row; "stage 3…" tells no block apart.
  const alone = new Set(regions.flatMap((r) => (r.text && r.blocks.length === 1 ? r.blocks : [])));
  const named = (b) => b.text === lastPart(b.block) && !alone.has(b.block);
  const upper = blocks.map((b) => (named(b) ? b : { ...b, text: "" }));
  const below = upper.some((b) => b.text) ? y + SECOND : y + 5;
  return [
    ...upper.map(({ text, ...at }) => bracket(text, { ...at, y })),
    ...regions.map(({ text, ...at }) => bracket(text, { ...at, y: below })),
  ];
}

/** 10 with its exponent raised. */
export const power = (e) =>
  svg`10<tspan dy="-4" font-size="9">${e < 0 ? "\u2212" + -e : e}</tspan>`;
