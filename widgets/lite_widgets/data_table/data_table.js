// Rows of plain cells.
import { html, nothing } from "#template";
import { widget } from "#view";
import { backendName } from "../_shared/colour.js";
import { percent } from "../_shared/format.js";
import { bar, chip, dot, link, prose } from "../_shared/parts.js";
import { tr } from "../_shared/words.js";

const KINDS = {
  number: (v) => html`<td class="num">${v ?? "–"}</td>`,
  code: (v) => html`<td class="mono">${v ?? ""}</td>`,
  wrap: (v) => html`<td class="wrap">${prose(v)}</td>`,
  bar: (v) => {
    const [part, text] = Array.isArray(v) ? v : [v, percent(100 * (v ?? 0))];
    return html`<td>${bar(part ?? 0, "var(--ink2)", 120)} <span class="mu">${text}</span></td>`;
  },
  chip: (v) => html`<td>${v ? chip(v[0], v[1] || "") : nothing}</td>`,
  check: (v) =>
    Array.isArray(v)
      ? html`<td>${chip(v[0], v[1] || "warn")}</td>`
      : v === null || v === undefined
        ? html`<td class="mu">–</td>`
        : v
          ? html`<td><span class="yes" role="img" aria-label=${tr("supported")}>✓</span></td>`
          : html`<td><span class="no" role="img" aria-label=${tr("not supported")}>✗</span></td>`,
  action: (v) => html`<td class="wrap">${v ? (v[0] ? link(...v) : v[1]) : nothing}</td>`,
  text: (v) => html`<td>${v ?? ""}</td>`,
};

export default widget({
  name: "data",
  empty: { title: tr("Nothing here yet") },
  ready: (c) => c.get("columns").length > 0,
  view(c) {
    const columns = c.get("columns"),
      cell = (col, row) => (KINDS[col.kind] || KINDS.text)(row[col.id]);
    return html`<div class="card">
      ${
        c.get("title")
          ? html`<div class="ch">
              <h3>${c.get("title")}</h3>
              <span class="mu">${c.get("note")}</span>
            </div>`
          : nothing
      }
      <div
        class="tw"
        style=${c.get("height") ? `max-height:${c.get("height")}px` : nothing}
        tabindex="0"
        data-keys
        role="region"
        aria-label="${c.get("title") || tr("Table")}"
      >
        <table>
          <thead>
            <tr>
              ${columns.map(
                (col) =>
                  html`<th class="${col.kind === "number" ? "num" : col.kind}">
                    ${
                      col.backend
                        ? html`${dot(col.backend, c.dark)} ${backendName(col.backend)}`
                        : col.head
                    }
                  </th>`,
              )}
            </tr>
          </thead>
          <tbody>
            ${c.get("rows").map(
              (row) =>
                html`<tr data-k=${row.name || nothing}>
                  ${columns.map((col) => cell(col, row))}
                </tr>`,
            )}
          </tbody>
        </table>
      </div>
    </div>`;
  },
  watch: ["title", "note", "columns", "rows", "height"],
  order: (c) =>
    c
      .get("rows")
      .map((r) => r.name)
      .filter(Boolean),
});
