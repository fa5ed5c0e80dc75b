// Every layer as a row; sorted by header, filtered by text. Rows outside the window are not made.
import { html, live, nothing, STILL } from "#template";
import { widget } from "#view";
import { encode, isCopy } from "../_shared/encode.js";
import { marks } from "../_shared/line.js";
import { backendName, scale } from "../_shared/colour.js";
import { distinct, error, fixed, NONE, percent, short, signed, tail } from "../_shared/format.js";
import { bar, chip, dot, keyed } from "../_shared/parts.js";
import { tr } from "../_shared/words.js";

/** Decimals of a time: none that cannot be told apart. */
export const digits = ({ rankable_us }) =>
  rankable_us > 0 ? Math.max(0, Math.min(3, -Math.floor(Math.log10(rankable_us / 1e3)))) : 3;

const ROW = 26,
  SPARE = 12,
  STILL_ROWS = 20;

/** The rows that pass the filter, in order: [{row, i}]. */
export function view(rows, { filter = "", sort = "index", keys }) {
  const q = filter.trim().toLowerCase();
  const shown = rows
    .map((row, i) => ({ row, i }))
    .filter(
      ({ row }) =>
        !q || `${row.name} ${row.op} ${row.kernel || ""} ${row.type}`.toLowerCase().includes(q),
    );
  const down = sort.startsWith("-"),
    id = down ? sort.slice(1) : sort;
  const of = keys[id] || ((r, i) => i);
  const compare = (a, b) => {
    const x = of(a.row, a.i),
      y = of(b.row, b.i);
    const gone = (v) => v === null || v === undefined || Number.isNaN(v);
    if (gone(x) || gone(y)) return gone(x) - gone(y) || a.i - b.i; // "–" stays last both ways
    return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1) || a.i - b.i;
  };
  return shown.sort(compare);
}

/** Which rows to make for this scroll position: [first, last). */
export function slice(total, scrollTop, height) {
  const top = Math.min(Math.floor(scrollTop / ROW), total - Math.floor(height / ROW));
  const first = Math.max(0, top - SPARE);
  return [first, Math.min(total, Math.ceil((scrollTop + height) / ROW) + SPARE)];
}

const SHORT = 16; // characters that the narrowest column has room for

function profileColumns(c) {
  const profile = c.get("profile"),
    baseline = c.get("baseline"),
    { dark } = c;
  const e = encode(profile, {
    by: c.get("colour_by"),
    baseline,
    hidden: c.get("hidden_types"),
    paint: c.paint,
  });
  const named = distinct(profile.layers.map((r) => r.name));
  const before = baseline && new Map(baseline.layers.map((r) => [r.name, r.median_ms]));
  const change = (r) =>
    before && before.has(r.name) && !isCopy(r) ? r.median_ms - before.get(r.name) : null;
  const stripes = "repeating-linear-gradient(45deg,var(--ink2) 0 1px,transparent 1px 4px)";
  const columns = [
    {
      id: "index",
      head: "#",
      num: true,
      cell: (r, i) => html`<span class="mu">${isCopy(r) ? "" : i + 1}</span>`,
    },
    {
      id: "name",
      head: tr("Layer"),
      cls: "cut name",
      cell: (r) =>
        isCopy(r)
          ? html`<i class="mu">${tail(r.name)}</i>`
          : html`${dot(r.backend, dark)} ${named(r.name)}`,
    },
    { id: "op", head: tr("Op"), cls: "mu cut hide-u", cell: (r) => (isCopy(r) ? tr("copy") : r.op) },
    { id: "kernel", head: tr("Kernel"), cls: "mono mu cut hide-t kernel", cell: (r) => r.kernel || "" },
    {
      id: "value",
      head: e.unit,
      num: true,
      down: true,
      cell: (r) => fixed(e.value(r), e.unit === "ms" ? digits(profile) : 2),
    },
  ];
  if (!baseline && !profile.emulated && profile.layers.some((r) => r.ci_ms))
    columns.push({
      head: "±",
      num: true,
      cls: "mu",
      cell: (r) => (r.ci_ms ? short(r.ci_ms) : ""),
    });
  columns.push({
    head: tr("Share"),
    cell: (r) =>
      html`${bar(e.value(r) / e.max, isCopy(r) ? stripes : e.fill(r), 44)}
        <span class="mu">${percent((100 * e.value(r)) / e.total)}</span>`,
  });
  if (baseline)
    columns.push({
      id: "change",
      head: `Δ ${backendName(baseline.backend)}`,
      num: true,
      down: true,
      cell: (r) =>
        isCopy(r)
          ? tr("new")
          : change(r) === null
            ? NONE
            : html`<span style="color:${change(r) > 0 ? "var(--bad)" : scale("change", 0, dark)}"
                >${signed(change(r))}</span
              >`,
    });
  if (!profile.emulated)
    columns.push({
      id: "gflops",
      head: "GFLOP/s",
      num: true,
      down: true,
      cls: "hide-t",
      cell: (r) => (r.gflops > 0 ? fixed(r.gflops, r.gflops < 1 ? 2 : 1) : NONE),
    });
  return {
    rows: profile.layers,
    columns,
    value: e.value,
    total: e.total,
    of: e.unit === "ms" ? tr("time") : tr("instructions"),
    keys: {
      index: (r, i) => i,
      name: (r) => r.name,
      op: (r) => r.op,
      kernel: (r) => r.kernel || "",
      value: e.value,
      change,
      gflops: (r) => r.gflops || null,
    },
  };
}

function errorColumns(c) {
  const comparison = c.get("comparison"),
    tol = c.get("tolerance");
  const at = new Map(marks(comparison, tol).layers.map((l) => [l.name, l]));
  const words = {
    failing: chip(tr("own error"), "bad"),
    propagated: chip(tr("propagated"), "warn"),
    differing: chip(tr("differs"), "warn"),
    within: chip(tr("within")),
  };
  const named = distinct(comparison.layers.map((r) => r.name));
  const iso = (r) => (r.isolated ? r.isolated.rel_l2 : null);
  const over = (v) => (v > tol ? "bad" : "");
  return {
    rows: comparison.layers,
    value: () => 1,
    total: comparison.layers.length,
    of: null,
    columns: [
      { id: "index", head: "#", num: true, cell: (r, i) => html`<span class="mu">${i + 1}</span>` },
      { id: "name", head: tr("Layer"), cls: "cut name", cell: (r) => named(r.name) },
      { id: "op", head: tr("Op"), cls: "mu cut hide-u", cell: (r) => r.op },
      {
        id: "iso",
        head: tr("isolated"),
        num: true,
        down: true,
        cell: (r) => html`<span class="${over(iso(r))}">${error(iso(r))}</span>`,
      },
      {
        id: "acc",
        head: tr("accumulated"),
        num: true,
        down: true,
        cell: (r) => html`<span class="${over(r.rel_l2)}">${error(r.rel_l2)}</span>`,
      },
      { head: tr("max abs"), num: true, cls: "hide-t", cell: (r) => error(r.max_abs) },
      { head: "NaN", num: true, cls: "hide-t", cell: (r) => r.nan_candidate || 0 },
      { head: "", cell: (r) => words[at.get(r.name).state] },
    ],
    keys: { index: (r, i) => i, name: (r) => r.name, op: (r) => r.op, iso, acc: (r) => r.rel_l2 },
  };
}

const TRAITS = [
  ["profile", "baseline", "comparison", "tolerance"],
  ["colour_by", "hidden_types", "sort", "filter"],
].flat();

/** The table's columns, rows and what they add up to, and the rows that pass the filter. */
function prepared(c) {
  return c.memo("table", [c.dark, ...TRAITS.map((n) => c.get(n))], () => {
    const table = c.get("comparison") ? errorColumns(c) : profileColumns(c);
    const options = { filter: c.get("filter"), sort: c.get("sort"), keys: table.keys };
    return { ...table, shown: view(table.rows, options) };
  });
}

function count({ rows, value, total, of, shown }) {
  const part = shown.reduce((a, x) => a + value(x.row), 0) / (total || 1);
  return html`${tr("{shown} of {all} rows", { shown: shown.length, all: rows.length })}${
    of ? tr(", {share} of {whole}", { share: percent(100 * part), whole: of }) : ""
  }`;
}

function head({ columns }, sort) {
  const id = sort.replace("-", ""),
    down = sort.startsWith("-");
  const named = (col) =>
    col.id
      ? html`<button type="button" data-sort=${col.id}>
          ${col.head}${col.id === id ? (down ? " ↓" : " ↑") : ""}
        </button>`
      : col.head;
  return html`<tr>
    ${columns.map(
      (col) =>
        html`<th
          class="${col.num ? "num" : ""} ${((col.cls || "").match(/hide-\w/) || [""])[0]}"
          aria-sort=${col.id === id ? (down ? "descending" : "ascending") : nothing}
        >
          ${named(col)}
        </th>`,
    )}
  </tr>`;
}

/** The rows in sight, and room for those above and below. */
function body({ columns, shown }, [first, last]) {
  const pad = (n) =>
    n > 0 && !STILL
      ? html`<tr class="pad" aria-hidden="true">
          <td colspan=${columns.length} style="height:${n * ROW}px"></td>
        </tr>`
      : nothing;
  return html`${pad(first)}${shown.slice(first, last).map(
    ({ row, i }) =>
      html`<tr data-k=${row.name} aria-rowindex=${i + 1}>
        ${columns.map(
          (col) =>
            html`<td class="${col.num ? "num" : ""} ${col.cls || ""}">${col.cell(row, i)}</td>`,
        )}
      </tr>`,
  )}${pad(shown.length - last)}`;
}

const scroller = (c) => c.root.querySelector(".tw");

/** The slice that is to be made now. */
function range(c, { shown }) {
  if (STILL) return [0, Math.min(STILL_ROWS, shown.length)];
  const box = c.local.box || { scrollTop: 0, clientHeight: 400 };
  return slice(shown.length, box.scrollTop, box.clientHeight || 400);
}

function scrolled(c) {
  const [first, last] = range(c, prepared(c)),
    [a, b] = c.local.range;
  const ends = (first < a && first === 0) || (last > b && last === prepared(c).shown.length);
  if (first < a - SPARE / 2 || last > b + SPARE / 2 || ends) c.draw();
}

export default widget({
  name: "table",
  empty: {
    title: tr("No layers yet"),
    text: tr("Every layer as a row: time, kernel, share. Sort by header, filter by text."),
  },
  ready: (c) => Boolean(c.get("comparison") || c.get("profile")),
  view(c) {
    const table = prepared(c);
    c.local.range = range(c, table);
    const filter = html`<input
      type="search"
      placeholder=${tr("Filter: layer, op, kernel")}
      aria-label=${tr("Filter layers")}
      data-find="filter"
      .value=${live(c.get("filter"))}
    />`;
    return html`<div class="card" style=${STILL ? nothing : `height:${c.get("height")}px`}>
      <div class="row bar0">${STILL ? nothing : filter}<span class="mu">${count(table)}</span></div>
      <div
        class="tw"
        ${keyed(tr("Layers. Arrow keys move the selection."))}
        @scroll=${() => scrolled(c)}
      >
        <table aria-rowcount=${table.rows.length}>
          <thead>
            ${head(table, c.get("sort"))}
          </thead>
          <tbody>
            ${body(table, c.local.range)}
          </tbody>
        </table>
      </div>
    </div>`;
  },
  watch: [...TRAITS, "height"],
  after(c) {
    c.local.box = scroller(c);
    const fresh = c.changed("rows", [c.get("profile"), c.get("comparison")]);
    if (fresh && c.current) this.reveal(c, c.current);
  },
  order: (c) => prepared(c).shown.map((x) => x.row.name),
  tip: (c, name) => (name.length > SHORT ? name : ""),
  reveal(c, name) {
    const box = scroller(c),
      i = prepared(c).shown.findIndex((x) => x.row.name === name);
    if (!box || i < 0) return;
    const y = i * ROW;
    if (y < box.scrollTop || y + ROW > box.scrollTop + box.clientHeight - 34)
      box.scrollTop = Math.max(0, y - box.clientHeight / 2.4);
    c.draw();
  },
  input: (c, name, value) => c.set({ filter: value }, { soft: true }),
  click(c, event) {
    const id = event.target.closest("[data-sort]")?.dataset.sort;
    if (!id) return false;
    const now = c.get("sort"),
      col = prepared(c).columns.find((x) => x.id === id);
    const natural = col.down ? `-${id}` : id,
      other = col.down ? id : `-${id}`;
    c.set({ sort: now === natural ? other : natural });
    return true;
  },
});
