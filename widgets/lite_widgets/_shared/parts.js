// The small pieces that every widget is made of.
import { attributes, html, live, nothing, STILL, svg } from "#template";
import { ICONS } from "./icons.js";
import { scale, backend as backendColour } from "./colour.js";
import { percent } from "./format.js";
import { tr } from "./words.js";

export const dot = (name, dark) =>
  html`<i class="dot" style="background:${backendColour(name, dark)}"></i>`;

export const square = (fill) => html`<i class="sq" style="background:${fill}"></i>`;

export const chip = (text, kind = "") => html`<span class="chip ${kind}">${text}</span>`;

export const key = (mark, text) => html`<span>${mark}${text}</span>`;

export function rampLegend(name, from, to, dark) {
  const cells = Array.from(
    { length: 18 },
    (_, i) => svg`<rect x=${i * 4} width="4.5" height="8" fill=${scale(name, i / 17, dark)} />`,
  );
  return html`<span
    >${from}<svg width="72" height="8" style="border-radius:2px" aria-hidden="true">${cells}</svg
    >${to}</span
  >`;
}

export const hatchKey = (fill, text) =>
  key(
    html`<svg width="10" height="10" aria-hidden="true">
      <rect width="10" height="10" fill=${fill} stroke="var(--ink2)" />
    </svg>`,
    text,
  );

/** A tick; `attribute` with `value` says whose it is. */
export const tick = (attribute, value, checked, { label = null, disabled = false, why = "" } = {}) =>
  STILL
    ? html`${checked ? "✓" : "–"}`
    : html`<input
        type="checkbox"
        .checked=${live(checked)}
        ?disabled=${disabled}
        title=${(disabled && why) || nothing}
        ${attributes({ [attribute]: value, "aria-label": label })}
      />`;

/** Options are [value, text] pairs; the change arrives as set(c, name, value). */
export const choice = (name, options, current, label = null, disabled = false, why = "") =>
  html`<select
    class="sel"
    data-set=${name}
    ?disabled=${disabled}
    title=${(disabled && why) || nothing}
    ${attributes({ "aria-label": label })}
  >
    ${options.map(
      ([value, text]) =>
        html`<option value=${value} .selected=${live(value === current)}>${text}</option>`,
    )}
  </select>`;

export const select = (name, label, options, current) =>
  STILL ? nothing : html`<label class="lbl">${label}${choice(name, options, current)}</label>`;

export const segments = (name, options, current, label) =>
  STILL
    ? nothing
    : html`<div class="seg" role="group" aria-label=${label}>
        ${options.map(
          ([v, text, mark]) =>
            html`<button
              type="button"
              data-set=${name}
              data-value=${v}
              aria-pressed=${v === current}
            >
              ${mark ?? nothing}${text}
            </button>`,
        )}
      </div>`;

/** One that cannot be pressed now keeps the focus and its reason, which `disabled` would take away:
 * after Enter on Run, the keys would be those of the page (gestures.js ignores the click). */
export const button = (id, text, { kind = "", payload = null, disabled = false, why = "" } = {}) =>
  STILL
    ? nothing
    : html`<button
        type="button"
        class="btn ${kind}"
        data-action=${id}
        data-payload=${payload ? JSON.stringify(payload) : nothing}
        aria-disabled=${disabled ? "true" : nothing}
        title=${(disabled && why) || nothing}
      >
        ${text}
      </button>`;

/** A link of the text that does something. */
export const link = (id, text, payload = {}, tip = nothing) =>
  STILL
    ? nothing
    : html`<button
        type="button"
        class="lnk"
        data-action=${id}
        data-payload=${JSON.stringify(payload)}
        data-tip=${tip}
      >
        ${text}
      </button>`;

/** Its words stand alone in the element, because `copyText` changes them for a moment. */
export const copyButton = (text, kind = "") =>
  STILL ? nothing : html`<button type="button" class=${kind} data-copy=${text}>${tr("Copy")}</button>`;

/** Copies what a button of `copyButton` is for, and says so on it. */
export async function copyText(target) {
  const before = target.textContent;
  try {
    await navigator.clipboard.writeText(target.dataset.copy);
    target.textContent = tr("Copied");
  } catch {
    // No permission (an http page, a sandboxed frame): leave the text selected for Ctrl+C.
    const text = target.parentElement.querySelector("span") || target;
    getSelection().selectAllChildren(text);
    target.textContent = tr("Press Ctrl+C");
  }
  setTimeout(() => {
    target.textContent = before;
  }, 1200);
}

/** Of a chart, table or list that is one stop of Tab, in which arrow keys move the selection;
 * `lasso` is "drag" or "shift" where dragging selects several. */
export const keyed = (label, lasso = null) =>
  attributes({
    "data-keys": "",
    tabindex: 0,
    role: "application",
    "aria-label": label,
    "data-lasso": lasso,
  });

/** Of a line that is dragged up and down, arriving as drag(c, name, event). */
export const grip = (name, label, { low, high, now, said }) =>
  attributes({
    class: "grip",
    "data-drag": name,
    tabindex: 0,
    role: "slider",
    "aria-label": label,
    "aria-orientation": "vertical",
    "aria-valuemin": low,
    "aria-valuemax": high,
    "aria-valuenow": now,
    "aria-valuetext": said,
  });

export const bar = (ratio, fill, width = 84) =>
  html`<i
    class="ib"
    style="width:${Math.max(Math.min(ratio, 1) * width, ratio > 0 ? 1 : 0).toFixed(
      1,
    )}px;background:${fill}"
  ></i>`;

export const shareBar = (ratio, fill = "var(--ink2)") =>
  html`<span class="share"
    ><i
      class="ib"
      style="width:${(100 * Math.min(ratio, 1)).toFixed(1)}%;min-width:${ratio > 0 ? 1 : 0}px;background:${fill}"
    ></i
    ><span class="num">${ratio > 0 ? percent(100 * ratio) : "–"}</span></span
  >`;

const fixLine = (code) => html`<div class="fix"><span>${code}</span>${copyButton(code)}</div>`;

/** `text` with `code` in backticks and **strong** marked; everything else stays text. */
export function prose(text) {
  return String(text ?? "")
    .split(/(`[^`]+`|\*\*[^*]+\*\*)/)
    .map((part) => {
      if (part.startsWith("`") && part.length > 2) return html`<code>${part.slice(1, -1)}</code>`;
      if (part.startsWith("**") && part.length > 4) return html`<b>${part.slice(2, -2)}</b>`;
      return part;
    });
}

/** {kind, what, where, fix, again, tried, actions: [[id, text, primary?]], detail} → the notice. */
export function notice({ kind = "error", what, where, detail, fix, again, tried, actions = [] }) {
  const icon = { error: ICONS.attention, warn: ICONS.warn, info: ICONS.info, done: ICONS.done }[
    kind
  ];
  const press = ([id, text, primary]) => button(id, text, { kind: primary ? "sm pri" : "sm" });
  const attempt = (row) =>
    html`<tr>
      ${row.map((cell, i) => html`<td class=${i === 1 ? "mono" : "wrap"}>${cell}</td>`)}
    </tr>`;
  return html`<div class="note ${kind}" role=${kind === "error" ? "alert" : "status"}>
    ${icon}
    <div class="bd">
      <div class="what">
        ${prose(what)}${where ? html` <span class="where">${prose(where)}</span>` : nothing}
      </div>
      ${detail ? html`<small>${prose(detail)}</small>` : nothing}${fix ? fixLine(fix) : nothing}${
        again ? html`<div class="row">${button("again", again, { kind: "sm" })}</div>` : nothing
      }${
        tried && tried.length
          ? html`<details>
              <summary class="lnk">${tr("What was tried ({count})", { count: tried.length })}</summary>
              <table>
                ${tried.map(attempt)}
              </table>
            </details>`
          : nothing
      }
    </div>
    ${actions.length ? html`<div class="row act">${actions.map(press)}</div>` : nothing}
  </div>`;
}

/** What to do after the kernel has gone. */
export const lostLine = html`<span class="lostline" role="status"
  >${tr("The kernel was restarted; run this cell again, or lw.restore()")}</span
>`;

/** How far a job is: 31 of 50 · about 1 s. */
export const counted = ({ done, total, left }) =>
  [total > 0 ? tr("{done} of {all}", { done: done || 0, all: total }) : "", left].filter(Boolean).join(" · ");

export function progressBar({ title, done, total }) {
  const part = total > 0 ? Math.min(100, (100 * (done || 0)) / total) : 0;
  return html`<div
    class="bar"
    role="progressbar"
    aria-valuemin="0"
    aria-valuemax="100"
    aria-valuenow=${Math.round(part)}
    aria-label=${title}
  >
    <i style="width:${part}%"></i>
  </div>`;
}

export function empty({ title, text, button: label, action = "start" }) {
  return html`<div class="empty">
    <h3>${title}</h3>
    ${text ? html`<p class="mu">${prose(text)}</p>` : nothing}${
      label ? button(action, label, { kind: "pri" }) : nothing
    }
  </div>`;
}

export const card = ({ title, legend, controls, body, foot, kind = "" }) =>
  html`<div class="card ${kind}">
    <div class="ch">
      <h3>${title}</h3>
      ${legend ?? nothing}<span class="sp"></span>${controls ?? nothing}
    </div>
    <div class="cb">${body}</div>
    ${foot ?? nothing}
  </div>`;

/** Hatches live in each drawing: a pattern inside a hidden drawing elsewhere would not paint. */
export const patterns = (paint) =>
  svg`<defs
    ><pattern
      id="${paint.id}c"
      width="5"
      height="5"
      patternUnits="userSpaceOnUse"
      patternTransform="rotate(45)"
      ><rect width="5" height="5" fill="var(--bg)" />
      <rect width="1.6" height="5" fill="var(--ink2)" /></pattern
    ><pattern
      id="${paint.id}e"
      width="6"
      height="6"
      patternUnits="userSpaceOnUse"
      patternTransform="rotate(45)"
      ><rect width="1.2" height="6" fill="var(--bad)" fill-opacity=".4" /></pattern
  ></defs>`;
