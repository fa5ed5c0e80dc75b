// What is open and what is running. It also carries the frame's style and theme.
import { html, nothing } from "#template";
import { widget } from "#view";
import { button, choice, progressBar } from "../_shared/parts.js";
import { ICONS } from "../_shared/icons.js";

function job(j) {
  const part = j.total > 0 ? Math.min(100, (100 * (j.done || 0)) / j.total) : 0;
  const counted = [j.total > 0 ? `${j.done || 0} of ${j.total}` : "", j.left]
    .filter(Boolean)
    .join(" · ");
  return html`<span class="job"
    ><span class="cut">${j.title}</span
    ><span class="mu hide-n">${counted}</span
    >${progressBar(j.title, part)}${button("cancel", "Cancel", { kind: "sm" })}</span
  >`;
}

export default widget({
  name: "top",
  view(c) {
    const versions = c.get("versions");
    return html`<div class="top">
      <span class="brand">${ICONS.logo}Lite Workbench</span
      ><span class="mu cut">${c.get("title")}</span>${
        versions.length > 1
          ? choice(
              "version",
              versions.map((v) => [v, v]),
              c.get("version"),
              "Version",
            )
          : versions.length
            ? html`<span class="mu">${versions[0]}</span>`
            : nothing
      }<span class="gone" role="status">The kernel was restarted; run this cell again</span
      ><span class="sp"></span>${
        c.get("job") ? job(c.get("job")) : html`<span class="mu">${c.get("note")}</span>`
      }
    </div>`;
  },
  watch: ["title", "versions", "version", "job", "note", "picture"],
  after(c) {
    const picture = c.get("picture");
    if (picture) window.liteWorkbench?.keepPicture(c.root, picture);
    const theme = () =>
      c.root.closest(".lite-workbench")?.setAttribute("data-theme", c.root.dataset.theme);
    theme();
    requestAnimationFrame(theme); // the first drawing happens before the view is in the page
  },
});
