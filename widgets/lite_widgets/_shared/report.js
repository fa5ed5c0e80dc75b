// Mounts a report's widgets on models of their states: what anywidget and a kernel do in a
// notebook. A widget is made when it nears the screen; picking a layer is answered from the page.
import * as widgets from "all-widgets"; // by scripts/bundle.py: {name of the module: widget}

let data; // {values, mounts}, from `start` on

function bytes(text) {
  const raw = atob(text);
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return new DataView(out.buffer);
}

/** The JSON of an element that holds it compressed, in base64. */
async function unpacked(id) {
  const packed = new Blob([bytes(document.getElementById(id).textContent)]);
  return new Response(packed.stream().pipeThrough(new DecompressionStream("gzip"))).json();
}

function stateOf(mount) {
  const state = { action: {} };
  for (const [name, at] of Object.entries(mount.state)) state[name] = data.values[at];
  for (const [name, at] of Object.entries(mount.bytes)) state[name] = bytes(data.values[at]);
  return state;
}

class Model {
  constructor(mount) {
    this.module = mount.module;
    this.state = stateOf(mount);
    this.answers = mount.answers;
    this.rows = mount.rows;
    this.handlers = {};
  }

  get(name) {
    return this.state[name];
  }

  set(name, value) {
    if (JSON.stringify(this.state[name]) === JSON.stringify(value)) return;
    this.put({ [name]: value });
    if (name === "selected") this.answer(value[value.length - 1]);
  }

  put(values) {
    Object.assign(this.state, values);
    for (const name of Object.keys(values))
      for (const handler of this.handlers[`change:${name}`] || []) handler();
  }

  /** What Python would have answered for the layer picked last. */
  answer(layer) {
    const values = {};
    if (this.rows) {
      const { trait, data: at, list } = this.rows;
      const row = data.values[at][list].find((row) => row.name === layer);
      if (row) values[trait] = row;
    }
    for (const [name, at] of Object.entries(this.answers?.[layer] ?? {})) {
      const value = data.values[at];
      values[name] = name === "map" ? bytes(value) : value;
    }
    this.put(values);
  }

  save_changes() {}

  on(event, handler) {
    (this.handlers[event] ??= []).push(handler);
  }

  off(event, handler) {
    this.handlers[event] = (this.handlers[event] || []).filter((known) => known !== handler);
  }
}

function mount(element) {
  const spec = data.mounts[+element.dataset.mount];
  element.classList.add("mounted");
  widgets[spec.module].render({ model: modelOf(element), el: element });
}

/** The model of a widget's element; what changes in it before the widget is drawn is drawn with it. */
const modelOf = (element) =>
  (element.liteModel ??= new Model(data.mounts[+element.dataset.mount]));

/** Draws every widget when it nears the screen; resolves to what live.js needs. */
async function start() {
  data = await unpacked("lite-data");
  const waiting = document.querySelectorAll("[data-mount]");
  const seen = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        seen.unobserve(entry.target);
        mount(entry.target);
      }
    },
    { rootMargin: "800px" },
  );
  for (const element of waiting) {
    // The bodies of closed tabs have no size: they come with their bar.
    if (element.classList.contains("lite-tab")) continue;
    seen.observe(element);
  }
  const bars = new IntersectionObserver(
    (entries) => {
      for (const entry of entries) {
        if (!entry.isIntersecting) continue;
        bars.unobserve(entry.target);
        for (const body of entry.target.querySelectorAll(":scope > .lite-tab[data-mount]"))
          mount(body);
      }
    },
    { rootMargin: "800px" },
  );
  for (const box of document.querySelectorAll(".lite-tabbed")) bars.observe(box);
  addEventListener("beforeprint", () => {
    for (const element of waiting) if (!element.classList.contains("mounted")) mount(element);
  });
  return { modelOf };
}
globalThis.liteReport = start();

const dark = matchMedia("(prefers-color-scheme: dark)");
const paint = (isDark) => document.body.setAttribute("data-jp-theme-light", String(!isDark));
paint(dark.matches);
dark.addEventListener("change", () => paint(dark.matches));
document
  .getElementById("theme")
  .addEventListener("click", () => paint(document.body.dataset.jpThemeLight !== "false"));
