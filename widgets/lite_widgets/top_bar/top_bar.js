// What is open and what is running. It also carries the frame's style and theme.
import { html, nothing } from "#template";
import { widget } from "#view";
import { button, choice, counted, lostLine, progressBar } from "../_shared/parts.js";
import { ICONS } from "../_shared/icons.js";
import { tr, trn } from "../_shared/words.js";

const running = ([j, ...next]) =>
  html`<span class="job"
    ><span class="cut">${j.title}</span
    ><span class="mu hide-n">${counted(j)}</span
    >${progressBar(j)}${button("cancel", tr("Cancel"), { kind: "sm", payload: { job: j.id } })}${
      next.length
        ? html`<span class="chip" data-tip=${next.map((x) => x.title).join("\n")}
            >${trn("{n} waiting", "{n} waiting", next.length)}</span
          >`
        : nothing
    }</span
  >`;

/** Brings the session back: nobody hears of a click, so the page itself runs the cell. */
const restore = (c) =>
  c.get("restore") && window.liteWorkbench?.runBelow
    ? html`<button type="button" class="btn sm pri" data-restore>${tr("Restore")}</button>`
    : nothing;

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
              tr("Version"),
            )
          : versions.length
            ? html`<span class="mu">${versions[0]}</span>`
            : nothing
      }${
        c.get("undo") && !c.get("jobs").length
          ? html`<span data-tip=${c.get("undo")}>${button("undo", tr("Undo"), { kind: "sm" })}</span>`
          : nothing
      }${c.lost ? html`${lostLine}${restore(c)}` : nothing}<span class="sp"></span>${
        c.lost ? nothing : c.get("jobs").length ? running(c.get("jobs")) : html`<span class="mu">${c.get("note")}</span>`
      }
    </div>`;
  },
  watch: ["title", "versions", "version", "jobs", "undo", "note", "picture", "restore"],
  after(c) {
    const picture = c.get("picture");
    if (picture) window.liteWorkbench?.keepPicture(c.root, picture);
    const theme = () =>
      c.root.closest(".lite-workbench")?.setAttribute("data-theme", c.root.dataset.theme);
    theme();
    requestAnimationFrame(theme); // the first drawing happens before the view is in the page
  },
  click(c, event) {
    if (!event.target.closest("[data-restore]")) return false;
    void window.liteWorkbench.runBelow(c.root, c.get("restore"));
    return true;
  },
});
