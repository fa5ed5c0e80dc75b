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

/** Brackets with block names under a model-order axis: a name of which little would be left is not
 * written, "par…" says nothing. */
export function brackets(rows, { left, step, y }) {
  return runs(rows, (r) => r.block).map(({ key, first, last }) => {
    const x0 = left + first * step + 1.5,
      x1 = left + (last + 1) * step - 1.5;
    const name = lastPart(key),
      cut = fit(name, x1 - x0 - 2);
    const label = cut === name || cut.length >= 8 ? cut : "";
    if (x1 - x0 < 2) return nothing;
    return svg`<path class="bracket" d="M${x0} ${y}v3H${x1}v-3" />${
      label
        ? svg`<text x=${(x0 + x1) / 2} y=${y + 15} text-anchor="middle">${label}</text>`
        : nothing
    }`;
  });
}

/** 10 with its exponent raised. */
export const power = (e) =>
  svg`10<tspan dy="-4" font-size="9">${e < 0 ? "\u2212" + -e : e}</tspan>`;
