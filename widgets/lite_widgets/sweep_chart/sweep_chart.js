// Latency against throughput of measured combinations; the line is the Pareto front.
import { html, nothing, svg } from "#template";
import { widget } from "#view";
import { linear, nice, ticks } from "../_shared/scale.js";
import { fixed, THIN } from "../_shared/format.js";
import { key } from "../_shared/parts.js";
import { tr } from "../_shared/words.js";

const LEFT = 64,
  RIGHT = 20,
  TOP = 28,
  BOTTOM = 38;

/** The cells of the front, fastest first. */
export const front = (cells) =>
  cells.filter((c) => c.front).sort((a, b) => a.latency_ms - b.latency_ms);

/** Axis ends: they hold every cell and the goals. */
export const frame = (cells, goal, rate = 0) => ({
  x: nice(Math.max(goal, ...cells.map((c) => c.latency_ms))),
  y: nice(Math.max(rate, ...cells.map((c) => c.throughput))),
});

const said = (c) =>
  tr("{ms} ms, {rate} samples/s", { ms: fixed(c.latency_ms, 2), rate: fixed(c.throughput, 1) });
const tip = (c) => [c.label, said(c), c.note].filter(Boolean).join("\n");

function chart(c, width) {
  if (width < 200) return nothing;
  const cells = c.get("cells"),
    goal = c.get("max_ms"),
    rate = c.get("min_rate"),
    height = c.get("height"),
    { x, y } = frame(cells, goal, rate),
    right = width - RIGHT,
    bottom = height - BOTTOM;
  const X = linear([0, x], [LEFT, right]),
    Y = linear([0, y], [bottom, TOP]);
  const line = front(cells)
    .map((p, i) => `${i ? "L" : "M"}${X(p.latency_ms).toFixed(1)} ${Y(p.throughput).toFixed(1)}`)
    .join("");
  const best = cells.find((p) => p.best);
  return html`<svg
    class="chart"
    height="${height}"
    viewBox="0 0 ${width} ${height}"
    role="img"
    aria-label="${tr("Latency against throughput")}${best ? `: ${best.label}, ${said(best)}` : ""}"
  >
    ${ticks(y).map(
      (v) =>
        svg`<line class="grid" x1="${LEFT}" x2="${right}" y1="${Y(v)}" y2="${Y(v)}" />
          <text x="${LEFT - 6}" y="${Y(v) + 4}" text-anchor="end">${v}</text>`,
    )}
    ${ticks(x, 5).map(
      (v) => svg`<text x="${X(v)}" y="${bottom + 16}" text-anchor="middle">${v}</text>`,
    )}
    <text x="4" y="12">${tr("samples/s")}</text>
    <text x="${(LEFT + right) / 2}" y="${height - 4}" text-anchor="middle">
      ${tr("latency of a batch, ms")}
    </text>
    <line class="ax" x1="${LEFT}" x2="${right}" y1="${bottom}" y2="${bottom}" />
    ${
      goal
        ? svg`<line
              data-part="goal"
              x1="${X(goal)}"
              x2="${X(goal)}"
              y1="${TOP}"
              y2="${bottom}"
              stroke="var(--accent)"
            />
            <text class="acc" x="${X(goal) - 5}" y="${TOP + 10}" text-anchor="end">
              ${tr("goal {ms} ms", { ms: goal })}
            </text>`
        : nothing
    }
    ${
      rate
        ? svg`<line
              data-part="rate"
              x1="${LEFT}"
              x2="${right}"
              y1="${Y(rate)}"
              y2="${Y(rate)}"
              stroke="var(--accent)"
            />
            <text class="acc" x="${LEFT + 5}" y="${Y(rate) - 5}">
              ${tr("goal {rate} samples/s", { rate })}
            </text>`
        : nothing
    }
    <path d="${line}" fill="none" stroke="var(--ink2)" stroke-width="1.2" />
    ${cells.map(
      (p) =>
        svg`<g data-cell data-tip="${tip(p)}"
          ><circle cx="${X(p.latency_ms)}" cy="${Y(p.throughput)}" r="11" fill="transparent" />
          <circle
            cx="${X(p.latency_ms)}"
            cy="${Y(p.throughput)}"
            r="4.5"
            fill="${p.best ? "var(--accent)" : p.front ? "var(--ink2)" : "var(--bg)"}"
            stroke="${p.best ? "var(--accent)" : "var(--ink2)"}"
            stroke-width="1.4"
        /></g>`,
    )}
    ${
      best
        ? svg`<text class="t1 b halo" x="${right}" y="12" text-anchor="end"
            >${best.label} · ${fixed(best.throughput, 1)}${THIN}/s</text
          >`
        : nothing
    }
  </svg>`;
}

const mark = (fill, stroke = "var(--ink2)") =>
  html`<svg width="12" height="12">
    <circle cx="6" cy="6" r="4.5" fill=${fill} stroke=${stroke} />
  </svg>`;

export default widget({
  name: "sweepchart",
  empty: {
    title: tr("Nothing measured yet"),
    text: tr("Every combination of threads, batch size, backend and precision is measured in turns."),
  },
  ready: (c) => c.get("cells").length > 0,
  view: (c) =>
    html`<div class="card">
      <div class="ch">
        <h3>${c.get("title") || tr("Latency against throughput")}</h3>
        <span class="lg"
          >${key(mark("var(--accent)", "var(--accent)"), tr("best for the goal"))}${key(mark("var(--ink2)"), tr("Pareto front"))}</span
        >
      </div>
      <div class="cb"><div data-part="chart">${c.fitted((width) => chart(c, width))}</div></div>
    </div>`,
  watch: ["title", "cells", "max_ms", "min_rate", "height"],
});
