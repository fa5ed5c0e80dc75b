// What runs, how far it is, what waits for it; Cancel for each. Below may be an older result.
import { html, nothing } from "#template";
import { widget } from "#view";
import { button, counted, progressBar } from "../_shared/parts.js";
import { ICONS } from "../_shared/icons.js";
import { tr } from "../_shared/words.js";

const runs = (j) => j.state !== "waiting";

const stopped = (j) =>
  html`<li class="next">
    ${ICONS.attention}<span class="what">${j.title}</span><span class="mu">${tr("stopped")}</span>
  </li>`;

const line = (j) =>
  html`<li class=${runs(j) ? "now" : "next"}>
    ${runs(j) ? ICONS.running : ICONS.todo}<span class="what">${j.title}</span
    ><span class="mu">${runs(j) ? counted(j) : tr("waiting")}</span
    ><span class="sp"></span>${runs(j) ? progressBar(j) : nothing}${button("cancel", tr("Cancel"), {
      kind: "sm",
      payload: { job: j.id },
    })}
  </li>`;

export default widget({
  name: "running",
  view: (c) =>
    c.get("jobs").length
      ? html`<div class="card pad" role="status">
          <ul>
            ${c.get("jobs").map(c.lost ? stopped : line)}
          </ul>
          ${c.get("shown") ? html`<p class="mu">${tr("Shown below: {what}", { what: c.get("shown") })}</p>` : nothing}
        </div>`
      : nothing,
  watch: ["jobs", "shown"],
});
