// Which kinds of layer the time goes into; unticked kinds fade everywhere.
import { html, nothing } from "#template";
import { widget } from "#view";
import { type as typeColour } from "../_shared/colour.js";
import { fixed } from "../_shared/format.js";
import { shareBar, square, tick } from "../_shared/parts.js";
import { totals, unitOf } from "../_shared/encode.js";
import { tr } from "../_shared/words.js";

const sum = (rows, of) => rows.reduce((a, r) => a + of(r), 0) || 1;

function timeTable(c, rows) {
  const off = new Set(c.get("hidden_types")),
    unit = unitOf(c.get("profile"));
  const ticked = sum(
    rows.filter((r) => !off.has(r.type)),
    (r) => r.value,
  );
  return html`<table>
      <thead>
        <tr>
          <th></th>
          <th>${tr("Layer type")}</th>
          <th class="num">${tr("Layers")}</th>
          <th class="num">${unit}</th>
          <th>${tr("Share of the selected types")}</th>
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (r) =>
            html`<tr class="${off.has(r.type) ? "off" : ""}">
              <td>
                ${tick("data-type", r.type, !off.has(r.type), { label: tr("Include {type}", { type: r.type }) })}
              </td>
              <td>${square(typeColour(r.type, c.dark))} ${r.type}</td>
              <td class="num">${r.layers}</td>
              <td class="num">${fixed(r.value, unit === "ms" ? 3 : 2)}</td>
              <td>
                ${off.has(r.type) ? "–" : shareBar(r.value / ticked, typeColour(r.type, c.dark))}
              </td>
            </tr>`,
        )}
      </tbody>
    </table>
    <p class="mu hint">${tr("Clear a type to hide it here, in the chart and in the graph.")}</p>`;
}

function costTable(c, rows) {
  const macs = sum(rows, (r) => r.macs),
    weights = sum(rows, (r) => r.weights);
  return html`<table class="cost">
    <thead>
      <tr>
        <th>${tr("Layer type")}</th>
        <th class="num">${tr("Layers")}</th>
        <th>${tr("Share of MACs")}</th>
        <th>${tr("Share of weights")}</th>
      </tr>
    </thead>
    <tbody>
      ${[...rows]
        .sort((a, b) => b.macs - a.macs)
        .map(
          (r) =>
            html`<tr>
              <td>${square(typeColour(r.type, c.dark))} ${r.type}</td>
              <td class="num">${r.layers}</td>
              <td>${shareBar(r.macs / macs)}</td>
              <td>${shareBar(r.weights / weights)}</td>
            </tr>`,
        )}
    </tbody>
  </table>`;
}

export default widget({
  name: "types",
  empty: { title: tr("No layers yet"), text: tr("Layer types and their share of the time.") },
  ready: (c) => Boolean(c.get("profile")),
  view: (c) =>
    html`<div class="card">
      ${c.get("title") ? html`<div class="ch"><h3>${c.get("title")}</h3></div>` : nothing}
      <div class="tw">
        ${(c.get("columns") === "cost" ? costTable : timeTable)(c, totals(c.get("profile")))}
      </div>
    </div>`,
  watch: ["profile", "columns", "title", "hidden_types"],
  click(c, event) {
    const box = event.target.closest("[data-type]");
    if (!box) return false;
    const off = new Set(c.get("hidden_types"));
    if (off.has(box.dataset.type)) off.delete(box.dataset.type);
    else off.add(box.dataset.type);
    c.set({ hidden_types: [...off] });
    return true;
  },
});
