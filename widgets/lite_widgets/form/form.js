// A few labelled lines of text, and one button that takes them.
import { html } from "../_shared/markup.js";
import { widget } from "../_shared/view.js";
import { button, prose } from "../_shared/parts.js";

/** Fields that must be filled in and are not. */
export const missing = (fields, values) =>
  fields.filter((f) => !f.optional && !(values[f.name] || "").trim()).map((f) => f.label);

const read = (c) =>
  Object.fromEntries(
    [...c.root.querySelectorAll("[data-field]")].map((e) => [e.dataset.field, e.value.trim()]),
  );

function submit(c) {
  const values = read(c),
    lacks = missing(c.get("fields"), values);
  if (lacks.length) {
    c.say(`${lacks.join(", ")} missing`);
    c.root.querySelector(`[data-field]:placeholder-shown`)?.focus();
    return;
  }
  c.act("submit", { values });
}

export default widget({
  name: "form",
  frame: (c) =>
    html`<form class="card">
      <div class="ch">
        <h3>${c.get("title")}</h3>
        <span class="sp"></span>${button("close", "Close", { kind: "sm" })}
      </div>
      <div class="cb">
        ${c.get("fields").map(
          (f) =>
            html`<label
              ><span>${f.label}${f.optional ? html` <small>optional</small>` : ""}</span
              ><input
                type="text"
                spellcheck="false"
                autocomplete="off"
                data-field="${f.name}"
                data-focus="field-${f.name}"
                placeholder="${f.hint || " "}"
                value="${c.get("values")[f.name] || ""}"
            /></label>`,
        )}
        <div class="row">
          <button type="submit" class="btn pri" data-focus="submit">${c.get("button")}</button
          ><small>${prose(c.get("note"))}</small>
        </div>
      </div>
    </form>`,
  watch: Object.fromEntries(
    ["title", "fields", "values", "button", "note"].map((n) => [n, ["frame"]]),
  ),
  after(c) {
    c.root.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault(); // the page stays
      submit(c);
    });
  },
});
