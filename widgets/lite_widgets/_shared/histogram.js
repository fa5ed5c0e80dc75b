// Bars of counts on a logarithmic axis: decades as grid lines, one bar per bin.
import { nothing, svg } from "#template";
import { linear, power } from "./scale.js";
import { tr } from "./words.js";

/** `frame`: {left, right, top, bottom}; `marked(i)`: whether bin i is drawn as an offender. */
export function logBars(counts, { left, right, top, bottom }, marked) {
  const most = Math.max(1, Math.ceil(Math.log10(Math.max(...counts, 1)) + 0.2));
  const y = linear([0, most], [bottom, top]),
    step = (right - left) / Math.max(counts.length, 1);
  const grid = [];
  for (let e = 0; e <= most; e += most > 4 ? 2 : 1)
    grid.push(
      svg`<line class="grid" x1="${left}" x2="${right}" y1="${y(e)}" y2="${y(e)}" /><text
          x="${left - 6}"
          y="${y(e) + 4}"
          text-anchor="end"
          >${power(e)}</text
        >`,
    );
  const bars = counts.map((n, i) => {
    if (!n) return nothing;
    const at = y(Math.log10(n) + 0.08),
      bad = marked(i);
    return svg`<rect
      x="${(left + i * step + 0.5).toFixed(1)}"
      y="${at.toFixed(1)}"
      width="${Math.max(step - 1, 0.5).toFixed(1)}"
      height="${(bottom - at).toFixed(1)}"
      fill="${bad ? "var(--bad)" : "var(--ink2)"}"
      fill-opacity="${bad ? 0.85 : 0.55}"
    />`;
  });
  return svg`${grid}
    <text x="${left - 6}" y="${Math.min(10, top - 6)}" text-anchor="end">${tr("values")}</text>
    ${bars}
    <line class="ax" x1="${left}" x2="${right}" y1="${bottom}" y2="${bottom}" />`;
}
