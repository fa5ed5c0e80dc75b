// The Python of every click.
import { html, nothing } from "#template";
import { widget } from "#view";
import { button, copyButton } from "../_shared/parts.js";
import { tr } from "../_shared/words.js";

/** Cells below this one, where JupyterLab has our extension; else they are copied. */
async function insert(c) {
  const cells = c.get("cells");
  const count = window.liteWorkbench?.insertCells(c.root, cells) || 0;
  if (!count) {
    try {
      await navigator.clipboard.writeText(cells.join("\n"));
    } catch {
      c.set({ opened: true }); // no permission to copy: show them
    }
  }
  c.act("insert", { count });
}

export default widget({
  name: "code",
  view(c) {
    const lines = c.get("lines"),
      open = c.get("opened");
    return html`<div class="drawer">
      <div class="line">
        <button type="button" class="btn sm" data-open aria-expanded="${open}">
          ${open ? "▾" : "▸"} ${tr("Code")}
        </button>
        <span class="last"
          >${
            open
              ? html`<span class="mu">${tr("every click as a line of Python")}</span>`
              : html`<code>${lines[lines.length - 1] || ""}</code>`
          }</span
        >
        ${copyButton(lines.join("\n"), "btn sm")}${
          c.get("can_insert")
            ? html`<span class="hide-xs"
                >${button("insert", tr("Insert as cells"), { kind: "sm" })}</span
              >`
            : nothing
        }<span class="hide-xs">${button("export", tr("Export notebook"), { kind: "sm" })}</span>
      </div>
      ${
        open
          ? html`<ol>
              ${lines.map((line, i) => {
                const last = i === lines.length - 1;
                return html`<li class=${last ? "new" : ""}><code>${line}</code></li>`;
              })}
            </ol>`
          : nothing
      }
    </div>`;
  },
  watch: ["lines", "opened", "can_insert"],
  after(c) {
    const list = c.root.querySelector("ol");
    if (list) list.scrollTop = list.scrollHeight;
  },
  click(c, event) {
    if (event.target.closest("[data-action=insert]")) {
      insert(c);
      return true;
    }
    if (!event.target.closest("[data-open]")) return false;
    c.set({ opened: !c.get("opened") });
    return true;
  },
});
