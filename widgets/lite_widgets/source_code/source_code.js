// The same few lines in several languages.
import { html } from "#template";
import { widget } from "#view";
import { copyButton, segments } from "../_shared/parts.js";
import { tr } from "../_shared/words.js";

export default widget({
  name: "source",
  ready: (c) => Object.keys(c.get("sources")).length > 0,
  empty: { title: tr("No code yet") },
  view(c) {
    const names = Object.keys(c.get("sources")),
      text = c.get("sources")[c.get("language")] || "";
    return html`<div class="card">
      <div class="ch">
        <h3>${c.get("title")}</h3>
        ${segments(
          "language",
          names.map((n) => [n, n]),
          c.get("language"),
          tr("Language"),
        )}<span class="sp"></span>${copyButton(text, "btn sm")}
      </div>
      <pre tabindex="0">${text}</pre>
    </div>`;
  },
  watch: ["sources", "language", "title"],
});
