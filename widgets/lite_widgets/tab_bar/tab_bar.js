// Tabs of a card.
import { html, nothing } from "#template";
import { widget } from "#view";
import { chip } from "../_shared/parts.js";
import { afterKey } from "../_shared/selection.js";

/** Bodies are marked lite-tab-0, lite-tab-1, … in the order of the tabs. */
function show(c) {
  const box = c.root.closest(".lite-tabbed");
  const at = c.get("tabs").findIndex((x) => x.name === c.get("current"));
  for (const body of box ? box.querySelectorAll(":scope > .lite-tab") : [])
    body.classList.toggle("lite-shown", body.classList.contains(`lite-tab-${at}`));
}

export default widget({
  name: "tabs",
  view: (c) =>
    html`<div class="tabs" role="tablist">
      ${c
        .get("tabs")
        .map(
          (x) =>
            html`<button
              type="button"
              role="tab"
              data-tab="${x.name}"
              tabindex="${x.name === c.get("current") ? 0 : -1}"
              aria-selected="${x.name === c.get("current")}"
            >
              ${x.name}${x.badge ? html` ${chip(x.badge, "warn")}` : nothing}
            </button>`,
        )}
    </div>`,
  watch: ["tabs", "current"],
  after(c) {
    show(c);
    requestAnimationFrame(() => show(c));
  },
  key(c, event) {
    const at = event.target.closest("[data-tab]");
    const next =
      at &&
      afterKey(
        c.get("tabs").map((x) => x.name),
        at.dataset.tab,
        event.key,
      );
    if (!next) return false;
    c.set({ current: next });
    show(c);
    requestAnimationFrame(() =>
      requestAnimationFrame(() => c.root.querySelector("[aria-selected=true]")?.focus()),
    );
    return true;
  },
  click(c, event) {
    const at = event.target.closest("[data-tab]");
    if (at) {
      c.set({ current: at.dataset.tab });
      show(c);
    }
    return Boolean(at);
  },
});
