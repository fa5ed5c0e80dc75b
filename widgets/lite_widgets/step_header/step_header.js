// The question of a step, and what can be done about it.
import { html } from "../_shared/markup.js";
import { widget } from "../_shared/view.js";
import { button, dot, segments } from "../_shared/parts.js";

export default widget({
  name: "header",
  frame(c) {
    const values = c.get("values"),
      s = c.get("segments"),
      { dark } = c;
    const choice = (x) =>
      html`<label class="lbl"
        >${x.backend ? dot(x.backend, dark) : ""}${x.label || ""}<select
          class="sel"
          data-set="${x.name}"
          data-focus="set-${x.name}"
          aria-label="${x.says || x.label || x.name}"
        >
          ${x.options.map(
            ([v, text]) =>
              html`<option value="${v}" ${v === values[x.name] ? html` selected` : ""}>
                ${text}
              </option>`,
          )}
        </select></label
      >`;
    return html`<div class="hd">
      <h2>${c.get("title")}</h2>
      ${
        s.options
          ? segments(
              s.name,
              s.options.map(([v, text, b]) => [v, text, b ? dot(b, dark) : null]),
              values[s.name],
              s.label || s.name,
            )
          : ""
      }${c.get("selects").map(choice)}<span class="end"
        ><span class="mu">${c.get("note")}</span>${c
          .get("buttons")
          .map((b) => button(b.id, b.label, { kind: b.primary ? "pri" : "", disabled: b.disabled }))}</span
      >
    </div>`;
  },
  watch: Object.fromEntries(
    ["title", "note", "segments", "selects", "values", "buttons"].map((n) => [n, ["frame"]]),
  ),
  set: (c, name, value) => c.set({ values: { ...c.get("values"), [name]: value } }),
});
