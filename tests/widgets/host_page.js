// Mounts window.widgets on a fake anywidget model; see host_page.py.
window.saved = [];
window.models = [];
window.errors = [];
addEventListener("error", (e) => errors.push(String((e.error && e.error.stack) || e.message)));
addEventListener("unhandledrejection", (e) =>
  errors.push(String((e.reason && e.reason.stack) || e.reason)),
);
function bytes(text) {
  const raw = atob(text),
    out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return new DataView(out.buffer);
}
class Model {
  constructor(state, log) {
    this.state = state;
    this.log = log;
    this.heard = {};
    this.pending = {};
  }
  get(name) {
    return this.state[name];
  }
  set(name, value) {
    if (JSON.stringify(this.state[name]) === JSON.stringify(value)) return;
    this.state[name] = value;
    this.pending[name] = value;
    for (const f of this.heard["change:" + name] || []) f();
  }
  save_changes() {
    if (Object.keys(this.pending).length) this.log.push(this.pending);
    this.pending = {};
  }
  on(event, f) {
    (this.heard[event] ??= []).push(f);
  }
  off(event, f) {
    this.heard[event] = (this.heard[event] || []).filter((g) => g !== f);
  }
}
const mounted = [];
for (const [i, spec] of window.widgets.entries()) {
  const state = { ...spec.state };
  for (const [name, text] of Object.entries(spec.bytes)) state[name] = bytes(text);
  const log = [];
  saved.push(log);
  const model = new Model(state, log);
  models.push(model);
  const style = document.createElement("style");
  style.textContent = spec.css;
  document.head.append(style);
  const url = URL.createObjectURL(new Blob([spec.esm], { type: "text/javascript" }));
  mounted.push(
    import(url).then((m) => {
      const began = performance.now();
      m.default.render({ model, el: document.getElementById("w" + i) });
      model.took = performance.now() - began;
    }),
  );
}
window.ready = Promise.all(mounted).then(
  () => new Promise((r) => requestAnimationFrame(() => setTimeout(r, 60))),
);
