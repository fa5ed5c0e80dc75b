// A histogram: counts on a logarithmic axis, decades as grid lines, one bar per bin.
import { html, nothing, svg } from "#template";
import { linear, power } from "./scale.js";
import { tr } from "./words.js";

const LEFT = 48,
  RIGHT = 10,
  TOP = 22,
  TEXT = 14,
  NEAR = 34; // pixels between "0" and what stands at an end

/** `frame`: {left, right, top, bottom}; `marked(i)`: whether bin i is drawn as an offender. */
function logBars(counts, { left, right, top, bottom }, marked) {
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

/**
 * The whole plot of {low, high, counts}. `ends`: the texts of low and high; `marked(value)`: whether
 * a bin around this value is an offender; `over(X, frame)` draws over the bars, X: value → pixels.
 */
export function histogramSvg(
  { low, high, counts },
  { width, height, ends, title, caption = "", marked = () => false, over = () => nothing },
) {
  const frame = {
    left: LEFT,
    right: width - RIGHT,
    top: TOP,
    bottom: height - TEXT - (caption ? 18 : 8),
  };
  const { left, right, top, bottom } = frame;
  const X = linear([low, high], [left, right]),
    line = bottom + TEXT;
  const middle = (i) => low + ((high - low) * (i + 0.5)) / counts.length;
  const zero =
    low < 0 && high > 0
      ? svg`<line class="grid" x1="${X(0)}" x2="${X(0)}" y1="${top}" y2="${bottom}" />${
          X(0) - left > NEAR && right - X(0) > NEAR
            ? svg`<text x="${X(0)}" y="${line}" text-anchor="middle">0</text>`
            : nothing
        }`
      : nothing;
  return html`<svg
    class="chart"
    height="${height}"
    viewBox="0 0 ${width} ${height}"
    role="img"
    aria-label=${title}
  >
    ${zero}${logBars(counts, frame, (i) => marked(middle(i)))}${over(X, frame)}
    <text x="${left}" y="${line}">${ends[0]}</text>
    <text x="${right}" y="${line}" text-anchor="end">${ends[1]}</text>
    ${
      caption
        ? svg`<text x="${(left + right) / 2}" y="${height - 3}" text-anchor="middle">${caption}</text>`
        : nothing
    }
  </svg>`;
}
