// The question of a step, and what can be done about it.
import { html, nothing, STILL } from "#template";
import { widget } from "#view";
import { button, choice, dot, lostLine, segments } from "../_shared/parts.js";

export default widget({
  name: "header",
  view(c) {
    const values = c.get("values"),
      s = c.get("segments"),
      { dark } = c;
    const labeled = (x) =>
      html`<label class="lbl"
        >${x.backend ? dot(x.backend, dark) : nothing}${x.label || ""}${choice(
          x.name,
          x.options,
          values[x.name],
          x.says || x.label || x.name,
          x.disabled,
          x.why,
        )}</label
      >`;
    // In the Workbench the top bar says it.
    const alone = !STILL && !c.root.closest(".lite-workbench");
    return html`<div class="hd">
      <h2>${c.get("title")}</h2>
      ${c.lost && alone ? lostLine : nothing}
      ${
        s.options
          ? segments(
              s.name,
              s.options.map(([v, text, b]) => [v, text, b ? dot(b, dark) : null]),
              values[s.name],
              s.label || s.name,
            )
          : nothing
      }${STILL ? nothing : c.get("selects").map(labeled)}<span class="end"
        ><span class="mu">${c.get("note")}</span>${c
          .get("buttons")
          .map((b) =>
            button(b.id, b.label, { kind: b.primary ? "pri" : "", disabled: b.disabled, why: b.why }),
          )}</span
      >
    </div>`;
  },
  watch: ["title", "note", "segments", "selects", "values", "buttons"],
  set: (c, name, value) => c.set({ values: { ...c.get("values"), [name]: value } }),
});
