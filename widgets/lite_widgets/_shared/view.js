// The glue between an anywidget model and functions that draw.
//
// A widget is a plain object:
//   name     its CSS class is lite-NAME             watch   traits whose change draws it anew
//   view(c) → template                              ready(c)  false: there is nothing to draw yet
//   after(c) after each drawing                     close(c)  when the view goes
//   order(c) → names in this view's order           say(c, name) → text for the live region
//   tip(c, name, element) → tooltip text            reveal(c, name)  scroll the name into view
//   set(c, name, value) for [data-set]              input(c, name, value) for [data-range|find]
//   drag(c, name, event) for [data-drag]            key(c, event) → true when it was used
//   click(c, event) → true when it was used         within(c, area, rect) → names inside a lasso
//   pan(c, event, area) for a drag that is no lasso
// Templates speak through attributes: data-k (a layer), data-tip, data-action + data-payload,
// data-copy, data-set (+ data-value), data-range, data-find, data-drag, data-keys (arrow keys move
// the selection), data-lasso ("drag" or "shift").

import { fitted, html, nothing, render } from "#template";
import { announce, listen } from "./link.js";
import { onGestures } from "./gestures.js";
import { outbox } from "./outbox.js";
import { empty, notice } from "./parts.js";
import { keepKeys } from "./shortcuts.js";
import { onThemeChange, pageIsDark } from "./theme.js";
import { Tip } from "./tip.js";
import { tr, trn } from "./words.js";

const FOLLOWED = ["selected", "tolerance", "op_tolerances", "hidden_types", "colour_by", "hovered"];
const SAVE_EVERY_MS = 120;
const ASKS = "[data-action],select[data-set],input[type=file],.seg button";
let views = 0;

export function widget(spec) {
  return {
    spec,
    render({ model, el }) {
      const c = new View(spec, model, el);
      return () => c.close();
    },
  };
}

class View {
  constructor(spec, model, host) {
    this.spec = spec;
    this.model = model;
    this.local = {};
    this.uid = `lite${++views}x${Math.floor(performance.now() * 1000).toString(36)}`;
    this.stops = [];
    this.inputs = new Map();
    this.made = new Map();
    this.urls = new Map();
    this.unseen = false; // a selection that has not been scrolled into view
    this.unsaved = new Map(); // values that stand before the model has them
    host.classList.add("lite-host");
    this.root = document.createElement("div");
    this.root.className = `lite lite-${spec.name}`;
    host.appendChild(this.root);
    this.width = this.root.clientWidth;
    this.lost = false; // the kernel that holds the model has gone
    this.#theme();
    this.#draw();
    this.#listen();
  }

  // ---- state --------------------------------------------------------------------------------
  get(name) {
    return this.unsaved.has(name) ? this.unsaved.get(name) : this.model.get(name);
  }

  has(name) {
    return this.model.get(name) !== undefined;
  }

  /** Set traits and tell Python. {soft: true}: while dragging, at most every 120 ms. */
  set(values, { soft = false } = {}) {
    const shared = Object.fromEntries(Object.entries(values).filter(([n]) => FOLLOWED.includes(n)));
    this.#put(values, soft);
    if (Object.keys(shared).length) announce(this.get("link"), this.uid, shared);
  }

  #put(values, soft) {
    const kept = this.unsaved.size > 0;
    for (const [name, value] of Object.entries(values)) this.unsaved.set(name, value);
    if (!soft) this.save();
    else if (!this.saveTimer) {
      this.saveTimer = setTimeout(() => this.save(), SAVE_EVERY_MS);
      outbox.keep(this);
    }
    // A value that goes back before Python heard of it changes no model.
    if (soft || kept) this.draw();
  }

  /** Give the model the values that wait; behind an action that waits itself. */
  save() {
    clearTimeout(this.saveTimer);
    this.saveTimer = null;
    outbox.unkeep(this);
    if (!outbox.busy) return this.#send();
    outbox.later(() => this.#send());
    this.#chosen();
    this.draw();
  }

  #send() {
    const values = [...this.unsaved];
    this.unsaved.clear();
    outbox.put(this.model, values);
  }

  act(id, payload = {}) {
    outbox.act(() => {
      if (this.lost) return;
      const seq = (this.model.get("action")?.seq || 0) + 1;
      outbox.put(this.model, [["action", { ...payload, id, seq }]]);
    });
  }

  /** Whether these inputs differ from those of the call before; true for the first one. */
  changed(name, inputs) {
    const before = this.inputs.get(name);
    this.inputs.set(name, inputs);
    return !before || inputs.some((input, i) => input !== before[i]);
  }

  /** What `make` gives for these inputs, made once as long as they stay the same. */
  memo(name, inputs, make) {
    if (this.changed(name, inputs)) this.made.set(name, make());
    return this.made.get(name);
  }

  /** An address of the image in this trait, for an <img>; null where there is none. */
  imageUrl(name) {
    const bytes = this.get(name);
    return this.memo(`image ${name}`, [bytes], () => {
      URL.revokeObjectURL(this.urls.get(name));
      this.urls.set(name, bytes?.byteLength ? URL.createObjectURL(new Blob([bytes])) : null);
      return this.urls.get(name);
    });
  }

  get selected() {
    return this.get("selected") || [];
  }

  get current() {
    const all = this.selected;
    return all.length ? all[all.length - 1] : null;
  }

  select(names) {
    this.set({ selected: names });
    this.say(
      names.length > 1
        ? trn("{n} layer selected", "{n} layers selected", names.length)
        : names.length && this.spec.say
          ? this.spec.say(this, names[0])
          : names[0] || tr("selection cleared"),
    );
  }

  say(text) {
    this.live.textContent = text;
  }

  get dark() {
    return this.root.dataset.theme === "dark";
  }

  /** What drawing functions need to know of the page. */
  get paint() {
    const id = this.uid;
    return { dark: this.dark, id, copy: `url(#${id}c)`, carried: `url(#${id}e)` };
  }

  // ---- drawing ------------------------------------------------------------------------------
  /** Draw in the next frame: many changes, one drawing. */
  draw() {
    this.frameRequest ??= requestAnimationFrame(() => {
      this.frameRequest = null;
      this.#draw();
    });
  }

  #draw() {
    const first = !this.frameBox;
    const shown = this.#render();
    if (first) {
      const [, frameBox, tipBox, live] = this.root.children;
      Object.assign(this, { frameBox, live, tip: new Tip(tipBox, this.root) });
    }
    if (shown && !this.shown) this.#render(); // now that it is in the page, it has a width
    this.shown = shown;
    if (shown) this.#drawn();
    else this.#disable(); // what stands in its place has buttons, too
  }

  #drawn() {
    this.spec.after?.(this);
    this.#disable();
    this.mark();
  }

  /** Without a kernel nobody hears of a click: what asks for work cannot be pressed. */
  #disable() {
    if (!this.lost && !this.disabled) return;
    for (const e of this.root.querySelectorAll(ASKS))
      if (this.lost && !e.disabled) {
        e.disabled = true;
        e.dataset.lost = "";
      } else if (!this.lost && "lost" in e.dataset) {
        e.disabled = false;
        delete e.dataset.lost;
      }
    this.disabled = this.lost;
  }

  /** ipywidgets marks the box around us when the kernel has gone, until it is back. */
  #connection() {
    this.lost = Boolean(this.root.closest(".jupyter-widgets-disconnected"));
    outbox.forget(this.model);
    this.root.classList.toggle("lost", this.lost);
    this.draw();
  }

  /** Whether the widget itself is shown, not only its state. */
  #render() {
    const status = this.get("status") || {};
    const ready = !this.spec.ready || this.spec.ready(this);
    const shown = ready && status.kind !== "error" && status.kind !== "empty";
    const waiting = ready ? nothing : empty(this.spec.empty || { title: tr("Nothing here yet") });
    const kinds = { empty, error: notice };
    render(
      html`<div class="status">${kinds[status.kind] ? kinds[status.kind](status) : waiting}</div>
        <div class="frame" ?hidden=${!shown}>${shown ? this.spec.view(this) : nothing}</div>
        <div class="tip" aria-hidden="true"></div>
        <div class="sr" aria-live="polite"></div>`,
      this.root,
    );
    return shown;
  }

  /** A part of the template that depends on the width of the element around it. */
  fitted(draw) {
    return fitted(draw, () => this.#drawn());
  }

  /** Selection and hovering only toggle classes; a new selection is scrolled into view. */
  mark() {
    const toggle = (cls, names) => {
      const wanted = new Set(names);
      for (const old of this.frameBox.querySelectorAll(`.${cls}[data-k]`))
        if (!wanted.has(old.dataset.k)) old.classList.remove(cls);
      for (const name of wanted)
        for (const e of this.frameBox.querySelectorAll(`[data-k="${CSS.escape(name)}"]`))
          e.classList.add(cls);
    };
    toggle("sel", this.selected);
    toggle("hov", this.local.hovered ? [this.local.hovered] : []);
    // What is on screen may be of an older model, or hidden: the drawing to come reveals.
    if (!this.unseen || !this.shown || !this.width || this.frameRequest) return;
    this.unseen = false;
    if (this.current) this.spec.reveal?.(this, this.current);
  }

  #theme() {
    const wish = this.get("theme");
    const dark = wish === "dark" || (wish !== "light" && pageIsDark());
    this.root.dataset.theme = dark ? "dark" : "light";
  }

  // ---- events -------------------------------------------------------------------------------
  #listen() {
    const { model, spec, root } = this;
    const on = (event, handler) => {
      model.on(event, handler);
      this.stops.push(() => model.off(event, handler));
    };
    for (const trait of ["status", ...spec.watch]) on(`change:${trait}`, () => this.draw());
    on("change:selected", () => this.#chosen());
    const retheme = () => {
      const before = this.dark;
      this.#theme();
      if (this.dark !== before) this.draw();
    };
    on("change:theme", retheme);
    on("destroy", () => (this.lost = true)); // Python has closed the widget
    on("comm_live_update", () => setTimeout(() => this.#connection(), 0)); // after the box heard
    this.stops.push(onThemeChange(retheme), keepKeys(root));
    this.stops.push(
      listen(
        () => this.get("link"),
        this.uid,
        (values) => this.#hear(values),
      ),
    );
    const seen = new ResizeObserver(() => this.#resized());
    seen.observe(root);
    this.stops.push(() => seen.disconnect());
    onGestures(this);
  }

  #chosen() {
    this.unseen = true;
    this.mark();
  }

  #hear(values) {
    if ("hovered" in values) {
      this.local.hovered = values.hovered;
      this.mark();
    }
    const own = Object.entries(values).filter(([name]) => name !== "hovered" && this.has(name));
    // Python hears it from every widget. Kept back, a selection would go out with a later change
    // of this widget and undo what Python has set meanwhile.
    if (own.length) this.#put(Object.fromEntries(own), !("selected" in values));
  }

  #resized() {
    const width = this.root.clientWidth;
    if (width === this.width) return;
    this.width = width;
    if (width) this.draw();
  }

  close() {
    this.spec.close?.(this);
    cancelAnimationFrame(this.frameRequest);
    if (this.saveTimer) this.save();
    outbox.forget(this.model);
    for (const stop of this.stops) stop();
    for (const url of this.urls.values()) URL.revokeObjectURL(url);
    render(nothing, this.root); // its directives stop watching
    this.root.remove();
  }
}
