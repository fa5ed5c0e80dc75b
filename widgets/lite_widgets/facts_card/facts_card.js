// Names and values.
import { html, nothing } from "#template";
import { widget } from "#view";
import { THIN } from "../_shared/format.js";
import { card, prose } from "../_shared/parts.js";

export default widget({
  name: "facts",
  view(c) {
    const big = c.get("big").length
      ? html`<div class="row" style="gap:24px;margin-bottom:12px;align-items:start">
          ${c.get("big").map(
            ([label, value, unit, note]) =>
              html`<div style="display:grid;gap:4px">
                <small>${label}</small><span class="big">${value}<small>${THIN}${unit}</small></span
                ><small>${note || ""}</small>
              </div>`,
          )}
        </div>`
      : nothing;
    return card({
      title: c.get("title"),
      body: html`${big}
        <dl class="kv">
          ${c.get("facts").map(
            ([k, v]) =>
              html`<dt>${k}</dt>
                <dd>${prose(v)}</dd>`,
          )}
        </dl>`,
    });
  },
  watch: ["title", "facts", "big"],
});
