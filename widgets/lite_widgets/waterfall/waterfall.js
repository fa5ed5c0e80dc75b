// From one total to the other: the largest changes one by one, the small ones together.
import { html, nothing, svg } from "#template";
import { widget } from "#view";
import { fit, linear, nice, ticks } from "../_shared/scale.js";
import { scale } from "../_shared/colour.js";
import { ms, signed, THIN } from "../_shared/format.js";
import { keyed, select } from "../_shared/parts.js";
import { tr, trn } from "../_shared/words.js";

const ROW = 24,
  TOP = 20;

const NS = 1e6; // in a millisecond
const NAMED = {
  new: (name) => tr("new: {name}", { name }),
  gone: (name) => tr("removed: {name}", { name }),
};
const KINDS = { new: tr("new"), gone: tr("removed"), outside: tr("outside any layer") };

/** Bars of a data.ProfileChange, in ms: [{name, names, from, to, delta, kind}], the rest last. */
export function bars(change, most) {
  const own = change.changes.filter((x) => x.delta_ns !== 0).slice(0, most),
    others = change.changes.length - own.length;
  const out = [];
  let at = change.before_ns;
  const bar = (name, names, delta, kind) => {
    out.push({ name, names, from: at / NS, to: (at + delta) / NS, delta: delta / NS, kind });
    at += delta;
  };
  for (const x of own) bar(x.name, layers(x), x.delta_ns, x.kind);
  if (change.after_ns !== at) bar(trn("{n} more", "{n} more", others), [], change.after_ns - at, "rest");
  return out;
}

/** Round ends of the axis. Medians of parts do not add up to the total's: a bar may end below zero. */
export function ends(start, end, all) {
  const values = [0, start, end, ...all.flatMap((b) => [b.from, b.to])],
    low = Math.min(...values);
  return [low < 0 ? -nice(-low * 1.02) : 0, nice(Math.max(...values) * 1.02)];
}

/** The layers of a change: those of the later profile, or the gone ones. */
const layers = (x) => (x.after.length ? x.after : x.before);
const totals = (c) => [c.get("change").before_ns / NS, c.get("change").after_ns / NS];

function chart(c, width) {
  if (width < 200) return nothing;
  const change = c.get("change"),
    [start, end] = totals(c),
    all = bars(change, c.get("most"));
  const left = Math.min(170, width * 0.28),
    right = width - 74,
    height = TOP + ROW * (all.length + 2) + 6;
  const [min, max] = ends(start, end, all);
  const X = linear([min, max], [left, right]);
  const step = ticks(max - min, 4)[1],
    marks = [];
  for (let i = Math.ceil(min / step); i * step <= max * 1.001; i++) marks.push(+(i * step).toPrecision(12));
  const grid = marks.map(
    (v) =>
      svg`<line class="grid" x1="${X(v)}" x2="${X(v)}" y1="${TOP - 4}" y2="${height - 4}" /><text
          x="${X(v)}"
          y="10"
          text-anchor="middle"
          >${v}</text
        >`,
  );
  const total = (name, value, i) =>
    svg`<text class="t1 b" x="${left - 8}" y="${TOP + i * ROW + 16}" text-anchor="end"
        >${fit(name, left - 10)}</text
      ><rect
        x="${X(0)}"
        y="${TOP + i * ROW + 4}"
        width="${X(value) - X(0)}"
        height="16"
        fill="var(--ink2)"
        fill-opacity=".55"
      />
      <text class="t1 b" x="${X(value) + 6}" y="${TOP + i * ROW + 16}">${ms(value)}</text>`;
  const rows = all.map((b, i) => {
    const y = TOP + (i + 1) * ROW,
      x0 = Math.min(X(b.from), X(b.to)),
      w = Math.max(Math.abs(X(b.to) - X(b.from)), 1);
    const fill = scale("change", b.delta > 0 ? 0.95 : 0.05, c.dark),
      named = NAMED[b.kind]?.(b.name) ?? b.name;
    const body = svg`<rect class="hit" x="0" y="${y}" width="${width}" height="${ROW}" /><text
        class="${b.kind === "rest" ? "" : "t1"}"
        x="${left - 8}"
        y="${y + 16}"
        text-anchor="end"
        >${fit(named, left - 10)}</text
      >
      <path d="M${X(b.from)} ${y - 4}V${y + 20}" stroke="var(--ink2)" stroke-opacity=".4" /><rect
        class="nd mark"
        x="${x0}"
        y="${y + 4}"
        width="${w}"
        height="16"
        fill="${fill}"
      /><rect class="ring" x="${x0 - 2}" y="${y + 2}" width="${w + 4}" height="20" rx="2" />
      <text x="${Math.max(X(b.from), X(b.to)) + 6}" y="${y + 16}">${signed(b.delta)}</text>`;
    return b.names.length ? svg`<g data-k="${b.names[0]}">${body}</g>` : svg`<g>${body}</g>`;
  });
  return html`<svg
    class="chart"
    height="${height}"
    viewBox="0 0 ${width} ${height}"
    role="img"
    aria-label=${tr("Changes from {before} to {after} ms", { before: ms(start), after: ms(end) })}
  >
    ${grid}
    <text x="${left - 8}" y="10" text-anchor="end">ms</text>
    ${total(change.baseline, start, 0)}${rows} ${total(change.candidate, end, all.length + 1)}
  </svg>`;
}

export default widget({
  name: "waterfall",
  empty: {
    title: tr("Nothing to compare"),
    text: tr("The layers that explain the difference between two profiles."),
  },
  ready: (c) => Boolean(c.get("change")),
  view(c) {
    const [start, end] = totals(c),
      part = start ? (100 * (end - start)) / start : 0;
    return html`<div class="card">
      <div class="ch">
        <h3>${c.get("title")}</h3>
        <span class="mu">${ms(start)} → ${ms(end)}${THIN}ms (${signed(part, 0)}${THIN}%)</span
        ><span class="sp"></span>${
          c.get("runs").length
            ? select("against", tr("Against"), c.get("runs"), c.get("against"))
            : nothing
        }<span class="lg"><span>${tr("blue: faster")}</span><span>${tr("brown: slower")}</span></span>
      </div>
      <div class="cb tight">
        <div data-part="chart" ${keyed(tr("Changes, largest first. Arrow keys select."))}>
          ${c.fitted((width) => chart(c, width))}
        </div>
        ${c.get("change").warnings.map((text) => html`<p class="mu">${text}</p>`)}
      </div>
    </div>`;
  },
  watch: ["change", "most", "runs", "against", "title"],
  order: (c) => bars(c.get("change"), c.get("most")).flatMap((b) => b.names.slice(0, 1)),
  tip(c, name) {
    const x = c.get("change").changes.find((y) => layers(y).includes(name));
    return (
      x &&
      `${layers(x).join(", ")}\n${ms(x.before_ns / NS)} → ${ms(x.after_ns / NS)}${THIN}ms ` +
        `(${signed(x.delta_ns / NS)})${x.kind === "changed" ? "" : `\n${KINDS[x.kind] ?? x.kind}`}`
    );
  },
});
