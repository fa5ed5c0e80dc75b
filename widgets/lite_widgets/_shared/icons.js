// State is an icon and a word, never colour alone.
import { html, svg } from "#template";
import { tr } from "./words.js";

const icon = (body) =>
  html`<svg class="icon" width="16" height="16" viewBox="0 0 16 16" aria-hidden="true">
    ${body}
  </svg>`;

export const ICONS = {
  done: icon(
    svg`<circle cx="8" cy="8" r="7" fill="var(--accent)" /><path
        d="M4.8 8.3l2.2 2.2 4.2-4.6"
        fill="none"
        stroke="var(--on-accent)"
        stroke-width="1.6"
      />`,
  ),
  todo: icon(
    svg`<circle
      cx="8"
      cy="8"
      r="6.4"
      fill="none"
      stroke="var(--ink2)"
      stroke-dasharray="2.2 2.2"
    />`,
  ),
  running: icon(
    svg`<circle cx="8" cy="8" r="6.2" fill="none" stroke="var(--track)" stroke-width="2.4" /><path
        class="spin"
        d="M8 1.8a6.2 6.2 0 0 1 6.2 6.2"
        fill="none"
        stroke="var(--accent)"
        stroke-width="2.4"
      />`,
  ),
  attention: icon(
    svg`<path d="M8 1.2l7 13H1z" fill="var(--bad)" /><path
        d="M8 6v4M8 11.4v1.4"
        stroke="var(--bg)"
        stroke-width="1.5"
      />`,
  ),
  warn: icon(
    svg`<path d="M8 1.2l7 13H1z" fill="none" stroke="var(--warn)" stroke-width="1.3" /><path
        d="M8 6v4M8 11.4v1.4"
        stroke="var(--warn)"
        stroke-width="1.5"
      />`,
  ),
  info: icon(
    svg`<circle cx="8" cy="8" r="6.6" fill="none" stroke="var(--accent)" stroke-width="1.3" /><path
        d="M8 7v4.4M8 4.4v1.5"
        stroke="var(--accent)"
        stroke-width="1.5"
      />`,
  ),
  logo: icon(
    svg`<path
      d="M2 13V3M2 13h12M5.5 10V7M9 10V4M12.5 10V8.5"
      stroke="var(--accent)"
      stroke-width="2"
      fill="none"
    />`,
  ),
};

export const STATE_WORDS = {
  done: "done",
  running: "running",
  attention: tr("needs attention"),
  todo: tr("to do"),
};
