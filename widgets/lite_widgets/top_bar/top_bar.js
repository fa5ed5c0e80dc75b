// What is open and what is running. It also carries the frame's style and theme.
import { html } from "../_shared/markup.js";
import { widget } from "../_shared/view.js";
import { button } from "../_shared/parts.js";
import { ICONS } from "../_shared/icons.js";

function job(j) {
  const part = j.total > 0 ? Math.min(100, (100 * (j.done || 0)) / j.total) : 0;
  const counted = [j.total > 0 ? `${j.done || 0} of ${j.total}` : "", j.left]
    .filter(Boolean)
    .join(" · ");
  return html`<span class="job"
    ><span class="cut">${j.title}</span><span class="mu hide-n">${counted}</span
    ><span
      class="bar"
      role="progressbar"
      aria-label="${j.title}"
      aria-valuemin="0"
      aria-valuemax="100"
      aria-valuenow="${Math.round(part)}"
      ><i style="width:${part}%"></i></span
    >${button("cancel", "Cancel", { kind: "sm" })}</span
  >`;
}

export default widget({
  name: "top",
  frame(c) {
    const versions = c.get("versions");
    return html`<div class="top">
      <span class="brand">${ICONS.logo}Lite Workbench</span
      ><span class="mu cut">${c.get("title")}</span>${
        versions.length > 1
          ? html`<select class="sel" data-set="version" data-focus="version" aria-label="Version">
              ${versions.map(
                (v) => html`<option${v === c.get("version") ? html` selected` : ""}>${v}</option>`,
              )}
            </select>`
          : versions.length
            ? html`<span class="mu">${versions[0]}</span>`
            : ""
      }<span class="gone" role="status">Its kernel is gone: run the cell again</span
      ><span class="sp"></span>${
        c.get("job") ? job(c.get("job")) : html`<span class="mu">${c.get("note")}</span>`
      }
    </div>`;
  },
  watch: {
    title: ["frame"],
    versions: ["frame"],
    version: ["frame"],
    job: ["frame"],
    note: ["frame"],
    picture: ["picture"],
  },
  acts: {
    picture: (c) => window.liteWorkbench?.keepPicture(c.root, c.get("picture")),
  },
  after(c) {
    const theme = () =>
      c.root.closest(".lite-workbench")?.setAttribute("data-theme", c.root.dataset.theme);
    theme();
    requestAnimationFrame(theme); // the first drawing happens before the view is in the page
  },
});
