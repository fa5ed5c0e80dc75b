// What can run here: facts, state, one fix.
import { html, nothing } from "#template";
import { widget } from "#view";
import { button, chip, dot, notice, prose, tick } from "../_shared/parts.js";
import { ICONS, STATE_WORDS } from "../_shared/icons.js";
import { THIN } from "../_shared/format.js";
import { tr } from "../_shared/words.js";

const STATES = {
  ready: ["done", "ok", "ready"],
  limited: ["done", "warn", "limited"],
  broken: ["attention", "bad", tr("not available")],
  running: ["running", "", "checking"],
};

/** reach ✓ 120 ms · copy ✓ 0.8 s · run △ …: how far a device was reached. */
const stageLine = (stages) =>
  html`<ol class="stages">
    ${stages.map(
      (s) =>
        html`<li
          title="${s.detail || ""}"
          aria-label="${s.name}: ${STATE_WORDS[s.state] || s.state}"
        >
          ${ICONS[s.state] || ICONS.todo}<span>${s.name}</span>${
            typeof s.seconds === "number" && s.state === "done"
              ? html`<small>${s.seconds.toFixed(s.seconds < 1 ? 2 : 1)}${THIN}s</small>`
              : nothing
          }
        </li>`,
    )}
  </ol>`;

function targetCard(c, card) {
  const [icon, kind, word] = STATES[card.state] || STATES.limited;
  const chosen = c.get("chosen").includes(card.id);
  const use =
    c.get("choose") && card.tick !== false && card.state !== "broken"
      ? tick("data-card", card.id, chosen, { label: tr("Use {name}", { name: card.title }) })
      : nothing;
  return html`<div class="card" data-id="${card.id}">
    <div class="ch">
      ${ICONS[icon]}
      <h3>${card.backend ? html`${dot(card.backend, c.dark)} ` : nothing}${card.title}</h3>
      <span class="sp"></span>${chip(card.chip || word, kind)}${use}
    </div>
    <div class="cb">
      <dl class="kv">
        ${card.facts.map(
          ([k, v]) =>
            html`<dt>${k}</dt>
              <dd>${prose(v)}</dd>`,
        )}
      </dl>
      ${card.stages ? stageLine(card.stages) : nothing}
      ${card.notice ? notice({ again: tr("Check again"), ...card.notice }) : nothing}${
        card.actions
          ? html`<div class="row">
              ${card.actions.map(([id, word]) => button(id, word, { kind: "sm" }))}
            </div>`
          : nothing
      }
    </div>
  </div>`;
}

export default widget({
  name: "doctor",
  empty: {
    title: tr("Not checked yet"),
    text:
      tr("Processors, OpenCL devices, emulators and boards: what is available here, and how to fix what is not."),
    button: tr("Check this machine"),
    action: "again",
  },
  ready: (c) => c.get("cards").length > 0,
  view: (c) => html`<div class="two">${c.get("cards").map((card) => targetCard(c, card))}</div>`,
  watch: ["cards", "choose", "chosen"],
  click(c, event) {
    const ticked = event.target.closest("[data-card]");
    if (ticked) {
      const id = ticked.dataset.card,
        chosen = c.get("chosen");
      c.set({ chosen: chosen.includes(id) ? chosen.filter((x) => x !== id) : [...chosen, id] });
      return true;
    }
    const pressed = event.target.closest("[data-action]"),
      card = pressed && pressed.closest("[data-id]");
    if (!card) return false;
    c.act(pressed.dataset.action, { card: card.dataset.id });
    return true;
  },
});
