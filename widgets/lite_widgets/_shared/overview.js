// The overview strip: every layer once, from top to bottom; over 300 it bins by maximum.
import { html, nothing, svg } from "#template";
import { patterns } from "./parts.js";

const MOST = 300;

/** Bins of consecutive rows: [{first, last, row}], `row` is the one with the largest weight. */
export function bins(rows, weight, most = MOST) {
  const n = Math.min(rows.length, most);
  return Array.from({ length: n }, (_, i) => {
    const first = Math.floor((i * rows.length) / n),
      last = Math.floor(((i + 1) * rows.length) / n) - 1;
    let best = first;
    for (let j = first; j <= last; j++) if (weight(rows[j]) > weight(rows[best])) best = j;
    return { first, last, row: rows[best] };
  });
}

/** marks: row → "first" (flag), hatch: row → pattern or null. */
export function overview(
  rows,
  { height, weight, fill, flag = () => false, hatch = () => null, paint },
) {
  const all = bins(rows, weight);
  const step = (height - 8) / Math.max(all.length, 1);
  return html`<svg width="27" height="${height}" style="display:block" aria-hidden="true">
    ${patterns(paint)}${all.map((b, i) => {
      const y = 4 + i * step,
        h = Math.max(step - (step > 3 ? 0.6 : 0), 0.8);
      const pattern = hatch(b.row);
      return svg`<g data-k="${b.row.name}"
        ><rect
          x="6"
          y="${y.toFixed(2)}"
          width="15"
          height="${h.toFixed(2)}"
          fill="${fill(b.row)}" />${
            pattern
              ? svg`<rect
                x="6"
                y="${y.toFixed(2)}"
                width="15"
                height="${h.toFixed(2)}"
                fill="${pattern}"
                pointer-events="none"
              />`
              : nothing
          }${
            rows.slice(b.first, b.last + 1).some(flag)
              ? svg`<path d="M1 ${(y + h / 2 - 4).toFixed(1)}l5 4-5 4z" fill="var(--bad)" />`
              : nothing
          }<rect
          class="ring"
          x="4"
          y="${(y - 1.2).toFixed(2)}"
          width="19"
          height="${(h + 2.4).toFixed(2)}"
          rx="2"
      /></g>`;
    })}
  </svg>`;
}

/** Pixel span of rows first…last in a strip of this height. */
export function span(n, first, last, height) {
  const step = (height - 8) / Math.max(n, 1);
  return { top: 3 + first * step, height: (last - first + 1) * step + 2 };
}
