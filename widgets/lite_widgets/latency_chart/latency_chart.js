// Time per layer: one bar each, in model order or slowest first.
import { html, nothing, svg } from "#template";
import { widget } from "#view";
import { brackets, bracketsHeight, nice, ticks } from "../_shared/scale.js";
import { colourOptions, encode, isCopy, rowTip, valueOf } from "../_shared/encode.js";
import { ms, THIN } from "../_shared/format.js";
import { keyed, patterns, select } from "../_shared/parts.js";
import { tr } from "../_shared/words.js";

const MOST_BARS = 400;
const LEFT = 44,
  RIGHT = 8,
  TOP = 24;

/** The rows to draw, in order, and what was left out: {rows, more, moreValue}. */
export function arrange(profile, sort, most = MOST_BARS) {
  const value = valueOf(profile);
  const slowest = [...profile.layers].sort((a, b) => value(b) - value(a));
  const left = slowest.slice(most);
  const out = new Set(left.map((r) => r.name));
  const rows =
    sort === "time" ? slowest.slice(0, most) : profile.layers.filter((r) => !out.has(r.name));
  return { rows, more: left.length, moreValue: left.reduce((a, r) => a + value(r), 0) };
}

/** How many of the slowest rows hold 80 % of the time. */
export function pareto(rows, value, part = 0.8) {
  const total = rows.reduce((a, r) => a + value(r), 0);
  let sum = 0;
  for (let i = 0; i < rows.length; i++) {
    sum += value(rows[i]);
    if (sum >= total * part - 1e-12) return i + 1;
  }
  return rows.length;
}

export function latencySvg(rows, { width, height = 184, e, sort, paint }) {
  const bottom = height - (sort === "time" ? 22 : bracketsHeight(rows));
  const step = (width - LEFT - RIGHT) / Math.max(rows.length, 1);
  const max = nice(Math.max(...rows.map(e.value)) * 1.02);
  const y = (v) => TOP + (bottom - TOP) * (1 - v / max);
  const gap = step > 9 ? 2 : step > 3 ? 1 : 0;
  const grid = ticks(max).map(
    (v) =>
      svg`<line class="grid" x1="${LEFT}" x2="${width - RIGHT}" y1="${y(v)}" y2="${y(v)}" />
        <text x="${LEFT - 6}" y="${y(v) + 4}" text-anchor="end">${v}</text>`,
  );
  const bars = rows.map((row, i) => {
    const v = e.value(row),
      x = LEFT + i * step,
      top = Math.min(y(v), bottom - 1);
    const hatched = isCopy(row);
    const mid = (x + step / 2).toFixed(1);
    const spread = row.ci_ms && e.unit === "ms" && v > max * 0.06 && step > 3 ? row.ci_ms : 0;
    return svg`<g data-k="${row.name}"
      ><rect
        class="hit"
        x="${x.toFixed(2)}"
        y="${TOP - 6}"
        width="${step.toFixed(2)}"
        height="${bottom - TOP + 6}" />
      <rect
        class="nd0 mark"
        x="${(x + gap / 2).toFixed(2)}"
        y="${top.toFixed(2)}"
        width="${Math.max(step - gap, 0.8).toFixed(2)}"
        height="${(bottom - top).toFixed(2)}"
        fill="${hatched ? paint.copy : e.fill(row)}"
        stroke=${hatched ? "var(--ink2)" : nothing}
        stroke-width=".7" />${
          spread
            ? svg`<path
              d="M${mid} ${Math.max(y(v + spread), TOP - 6).toFixed(1)}V${y(Math.max(v - spread, 0)).toFixed(1)}"
              stroke="var(--ink)"
              stroke-opacity=".55"
            />`
            : nothing
        }
      <rect
        class="ring"
        x="${x.toFixed(2)}"
        y="${(top - 2).toFixed(2)}"
        width="${Math.max(step, 3).toFixed(2)}"
        height="${(bottom - top + 3).toFixed(2)}"
        rx="1"
    /></g>`;
  });
  let axis;
  if (sort === "time") {
    const n = pareto(rows, e.value),
      x = LEFT + n * step,
      flip = x > width - 260;
    const [most, least] = e.unit === "ms" ? [tr("slowest"), tr("fastest")] : [tr("most"), tr("fewest")];
    axis = svg`<line
        x1="${x}"
        x2="${x}"
        y1="${TOP}"
        y2="${bottom}"
        stroke="var(--ink)"
        stroke-dasharray="3 3"
        stroke-opacity=".6"
      />
      <text
        class="t1"
        x="${x + (flip ? -6 : 6)}"
        y="${TOP + 10}"
        text-anchor=${flip ? "end" : "start"}
        >${tr("80 % is in {n} of {rows} rows", { n, rows: rows.length })}</text
      >
      <text x="${LEFT}" y="${height - 6}">${most}</text
      ><text x="${width - RIGHT}" y="${height - 6}" text-anchor="end">${least}</text>`;
  } else axis = brackets(rows, { left: LEFT, step, y: bottom + 4 });
  return html`<svg
    class="chart"
    height="${height}"
    viewBox="0 0 ${width} ${height}"
    role="img"
    aria-label=${tr("Time per layer")}
  >
    ${patterns(paint)}${grid}
    <text x="${LEFT - 6}" y="10" text-anchor="end">${e.unit}</text>
    ${bars}
    <line class="ax" x1="${LEFT}" x2="${width - RIGHT}" y1="${bottom}" y2="${bottom}" />
    ${axis}
  </svg>`;
}

const encoding = (c) =>
  encode(c.get("profile"), {
    by: c.get("colour_by"),
    baseline: c.get("baseline"),
    hidden: c.get("hidden_types"),
    roof: c.get("roof"),
    paint: c.paint,
  });

export default widget({
  name: "latency",
  empty: {
    title: tr("Nothing measured yet"),
    text: tr("One bar per layer shows where the time goes."),
  },
  ready: (c) => Boolean(c.get("profile") && c.get("profile").layers.length),
  view(c) {
    const profile = c.get("profile"),
      sort = c.get("sort"),
      height = c.get("height"),
      { paint } = c,
      e = encoding(c);
    const { rows, more, moreValue } = arrange(profile, sort);
    const colours = colourOptions(profile, c.get("baseline"));
    const what = profile.emulated ? tr("Instructions") : tr("Time");
    return html`<div class="card">
      <div class="ch">
        <h3>${tr("{what} per layer", { what })}</h3>
        <span class="lg">${e.legend}</span><span class="sp"></span>
        ${select("colour_by", tr("Color"), colours, c.get("colour_by"))}
        ${select(
          "sort",
          tr("Sort"),
          [
            ["order", tr("model order")],
            ["time", profile.emulated ? tr("most instructions") : tr("slowest first")],
          ],
          sort,
        )}
      </div>
      <div class="cb tight">
        <div
          data-part="chart"
          ${keyed(tr("{what} per layer. Arrow keys select a layer, drag selects several.", { what }), "drag")}
        >
          ${c.fitted((width) =>
            width > 80 ? latencySvg(rows, { width, e, sort, paint, height }) : nothing,
          )}
        </div>
        ${more ? html`<small>${tr("+ {count} more, {value}", { count: more, value: ms(moreValue) + THIN + e.unit })}</small>` : nothing}
      </div>
    </div>`;
  },
  watch: ["profile", "baseline", "colour_by", "sort", "height", "roof", "hidden_types"],
  order: (c) => arrange(c.get("profile"), c.get("sort")).rows.map((r) => r.name),
  say(c, name) {
    const row = c.get("profile").layers.find((r) => r.name === name),
      e = encoding(c);
    return row ? `${name}, ${ms(e.value(row))} ${e.unit}` : name;
  },
  tip(c, name) {
    const row = c.get("profile").layers.find((r) => r.name === name);
    return row && rowTip(row, encoding(c));
  },
});
