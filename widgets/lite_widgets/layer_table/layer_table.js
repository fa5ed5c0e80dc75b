// Every layer as a row; sorted by header, filtered by text. Rows outside the window are not made.
import { html } from "../_shared/markup.js";
import { widget } from "../_shared/view.js";
import { encode, isCopy } from "../_shared/encode.js";
import { judge } from "../_shared/judge.js";
import { scale } from "../_shared/colour.js";
import { error, fixed, NONE, percent, signed, tail, THIN } from "../_shared/format.js";
import { bar, chip, dot, keyed } from "../_shared/parts.js";

const ROW = 26,
  SPARE = 12;

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
  const first = Math.max(0, Math.floor(scrollTop / ROW) - SPARE);
  return [first, Math.min(total, Math.ceil((scrollTop + height) / ROW) + SPARE)];
}

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
      head: "Layer",
      cls: "cut name",
      cell: (r) =>
        isCopy(r)
          ? html`<i class="mu">${tail(r.name)}</i>`
          : html`${dot(r.backend, dark)} ${tail(r.name)}`,
    },
    { id: "op", head: "Op", cls: "mu cut hide-u", cell: (r) => (isCopy(r) ? "copy" : r.op) },
    { id: "kernel", head: "Kernel", cls: "mono mu cut hide-t kernel", cell: (r) => r.kernel || "" },
    {
      id: "value",
      head: e.unit,
      num: true,
      down: true,
      cell: (r) => fixed(e.value(r), e.unit === "ms" ? 3 : 2),
    },
  ];
  if (!baseline && !profile.emulated && profile.layers.some((r) => r.ci_ms))
    columns.push({
      head: "±",
      num: true,
      cls: "mu",
      cell: (r) => (r.ci_ms ? `${Math.round(r.ci_ms * 1e3)}${THIN}µs` : ""),
    });
  columns.push({
    head: "Share",
    cell: (r) =>
      html`${bar(e.value(r) / e.max, isCopy(r) ? stripes : e.fill(r), 44)}
        <span class="mu">${percent((100 * e.value(r)) / e.total)}</span>`,
  });
  if (baseline)
    columns.push({
      id: "change",
      head: `Δ ${baseline.backend}`,
      num: true,
      down: true,
      cell: (r) =>
        isCopy(r)
          ? "new"
          : change(r) === null
            ? NONE
            : html`<span style="color:${scale("change", change(r) > 0 ? 0.97 : 0.03, dark)}"
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
    of: e.unit === "ms" ? "time" : "instructions",
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
  const judged = new Map(judge(comparison, tol).layers.map((l) => [l.name, l]));
  const words = {
    own: chip("own error", "bad"),
    carried: chip("carried", "warn"),
    within: chip("within"),
  };
  const iso = (r) => (r.isolated ? r.isolated.rel_l2 : null);
  const over = (v) => (v > tol ? "bad" : "");
  return {
    rows: comparison.layers,
    value: () => 1,
    total: comparison.layers.length,
    of: null,
    columns: [
      { id: "index", head: "#", num: true, cell: (r, i) => html`<span class="mu">${i + 1}</span>` },
      { id: "name", head: "Layer", cls: "cut name", cell: (r) => tail(r.name) },
      { id: "op", head: "Op", cls: "mu cut hide-u", cell: (r) => r.op },
      {
        id: "iso",
        head: "isolated",
        num: true,
        down: true,
        cell: (r) => html`<span class="${over(iso(r))}">${error(iso(r))}</span>`,
      },
      {
        id: "acc",
        head: "accumulated",
        num: true,
        down: true,
        cell: (r) => html`<span class="${over(r.rel_l2)}">${error(r.rel_l2)}</span>`,
      },
      { head: "max abs", num: true, cls: "hide-t", cell: (r) => error(r.max_abs) },
      { head: "NaN", num: true, cls: "hide-t", cell: (r) => r.nan_b || 0 },
      { head: "", cell: (r) => words[judged.get(r.name).state] },
    ],
    keys: { index: (r, i) => i, name: (r) => r.name, op: (r) => r.op, iso, acc: (r) => r.rel_l2 },
  };
}

const table = (c) => (c.get("comparison") ? errorColumns(c) : profileColumns(c));

function prepare(c) {
  const t = (c.local.table = table(c));
  c.local.shown = view(t.rows, { filter: c.get("filter"), sort: c.get("sort"), keys: t.keys });
}

export default widget({
  name: "table",
  empty: {
    title: "No layers yet",
    text: "Every layer as a row: time, kernel, share. Sort by header, filter by text.",
  },
  ready: (c) => Boolean(c.get("comparison") || c.get("profile")),
  frame(c) {
    prepare(c);
    return html`<div class="card" style="height:${c.get("height")}px">
      <div class="row bar0">
        <input
          type="search"
          placeholder="Filter: layer, op, kernel"
          aria-label="Filter layers"
          data-find="filter"
          data-focus="filter"
          value="${c.get("filter")}"
        /><span class="mu" data-part="count"></span>
      </div>
      <div
        class="tw"
        ${keyed("table", "Layers. Arrow keys move the selection.")}
      >
        <table aria-rowcount="${(c.get("comparison") || c.get("profile")).layers.length}">
          <thead data-part="head"></thead>
          <tbody data-part="rows"></tbody>
        </table>
      </div>
    </div>`;
  },
  parts: {
    count(c) {
      const { rows, value, total, of } = c.local.table,
        shown = c.local.shown;
      const part = shown.reduce((a, x) => a + value(x.row), 0) / (total || 1);
      return html`${shown.length} of ${rows.length}
      rows${of ? `, ${percent(100 * part)} of ${of}` : ""}`;
    },
    head(c) {
      const sort = c.get("sort"),
        id = sort.replace("-", ""),
        down = sort.startsWith("-");
      return html`<tr>
        ${c.local.table.columns.map(
          (col) =>
            html`<th
              class="${col.num ? "num" : ""} ${((col.cls || "").match(/hide-\w/) || [""])[0]}"
              ${col.id === id ? html` aria-sort="${down ? "descending" : "ascending"}"` : ""}
            >
              ${
                col.id
                  ? html`<button type="button" data-sort="${col.id}" data-focus="sort-${col.id}">
                      ${col.head}${col.id === id ? (down ? " ↓" : " ↑") : ""}
                    </button>`
                  : col.head
              }
            </th>`,
        )}
      </tr>`;
    },
    rows(c) {
      const box = c.root.querySelector(".tw"),
        { columns } = c.local.table,
        shown = c.local.shown;
      const [first, last] = (c.local.range = slice(
        shown.length,
        box.scrollTop,
        box.clientHeight || 400,
      ));
      const pad = (n) =>
        n > 0
          ? html`<tr class="pad" aria-hidden="true">
              <td colspan="${columns.length}" style="height:${n * ROW}px"></td>
            </tr>`
          : "";
      return html`${pad(first)}${shown.slice(first, last).map(
        ({ row, i }) =>
          html`<tr data-k="${row.name}" aria-rowindex="${i + 1}">
            ${columns.map(
              (col) =>
                html`<td class="${col.num ? "num" : ""} ${col.cls || ""}">${col.cell(row, i)}</td>`,
            )}
          </tr>`,
      )}${pad(shown.length - last)}`;
    },
  },
  acts: {
    all(c) {
      prepare(c);
      c.parts(["count", "head", "rows"]);
    },
  },
  watch: {
    profile: ["frame"],
    baseline: ["frame"],
    comparison: ["frame"],
    height: ["frame"],
    colour_by: ["all"],
    hidden_types: ["all"],
    tolerance: ["all"],
    sort: ["all"],
    filter: ["all"],
  },
  after(c) {
    const box = c.root.querySelector(".tw");
    box.addEventListener(
      "scroll",
      () => {
        const [first, last] = slice(c.local.shown.length, box.scrollTop, box.clientHeight);
        const [a, b] = c.local.range;
        if (
          first < a - SPARE / 2 ||
          last > b + SPARE / 2 ||
          (first < a && first === 0) ||
          (last > b && last === c.local.shown.length)
        ) {
          c.parts(["rows"]);
          c.mark();
        }
      },
      { passive: true },
    );
    if (c.current) this.reveal(c, c.current);
  },
  order: (c) => c.local.shown.map((x) => x.row.name),
  tip: (c, name) => (tail(name) === name ? "" : name),
  reveal(c, name) {
    const box = c.root.querySelector(".tw"),
      i = c.local.shown.findIndex((x) => x.row.name === name);
    if (!box || i < 0) return;
    const y = i * ROW;
    if (y < box.scrollTop || y + ROW > box.scrollTop + box.clientHeight - 34)
      box.scrollTop = Math.max(0, y - box.clientHeight / 2.4);
    c.parts(["rows"]);
    c.mark();
  },
  input: (c, name, value) => c.set({ filter: value }, { soft: true }),
  click(c, event) {
    const id = event.target.closest("[data-sort]")?.dataset.sort;
    if (!id) return false;
    const now = c.get("sort"),
      col = c.local.table.columns.find((x) => x.id === id);
    const natural = col.down ? `-${id}` : id,
      other = col.down ? id : `-${id}`;
    c.set({ sort: now === natural ? other : natural });
    return true;
  },
});
