// A few labeled lines of text, and one button that takes them.
import { html, nothing } from "#template";
import { widget } from "#view";
import { button, prose } from "../_shared/parts.js";
import { tr } from "../_shared/words.js";

/** Fields that must be filled in and are not. */
export const missing = (fields, values) =>
  fields.filter((f) => !f.optional && !f.options && !(values[f.name] || "").trim()).map((f) => f.label);

const read = (c) =>
  Object.fromEntries(
    [...c.root.querySelectorAll("[data-field]")].map((e) => [e.dataset.field, e.value.trim()]),
  );

function submit(c, event) {
  event.preventDefault(); // the page stays
  if (c.get("blocked")) return;
  const values = read(c),
    lacks = missing(c.get("fields"), values);
  if (lacks.length) {
    const named = c.get("fields").filter((f) => lacks.includes(f.label));
    c.set({ values, errors: Object.fromEntries(named.map((f) => [f.name, tr("required")])) });
    c.say(tr("{fields} missing", { fields: lacks.join(", ") }));
    c.root.querySelector(`[data-field="${CSS.escape(named[0].name)}"]`)?.focus();
    return;
  }
  c.act("submit", { values });
}

/** One of some values. */
const pick = (c, f) =>
  html`<select
    class="sel"
    data-field="${f.name}"
    aria-invalid=${c.get("errors")[f.name] ? "true" : nothing}
  >
    ${f.options.map(
      ([value, text]) =>
        html`<option value=${value} .selected=${value === (c.get("values")[f.name] ?? f.options[0][0])}>${text}</option>`,
    )}
  </select>`;

export default widget({
  name: "form",
  view: (c) =>
    html`<form class="card" @submit=${(event) => submit(c, event)}>
      <div class="ch">
        <h3>${c.get("title")}</h3>
        <span class="sp"></span>${c.get("closable") ? button("close", tr("Close"), { kind: "sm" }) : nothing}
      </div>
      <div class="cb">
        ${c
          .get("fields")
          .map(
            (f) =>
              html`<label class=${c.get("errors")[f.name] ? "wrong" : nothing}
                ><span>${f.label}${f.optional ? html`<small> (${tr("optional")})</small>` : nothing}</span
                >${f.options ? pick(c, f) : html`<input
                  type="text"
                  spellcheck="false"
                  autocomplete="off"
                  data-field="${f.name}"
                  placeholder="${f.hint || " "}"
                  aria-invalid=${c.get("errors")[f.name] ? "true" : nothing}
                  .value=${c.get("values")[f.name] || ""}
                />`}${
                  c.get("errors")[f.name]
                    ? html`<small class="bad" role="alert">${prose(c.get("errors")[f.name])}</small>`
                    : nothing
                }</label
              >`,
          )}
        <div class="row">
          <button type="submit" class="btn pri" ?disabled=${Boolean(c.get("blocked"))}>${c.get("button")}</button
          ><small>${prose(c.get("blocked") || c.get("note"))}</small>
        </div>
      </div>
    </form>`,
  watch: ["title", "fields", "values", "errors", "button", "note", "blocked", "closable"],
  after(c) {
    if (c.local.heard) return;
    c.local.heard = true;
    c.root.addEventListener("focusin", ({ relatedTarget: from }) => {
      if (from && !c.root.contains(from)) c.local.from = from;
    });
  },
  key(c, event) {
    if (event.key === "Escape" && c.get("closable")) {
      c.local.from?.focus(); // where the keys were before: what is hidden cannot have them
      c.act("close");
      return true;
    }
    if (event.key !== "Enter" || event.target.tagName !== "INPUT") return false;
    event.target.form.requestSubmit(); // in a notebook of JupyterLab the browser does not do it
    return true;
  },
});
