// The glue between an anywidget model and pure drawing functions.
//
// A widget is a plain object:
//   name    CSS class is lite-NAME                     ready(c)  false: there is nothing to draw yet
//   frame(c) → markup; elements with data-part are filled by parts
//   parts   {name: (c, width, element) → markup}       watch     {trait: [part, …]}; "frame" = all
//   acts    {name: (c)} redrawing that is not filling an element; named in `watch` like a part
//   resized(c) after the width changed
//   order(c) → names in this view's order              say(c, name) → text for the live region
//   tip(c, name, element) → tooltip text               reveal(c, name) scroll the name into view
//   after(c) after each full drawing                   close(c)  when the view goes
//   set(c, name, value) for [data-set]                 input(c, name, value) for [data-range|find]
//   drag(c, name, event) for [data-drag]        key(c, event) → true when it was used
//   click(c, event) → true when it was used            within(c, part, box) → names inside a lasso
// Markup speaks through attributes: data-k (a layer), data-tip, data-action + data-payload,
// data-copy, data-set (+ data-value), data-range, data-find, data-drag, data-keys (arrow keys move
// the selection), data-lasso ("drag" or "shift"), data-focus (keeps focus over redrawing).

import { html } from "./markup.js";
import { announce, listen } from "./link.js";
import { afterClick, afterKey } from "./selection.js";
import { empty, notice, progress } from "./parts.js";
import { follow, inside, lasso } from "./pointer.js";
import { keepKeys } from "./shortcuts.js";
import { onThemeChange, pageIsDark } from "./theme.js";
import { Tip } from "./tip.js";

const FOLLOWED = ["selected", "tolerance", "op_tolerances", "hidden_types", "colour_by", "hovered"];
const SAVE_EVERY_MS = 120;
let made = 0;

export function widget(spec) {
  return {
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
    this.uid = `lite${++made}x${Math.floor(performance.now() * 1000).toString(36)}`;
    this.stops = [];
    this.dirty = new Set();
    this.pressed = false; // a button is held down
    this.unseen = false; // a selection that has not been scrolled into view
    this.widths = new WeakMap();
    this.unsaved = new Map();
    this.guarded = new Set();
    host.classList.add("lite-host");
    this.root = document.createElement("div");
    this.root.className = `lite lite-${spec.name}`;
    this.root.innerHTML = `<div class="status"></div><div class="frame"></div>
      <div class="tip" role="tooltip"></div><div class="sr" aria-live="polite"></div>`;
    const [statusBox, frameBox, tipBox, live] = this.root.children;
    Object.assign(this, { statusBox, frameBox, live, tip: new Tip(tipBox, this.root) });
    host.appendChild(this.root);
    this.#listen();
    this.#theme();
    this.draw();
  }

  // ---- state --------------------------------------------------------------------------------
  get(name) {
    return this.model.get(name);
  }

  has(name) {
    return this.model.get(name) !== undefined;
  }

  /** Set traits and tell Python. {soft: true}: while dragging, at most every 120 ms. */
  set(values, { soft = false } = {}) {
    if (soft) this.#keep(values);
    else for (const name of Object.keys(values)) this.unsaved.delete(name);
    for (const [name, value] of Object.entries(values)) this.model.set(name, value);
    const shared = Object.fromEntries(Object.entries(values).filter(([n]) => FOLLOWED.includes(n)));
    if (Object.keys(shared).length) announce(this.get("link"), this.uid, shared);
    if (!soft) return this.#save();
    this.saveTimer ??= setTimeout(() => this.#save(), SAVE_EVERY_MS);
    return undefined;
  }

  #save() {
    clearTimeout(this.saveTimer);
    this.saveTimer = null;
    this.unsaved.clear();
    this.model.save_changes();
  }

  /**
   * Until they are saved, these values stand: Python's echo of the value saved before may come
   * now, and would put the slider back. Restored after the echo is done, before the next drawing.
   */
  #keep(values) {
    const restore = (name) => {
      if (this.unsaved.has(name)) this.model.set(name, this.unsaved.get(name));
    };
    for (const [name, value] of Object.entries(values)) {
      this.unsaved.set(name, value);
      if (this.guarded.has(name)) continue;
      this.guarded.add(name);
      const guard = () => {
        if (this.unsaved.has(name) && this.model.get(name) !== this.unsaved.get(name))
          queueMicrotask(() => restore(name));
      };
      this.model.on(`change:${name}`, guard);
      this.stops.push(() => this.model.off(`change:${name}`, guard));
    }
  }

  act(id, payload = {}) {
    const seq = ((this.get("action") || {}).seq || 0) + 1;
    this.set({ action: { ...payload, id, seq } });
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
        ? `${names.length} layers selected`
        : names.length && this.spec.say
          ? this.spec.say(this, names[0])
          : names[0] || "selection cleared",
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
  draw() {
    if (this.pressed) {
      this.later(["frame"]);
      return;
    }
    this.#drawStatus();
    const kind = (this.get("status") || {}).kind;
    const ready = !this.spec.ready || this.spec.ready(this);
    const shown = ready && kind !== "error" && kind !== "empty";
    this.frameBox.hidden = !shown;
    if (!shown) {
      this.frameBox.innerHTML = "";
      return;
    }
    this.keepFocus(this.frameBox, () => {
      this.frameBox.innerHTML = this.spec.frame(this).text;
    });
    this.parts(Object.keys(this.spec.parts || {}));
    this.spec.after?.(this);
    this.mark();
  }

  #drawStatus() {
    const s = this.get("status") || {};
    const waiting = !s.kind && this.spec.ready && !this.spec.ready(this);
    const kinds = {
      loading: () => progress(s),
      empty: () => empty(s),
      error: () => notice({ ...s, kind: "error" }),
    };
    const text = kinds[s.kind]
      ? kinds[s.kind]()
      : waiting
        ? empty(this.spec.empty || { title: "Nothing here yet" })
        : html``;
    this.keepFocus(this.statusBox, () => {
      this.statusBox.innerHTML = text.text;
    });
  }

  /** Redraw the named parts that are on screen. */
  parts(names) {
    for (const name of names) {
      if (this.spec.acts?.[name]) {
        this.spec.acts[name](this);
        continue;
      }
      const box = this.part(name);
      if (!box) continue;
      const width = box.clientWidth;
      this.widths.set(box, width);
      const text = this.spec.parts[name](this, width, box);
      if (text !== undefined)
        this.keepFocus(box, () => {
          box.innerHTML = text.text;
        });
    }
  }

  part(name) {
    return this.root.querySelector(`[data-part="${name}"]`);
  }

  keepFocus(box, change) {
    const active = this.root.getRootNode().activeElement;
    const name = active && box.contains(active) ? active.dataset.focus : null;
    const caret = name && active.selectionStart;
    change();
    const again = name && this.root.querySelector(`[data-focus="${CSS.escape(name)}"]`);
    if (!again) return;
    again.focus({ preventScroll: true });
    if (typeof caret === "number" && again.setSelectionRange && again.type === "search")
      again.setSelectionRange(caret, caret);
  }

  /** Redraw later in this frame: many changes, one drawing. */
  later(names) {
    for (const name of names) this.dirty.add(name);
    this.frameRequest ??= requestAnimationFrame(() => {
      this.frameRequest = null;
      if (this.pressed) return this.later([]);
      const all = [...this.dirty];
      this.dirty.clear();
      if (all.includes("frame") || this.frameBox.hidden) return this.draw();
      this.parts(all);
      return this.mark();
    });
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
    // What is on screen may be of an older model, or nothing at all: the drawing to come reveals.
    if (!this.unseen || this.frameBox.hidden || this.dirty.has("frame")) return;
    this.unseen = false;
    if (this.current) this.spec.reveal?.(this, this.current);
  }

  #theme() {
    const wish = this.get("theme");
    const dark = wish === "dark" || (wish !== "light" && pageIsDark());
    const now = dark ? "dark" : "light";
    if (this.root.dataset.theme === now) return;
    const first = !this.root.dataset.theme;
    this.root.dataset.theme = now;
    if (!first) this.draw();
  }

  // ---- events -------------------------------------------------------------------------------
  #listen() {
    const { model, spec, root } = this;
    const on = (event, handler) => {
      model.on(event, handler);
      this.stops.push(() => model.off(event, handler));
    };
    for (const [trait, names] of Object.entries(spec.watch || {}))
      on(`change:${trait}`, () => this.later(names));
    on("change:status", () => {
      const kind = (this.get("status") || {}).kind;
      const hides = kind === "error" || kind === "empty";
      if (hides !== this.frameBox.hidden || this.pressed) this.draw();
      else this.#drawStatus();
    });
    on("change:selected", () => {
      if (spec.selection) this.later(spec.selection);
      this.unseen = true;
      this.mark();
    });
    on("change:theme", () => this.#theme());
    this.stops.push(onThemeChange(() => this.#theme()));
    this.stops.push(keepKeys(root));
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
    const handlers = {
      click: (e) => this.#click(e),
      keydown: (e) => this.#key(e),
      pointerdown: (e) => this.#pointer(e),
      change: (e) => this.#change(e),
      input: (e) => this.#input(e),
      mouseover: (e) => this.#hover(e),
      mousemove: (e) => this.tip.place(e),
      mouseleave: () => this.#leave(),
    };
    for (const [event, handler] of Object.entries(handlers)) root.addEventListener(event, handler);
  }

  #hear(values) {
    if ("hovered" in values) {
      this.local.hovered = values.hovered;
      this.mark();
    }
    const own = Object.entries(values).filter(([name]) => name !== "hovered" && this.has(name));
    const now = own.some(([name]) => name === "selected");
    if (!now) this.#keep(Object.fromEntries(own));
    for (const [name, value] of own) this.model.set(name, value);
    // Python hears it from every widget. Kept back, it would go out with a later change of this
    // widget and undo what Python has set meanwhile.
    if (now) this.#save();
    else if (own.length) this.saveTimer ??= setTimeout(() => this.#save(), SAVE_EVERY_MS);
  }

  #resized() {
    const width = this.root.clientWidth;
    if (this.frameBox.hidden || !width) return;
    if (width !== this.width) {
      this.width = width;
      this.spec.resized?.(this);
    }
    const changed = Object.keys(this.spec.parts || {}).filter((name) => {
      const box = this.part(name);
      return box && box.clientWidth && box.clientWidth !== this.widths.get(box);
    });
    if (changed.length) this.later(changed);
  }

  #click(event) {
    if (this.swallow) {
      this.swallow = false;
      return;
    }
    if (this.spec.click?.(this, event)) return;
    const target = event.target.closest("[data-action],[data-copy],button[data-set],[data-k]");
    if (!target) return;
    const d = target.dataset;
    if (d.action) this.act(d.action, d.payload ? JSON.parse(d.payload) : {});
    else if (d.copy !== undefined) this.#copy(target);
    else if (d.set) this.#put(d.set, d.value);
    else
      this.select(afterClick(this.selected, d.k, event.shiftKey || event.ctrlKey || event.metaKey));
  }

  #put(name, value) {
    if (this.spec.set) this.spec.set(this, name, value);
    else this.set({ [name]: value });
  }

  async #copy(target) {
    const before = target.textContent;
    try {
      await navigator.clipboard.writeText(target.dataset.copy);
      target.textContent = "Copied";
    } catch {
      // No permission (an http page, a sandboxed frame): leave the text selected for Ctrl+C.
      const text = target.parentElement.querySelector("span") || target;
      getSelection().selectAllChildren(text);
      target.textContent = "Press Ctrl+C";
    }
    setTimeout(() => {
      target.textContent = before;
    }, 1200);
  }

  #change(event) {
    const d = event.target.dataset;
    if (d.set)
      this.#put(
        d.set,
        event.target.type === "checkbox" ? event.target.checked : event.target.value,
      );
  }

  #input(event) {
    const d = event.target.dataset;
    const name = d.range || d.find;
    if (name) this.spec.input?.(this, name, event.target.value);
  }

  #key(event) {
    if (this.spec.key?.(this, event)) {
      event.preventDefault();
      return;
    }
    if (event.key === "Escape" && this.selected.length) {
      this.select([]);
      event.preventDefault();
      return;
    }
    if (
      !event.target.closest("[data-keys]") ||
      /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)
    )
      return;
    const next = this.spec.order && afterKey(this.spec.order(this), this.current, event.key);
    if (next === null || next === undefined) return;
    event.preventDefault();
    this.select(
      event.shiftKey && this.current !== next
        ? [...this.selected.filter((n) => n !== next), next]
        : [next],
    );
  }

  #pointer(event) {
    if (event.button !== 0) return;
    if (event.target.closest("button")) this.#press();
    const handle = event.target.closest("[data-drag]");
    if (handle) return this.#drag(event, handle.dataset.drag);
    const area = event.target.closest("[data-lasso]");
    if (area && !event.target.closest("button,input,select,a")) {
      if (area.dataset.lasso === "drag" || event.shiftKey) this.#lasso(event, area);
      else this.spec.pan?.(this, event, area);
    }
    return undefined;
  }

  /** A button that is drawn anew between press and release gets no click: drawing waits. */
  #press() {
    this.pressed = true;
    const release = () => {
      this.pressed = false;
    };
    follow(
      () => {},
      () => setTimeout(release, 0), // when the click has been heard
    );
  }

  #drag(event, name) {
    event.preventDefault();
    this.root.querySelector(`[data-drag="${name}"]`)?.focus({ preventScroll: true });
    follow(
      (e) => this.spec.drag(this, name, e),
      () => this.#save(),
    );
  }

  #lasso(event, area) {
    lasso(event, this.root, (rect) => {
      this.swallow = true; // the click that ends the drag is not a click on a layer
      setTimeout(() => {
        this.swallow = false;
      }, 0);
      this.select(this.spec.within ? this.spec.within(this, area, rect) : inside(area, rect));
    });
  }

  #hover(event) {
    const target = event.target.closest("[data-k],[data-tip]");
    const name = target?.dataset.k || null;
    if (name !== (this.local.hovered || null)) {
      this.local.hovered = name;
      this.mark();
      announce(this.get("link"), this.uid, { hovered: name });
    }
    const text = target && (target.dataset.tip || (name && this.spec.tip?.(this, name, target)));
    this.tip.say(text);
  }

  #leave() {
    this.tip.say("");
    if (!this.local.hovered) return;
    this.local.hovered = null;
    this.mark();
    announce(this.get("link"), this.uid, { hovered: null });
  }

  close() {
    this.spec.close?.(this);
    cancelAnimationFrame(this.frameRequest);
    if (this.saveTimer) this.#save();
    for (const stop of this.stops) stop();
    this.root.remove();
  }
}
