// One run over time: a track for each thread, for a device's queue and for every other backend.
import { html, nothing, svg } from "#template";
import { widget } from "#view";
import { fit, linear } from "../_shared/scale.js";
import { encode, rowTip } from "../_shared/encode.js";
import { inkOn } from "../_shared/colour.js";
import { ms, percent } from "../_shared/format.js";
import { key, keyed, patterns, square } from "../_shared/parts.js";
import { follow } from "../_shared/pointer.js";
import { tr } from "../_shared/words.js";

const LEFT = 108,
  RIGHT = 8,
  TOP = 22,
  TRACK = 30,
  BAR = 22;
const LEAST_PX = 0.5,
  LABEL_PX = 28;
const STEP = 2; // of one zoom

const length = (tracks) => Math.max(...tracks.flatMap((t) => t.events.map((e) => e.end_ms)), 1e-9);

/** The window [from, to] in ms, kept within the run and no narrower than a 10,000th of it. */
export function within(whole, from, to) {
  const wide = Math.min(Math.max(to - from, whole / 1e4), whole);
  const start = Math.min(Math.max(from, 0), whole - wide);
  return [start, start + wide];
}

/** Round times in a window: three to eight. */
export function marks([from, to]) {
  const raw = (to - from) / 6,
    power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((x) => x * power >= raw) * power;
  const out = [];
  for (let i = Math.ceil(from / step); i * step <= to; i++) out.push(+(i * step).toPrecision(12));
  return out;
}

/** Events of the window, without those that would be drawn inside the pixel of one before. */
export function visible(events, X, [from, to]) {
  let drawn = -Infinity;
  return events.filter((e) => {
    if (e.end_ms < from || e.start_ms > to) return false;
    const end = X(e.end_ms);
    if (end - drawn < LEAST_PX) return false;
    drawn = end;
    return true;
  });
}

export function timelineSvg(tracks, { width, view, e, rows, paint }) {
  const X = linear(view, [LEFT, width - RIGHT]);
  const bottom = TOP + tracks.length * TRACK,
    clip = `${paint.id}t`;
  const box = (event, y) => {
    const row = rows.get(event.name),
      x = Math.max(X(event.start_ms), LEFT - 2),
      w = Math.max(Math.min(X(event.end_ms), width) - x, LEAST_PX);
    const at = { x: x.toFixed(2), y, w: w.toFixed(2) };
    if (event.kind === "wait" || !row)
      return svg`<rect class="wait" data-tip=${tr("{layer}: waits for the other threads, {ms} ms", { layer: event.name, ms: ms(event.end_ms - event.start_ms) })} x=${at.x} y=${y + 6} width=${at.w} height=${BAR - 12} />`;
    const fill = event.kind === "copy" ? paint.copy : e.fill(row);
    const label = w > LABEL_PX && event.kind !== "copy" ? fit(event.name.split("/").pop(), w - 6) : "";
    return svg`<g data-k=${event.name}
      ><rect class="nd0 mark" x=${at.x} y=${y} width=${Math.max(w - 0.6, LEAST_PX).toFixed(2)} height=${BAR} fill=${fill}
        stroke="var(--ink2)" stroke-opacity=".35" stroke-width=".5" />${
          label
            ? svg`<text x=${(x + 4).toFixed(1)} y=${y + 15} style="fill:${inkOn(fill)}">${label}</text>`
            : nothing
        }
      <rect class="ring" x=${at.x} y=${y - 1} width=${Math.max(w, 2).toFixed(2)} height=${BAR + 2}
    /></g>`;
  };
  const grid = marks(view).map(
    (v) =>
      svg`<line class="grid" x1=${X(v)} x2=${X(v)} y1=${TOP - 4} y2=${bottom} /><text x=${X(v)} y="11" text-anchor="middle">${+v.toPrecision(5)}</text>`,
  );
  const lanes = tracks.map((track, i) => {
    const y = TOP + i * TRACK + 4;
    return svg`<text class="t1" x="0" y=${y + 15}>${fit(track.name, LEFT - 46)}</text
      ><text x=${LEFT - 8} y=${y + 15} text-anchor="end">${percent(100 * track.busy, 0)}</text>
      <g clip-path="url(#${clip})">${visible(track.events, X, view).map((event) => box(event, y))}</g>`;
  });
  return html`<svg class="chart" height=${bottom + 6} viewBox="0 0 ${width} ${bottom + 6}" role="img" aria-label=${tr("Timeline of one run")}>
    ${patterns(paint)}<defs><clipPath id=${clip}><rect x=${LEFT - 1} y="0" width=${Math.max(width - LEFT - RIGHT + 2, 1)} height=${bottom + 6} /></clipPath></defs>
    ${grid}<text x="0" y="11">${tr("busy")}</text><text x=${LEFT - 14} y="11" text-anchor="end">ms</text>${lanes}
    <line class="ax" x1=${LEFT} x2=${width - RIGHT} y1=${bottom} y2=${bottom} />
  </svg>`;
}

const tracksOf = (c) => c.get("timeline").tracks;
const view = (c) => {
  const whole = length(tracksOf(c));
  return c.local.of === c.get("timeline") ? c.local.view : [0, whole];
};

function show(c, from, to) {
  c.local.of = c.get("timeline");
  c.local.view = within(length(tracksOf(c)), from, to);
  c.draw();
}

/** Around a part (0…1) of the window. */
function zoom(c, by, part = 0.5) {
  const [from, to] = view(c),
    at = from + part * (to - from);
  show(c, at - (at - from) / by, at + (to - at) / by);
}

const chart = (c) => c.root.querySelector("[data-part=chart]");
const partOf = (c, event) => {
  const box = chart(c).getBoundingClientRect();
  return Math.min(Math.max((event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT), 0), 1);
};

const encoding = (c) =>
  encode(c.get("profile"), { by: c.get("colour_by"), hidden: c.get("hidden_types"), paint: c.paint });
const row = (c, name) => c.get("profile").layers.find((r) => r.name === name);
const spans = (c, name) => tracksOf(c).flatMap((t) => t.events.filter((e) => e.name === name));

export default widget({
  name: "timeline",
  empty: {
    title: tr("No times yet"),
    text: tr("When each layer ran, on which thread or queue, and where they waited."),
  },
  ready: (c) => Boolean(c.get("profile") && c.get("timeline")?.tracks.length),
  view(c) {
    const { paint } = c,
      tracks = tracksOf(c),
      e = encoding(c);
    const rows = new Map(c.get("profile").layers.map((r) => [r.name, r]));
    const kinds = new Set(tracks.flatMap((t) => t.events.map((event) => event.kind)));
    const whole = length(tracks),
      [from, to] = view(c);
    const wheel = {
      handleEvent(event) {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        zoom(c, event.deltaY < 0 ? 1.25 : 0.8, partOf(c, event));
      },
      passive: false,
    };
    const zoomed = to - from < whole * 0.999;
    const tool = (id, text, label, off) =>
      html`<button type="button" class="btn sm sqb" data-set=${id} ?disabled=${off} aria-label=${label} data-tip=${label}>${text}</button>`;
    return html`<div class="card pad">
      <p class="ink">${c.get("timeline").summary}</p>
      <div class="lg">
        ${e.legend}${kinds.has("wait") ? key(square("var(--track)"), tr("waits for the other threads")) : nothing}
        <span class="sp"></span>
        <span class="row"
          >${tool("out", "−", tr("Zoom out"), !zoomed)}${tool("in", "+", tr("Zoom in"), false)}${tool(
            "all", "↔", tr("Show the whole run"), !zoomed,
          )}</span
        >
      </div>
      <div data-part="chart" @wheel=${wheel} ${keyed(tr("Timeline. Arrow keys go through the layers, plus and minus zoom."), "shift")}>
        ${c.fitted((width) =>
          width < 200 ? nothing : timelineSvg(tracks, { width, view: [from, to], e, rows, paint }),
        )}
      </div>
    </div>`;
  },
  watch: ["profile", "timeline", "colour_by", "hidden_types"],
  set(c, name) {
    if (name === "all") show(c, 0, Infinity);
    else zoom(c, name === "in" ? STEP : 1 / STEP);
  },
  pan(c, event, area) {
    const [from, to] = view(c),
      scale = (to - from) / (area.clientWidth - LEFT - RIGHT);
    follow((e) => show(c, from - (e.clientX - event.clientX) * scale, to - (e.clientX - event.clientX) * scale));
  },
  key(c, event) {
    if (!event.target.closest("[data-keys]")) return false;
    if (event.key === "+" || event.key === "=") zoom(c, STEP);
    else if (event.key === "-") zoom(c, 1 / STEP);
    else if (event.key === "0") show(c, 0, Infinity);
    else return false;
    return true;
  },
  reveal(c, name) {
    const found = spans(c, name);
    if (!found.length) return;
    const start = Math.min(...found.map((e) => e.start_ms)),
      end = Math.max(...found.map((e) => e.end_ms));
    const [from, to] = view(c);
    if (start >= from && end <= to) return;
    const middle = (start + end) / 2,
      half = Math.max(to - from, 2 * (end - start)) / 2;
    show(c, middle - half, middle + half);
  },
  order: (c) => c.get("profile").layers.map((r) => r.name),
  say(c, name) {
    const found = spans(c, name);
    return found.length ? tr("{layer}, from {start} to {end} ms", { layer: name, start: ms(found[0].start_ms), end: ms(Math.max(...found.map((e) => e.end_ms))) }) : name;
  },
  tip: (c, name) => row(c, name) && rowTip(row(c, name), encoding(c)),
});
