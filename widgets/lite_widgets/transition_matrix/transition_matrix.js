// Hand-overs from row to column, in ms.
import { html } from "#template";
import { widget } from "#view";
import { BACKENDS, backendName, inkOn, scale } from "../_shared/colour.js";
import { fixed, THIN } from "../_shared/format.js";
import { dot, select } from "../_shared/parts.js";
import { tr, trn } from "../_shared/words.js";

/** Names on both sides, in order of first use, and the cell between two. */
export function matrix(cells) {
  const names = [...new Set(cells.flatMap((x) => [x.source, x.target]))].sort();
  const at = (a, b) => cells.find((x) => x.source === a && x.target === b) || null;
  return { names, at, max: Math.max(...cells.map((x) => x.ms), 1e-9) };
}

const GROUPS = { backend: tr("backends"), precision: tr("precisions"), layout: tr("layouts") };

const label = (name, dark) =>
  BACKENDS[name] ? html`${dot(name, dark)} ${backendName(name)}` : name;

const cellTip = ({ names, ms }) =>
  `${trn("{n} transfer", "{n} transfers", names.length)}, ${fixed(ms)}${THIN}ms\n${names.join("\n")}`;

export default widget({
  name: "transitions",
  empty: { title: tr("Nothing measured yet") },
  ready: (c) => Boolean(c.get("profile")),
  view(c) {
    const { names, at, max } = matrix(c.get("cells"));
    const body = names.length
      ? html`<table>
          <thead>
            <tr>
              <th>${tr("from ↓ to →")}</th>
              ${names.map((n) => html`<th class="num">${label(n, c.dark)}</th>`)}
            </tr>
          </thead>
          <tbody>
            ${names.map(
              (a) =>
                html`<tr>
                  <td>${label(a, c.dark)}</td>
                  ${names.map((b) => {
                    const cell = at(a, b);
                    if (!cell) return html`<td class="num mu">·</td>`;
                    const fill = scale("time", 0.3 + 0.55 * (cell.ms / max), c.dark);
                    return html`<td
                      class="num cell"
                      style="background:${fill};color:${inkOn(fill)}"
                    >
                      <button
                        type="button"
                        data-cell="${a}|${b}"
                        data-tip="${cellTip(cell)}"
                        aria-label=${tr("{a} to {b}, {time}", { a, b, time: `${fixed(cell.ms)} ms` })}
                      >
                        ${fixed(cell.ms)}
                      </button>
                    </td>`;
                  })}
                </tr>`,
            )}
          </tbody>
        </table>`
      : html`<p class="mu">${tr("No transfers between {groups}.", { groups: GROUPS[c.get("by")] })}</p>`;
    return html`<div class="card pad">
      <div class="row">
        <h3>${tr("Transfers, ms")}</h3>
        <span class="sp"></span>${select(
          "by",
          tr("between"),
          Object.entries(GROUPS),
          c.get("by"),
        )}
      </div>
      ${body}
    </div>`;
  },
  watch: ["profile", "cells", "by"],
  click(c, event) {
    const cell = event.target.closest("[data-cell]");
    if (!cell) return false;
    const [a, b] = cell.dataset.cell.split("|");
    c.select(matrix(c.get("cells")).at(a, b).names);
    return true;
  },
});
