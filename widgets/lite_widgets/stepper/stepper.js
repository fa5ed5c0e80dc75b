// The walk: where you are, what is done, what needs attention.
import { html, nothing } from "#template";
import { widget } from "#view";
import { ICONS, STATE_WORDS } from "../_shared/icons.js";
import { afterKey } from "../_shared/selection.js";
import { tr } from "../_shared/words.js";

const NAMES = {
  Model: tr("Model"),
  Check: tr("Check"),
  Target: tr("Target"),
  Convert: tr("Convert"),
  Quantize: tr("Quantize"),
  Run: tr("Run"),
  Evaluate: tr("Evaluate"),
  Profile: tr("Profile"),
  Compare: tr("Compare"),
  Deploy: tr("Deploy"),
};
const REMADE = 200; // ms until the widgets of a step are replaced
const named = (step) => NAMES[step.name] ?? step.name;

/** Show the body of a step at once, without waiting for the kernel: bodies carry its class. A focus
 * that would be lost with the step before goes to the tab of this one. */
function show(c) {
  const frame = c.root.closest(".lite-workbench");
  if (!frame) return;
  const current = c.get("current");
  const changed = c.local.shown !== undefined && c.local.shown !== current;
  c.local.shown = current;
  for (const body of frame.querySelectorAll(".lite-step"))
    body.classList.toggle("lite-shown", body.classList.contains(`lite-step-${current}`));
  const focused = document.activeElement;
  const lost = focused === document.body || focused.closest(".lite-step:not(.lite-shown)");
  if (changed && lost) c.root.querySelector(`[data-step="${CSS.escape(current)}"]`)?.focus();
}

/** Remembers what has the keys inside a step, until a person takes them elsewhere. */
function follow(c) {
  const frame = c.root.closest(".lite-workbench");
  if (!frame || c.local.frame === frame) return;
  c.local.frame = frame;
  frame.addEventListener("focusin", ({ target }) => {
    c.local.held = target.closest(".lite-step") ? target : undefined;
  });
  frame.addEventListener("focusout", ({ target }) =>
    requestAnimationFrame(() => {
      if (target === c.local.held && target.isConnected && target !== document.activeElement)
        c.local.held = undefined;
    }),
  );
}

/** A step that is made anew takes what had the keys with it: its tab gets them. */
function keep(c) {
  if (!c.local.held || c.local.held.isConnected || document.activeElement !== document.body) return;
  c.local.held = undefined;
  c.root.querySelector(`[data-step="${CSS.escape(c.get("current"))}"]`)?.focus();
}

export default widget({
  name: "stepper",
  view: (c) =>
    html`<ol>
      ${c.get("steps").map(
        (s) =>
          html`<li>
            <button
              type="button"
              class="${s.state}"
              data-step="${s.name}"
              aria-current=${s.name === c.get("current") ? "step" : nothing}
              aria-label="${named(s)}: ${STATE_WORDS[s.state]}${s.result ? `, ${s.result}` : ""}"
            >
              ${ICONS[c.lost && s.state === "running" ? "attention" : s.state]}<span class="nm">${named(s)}</span
              ><span class="rs" title="${s.result || ""}">${c.lost && s.state === "running" ? tr("stopped") : (s.result || "").replaceAll("×", "×\u200b")}</span>
            </button>
          </li>`,
      )}
    </ol>`,
  watch: ["steps", "current"],
  after(c) {
    show(c);
    follow(c);
    requestAnimationFrame(() => {
      show(c);
      follow(c);
    });
    setTimeout(() => keep(c), REMADE);
  },
  key(c, event) {
    const at = event.target.closest("[data-step]");
    const next =
      at &&
      afterKey(
        c.get("steps").map((s) => s.name),
        at.dataset.step,
        event.key,
      );
    if (!next) return false;
    c.root.querySelector(`[data-step="${CSS.escape(next)}"]`).focus();
    return true;
  },
  click(c, event) {
    const at = event.target.closest("[data-step]");
    if (at) {
      c.set({ current: at.dataset.step });
      show(c);
    }
    return Boolean(at);
  },
});
