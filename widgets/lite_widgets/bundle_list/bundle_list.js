// What goes to the device.
import { html } from "#template";
import { widget } from "#view";
import { bytes } from "../_shared/format.js";
import { bar, button, tick } from "../_shared/parts.js";
import { tr } from "../_shared/words.js";

const included = (items, chosen) => items.filter((i) => i.fixed || chosen.includes(i.id));

export default widget({
  name: "bundle",
  empty: { title: tr("Nothing to ship yet") },
  ready: (c) => c.get("items").length > 0,
  view(c) {
    const items = c.get("items"),
      chosen = c.get("chosen"),
      inside = new Set(included(items, chosen).map((i) => i.id));
    const total = included(items, chosen).reduce((a, i) => a + i.bytes, 0),
      most = Math.max(...items.map((i) => i.bytes), 1);
    return html`<div class="card">
      <div class="ch">
        <h3>${c.get("title")}</h3>
        <span class="mu">${c.get("note")}</span
        ><span class="sp"></span
        >${button("write", tr("{button}, about {size}", { button: c.get("button"), size: bytes(total) }), { kind: "pri" })}
      </div>
      <div class="tw">
        <table>
          <thead>
            <tr>
              <th></th>
              <th>${tr("File")}</th>
              <th class="hide-s">${tr("Contents")}</th>
              <th class="num">${tr("Size")}</th>
              <th></th>
            </tr>
          </thead>
          <tbody>
            ${items.map(
              (i) =>
                html`<tr>
                  <td>
                    ${tick("data-item", i.id, inside.has(i.id), {
                      label: i.file,
                      disabled: Boolean(i.fixed),
                      why: tr("The model is always part of it."),
                    })}
                  </td>
                  <td class="mono">${i.file}</td>
                  <td class="mu hide-s">${i.what || ""}</td>
                  <td class="num">${bytes(i.bytes)}</td>
                  <td style="width:84px">
                    ${bar(i.bytes / most, inside.has(i.id) ? "var(--accent)" : "var(--track)", 64)}
                  </td>
                </tr>`,
            )}
          </tbody>
          <tfoot>
            <tr>
              <td></td>
              <td><b>${tr("Total")}</b></td>
              <td class="hide-s"></td>
              <td class="num"><b>${bytes(total)}</b></td>
              <td></td>
            </tr>
          </tfoot>
        </table>
      </div>
    </div>`;
  },
  watch: ["items", "chosen", "title", "note", "button"],
  click(c, event) {
    const id = event.target.closest("[data-item]")?.dataset.item;
    if (!id) return false;
    const chosen = c.get("chosen");
    c.set({ chosen: chosen.includes(id) ? chosen.filter((x) => x !== id) : [...chosen, id] });
    return true;
  },
});
