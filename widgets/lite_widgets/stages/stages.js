// A longer job as a line of states.
import { html, nothing } from "#template";
import { widget } from "#view";
import { THIN } from "../_shared/format.js";
import { button, prose } from "../_shared/parts.js";
import { ICONS, STATE_WORDS } from "../_shared/icons.js";
import { tr } from "../_shared/words.js";

export default widget({
  name: "stages",
  empty: { title: tr("Nothing started yet") },
  ready: (c) => c.get("stages").length > 0,
  view(c) {
    const runs = c.get("stages").some((s) => s.state === "running");
    return html`<div class="card">
      <div class="ch">
        <h3>${c.get("title")}</h3>
        <span class="sp"></span
        >${runs && c.get("cancellable") ? button("cancel", tr("Cancel"), { kind: "sm" }) : nothing}
      </div>
      <div class="cb">
        <ol>
          ${c
            .get("stages")
            .map(
              (s) =>
                html`<li aria-label="${s.name}: ${STATE_WORDS[s.state] || s.state}">
                  ${ICONS[s.state] || ICONS.todo}<span
                    >${s.name}${s.detail ? html`<br /><small>${prose(s.detail)}</small>` : nothing}</span
                  ><small
                    >${
                      typeof s.seconds === "number"
                        ? `${s.seconds.toFixed(1)}${THIN}s${s.state === "running" ? " left" : ""}`
                        : ""
                    }</small
                  >
                </li>`,
            )}
        </ol>
      </div>
    </div>`;
  },
  watch: ["stages", "title", "cancellable"],
});
