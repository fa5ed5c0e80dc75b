"""A page that mounts widgets without Jupyter: their real modules, on a fake anywidget model.

Each widget's state is what its Python class would send. The page counts what would go back to
Python: ``window.saved[i]`` is the list of the changes that widget i saved.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_SCRIPT = """
window.saved = []; window.models = []; window.errors = [];
addEventListener('error', e => errors.push(String(e.error && e.error.stack || e.message)));
addEventListener('unhandledrejection', e => errors.push(String(e.reason && e.reason.stack || e.reason)));
function bytes(text) {
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return new DataView(out.buffer);
}
class Model {
  constructor(state, log) { this.state = state; this.log = log; this.heard = {}; this.pending = {}; }
  get(name) { return this.state[name]; }
  set(name, value) {
    if (JSON.stringify(this.state[name]) === JSON.stringify(value)) return;
    this.state[name] = value; this.pending[name] = value;
    for (const f of this.heard['change:' + name] || []) f();
  }
  save_changes() { if (Object.keys(this.pending).length) this.log.push(this.pending); this.pending = {}; }
  on(event, f) { (this.heard[event] ??= []).push(f); }
  off(event, f) { this.heard[event] = (this.heard[event] || []).filter(g => g !== f); }
}
const mounted = [];
for (const [i, spec] of window.widgets.entries()) {
  const state = { ...spec.state };
  for (const [name, text] of Object.entries(spec.bytes)) state[name] = bytes(text);
  const log = []; saved.push(log);
  const model = new Model(state, log); models.push(model);
  const style = document.createElement('style'); style.textContent = spec.css; document.head.append(style);
  const url = URL.createObjectURL(new Blob([spec.esm], { type: 'text/javascript' }));
  mounted.push(import(url).then(m => { const began = performance.now();
    m.default.render({ model, el: document.getElementById('w' + i) });
    model.took = performance.now() - began; }));
}
window.ready = Promise.all(mounted).then(() => new Promise(r => requestAnimationFrame(() => setTimeout(r, 60))));
"""
_THEMES = {
    "light": "--jp-layout-color1:#fff;--jp-ui-font-color1:rgba(0,0,0,.87);--jp-ui-font-color2:"
    "rgba(0,0,0,.6);--jp-border-color2:#e0e0e0;--jp-border-color3:#eee;background:#fff",
    "dark": "--jp-layout-color1:#212121;--jp-ui-font-color1:rgba(255,255,255,.87);"
    "--jp-ui-font-color2:rgba(255,255,255,.62);--jp-border-color2:#3a3a3a;--jp-border-color3:#2c2c2c;"
    "background:#111",
}


def _state(widget: Any) -> tuple[dict[str, Any], dict[str, str]]:
    plain, binary = {}, {}
    for name in widget.keys:
        value = getattr(widget, name)
        if name.startswith("_") or name in ("layout", "comm", "tabbable", "tooltip"):
            continue
        if isinstance(value, bytes):
            binary[name] = base64.b64encode(value).decode()
        else:
            plain[name] = value
    return plain, binary


def page(widgets: Sequence[Any], *, theme: str = "light", width: int = 1100) -> str:
    """Return an HTML page with these widgets under each other."""
    specs = []
    for widget in widgets:
        state, binary = _state(widget)
        specs.append({"esm": widget._esm, "css": widget._css, "state": state, "bytes": binary})
    data = json.dumps(specs, allow_nan=False).replace("</", "<\\/")
    boxes = "".join(f'<div id="w{i}" style="margin-bottom:16px"></div>' for i in range(len(specs)))
    return (
        f'<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><title>widgets</title>'
        f'<body data-jp-theme-light="{str(theme == "light").lower()}" style="margin:16px;'
        f'{_THEMES[theme]}"><div style="width:{width}px">{boxes}</div>'
        f'<script>window.widgets={data}</script><script type="module">{_SCRIPT}</script></body>'
    )


def write(path: Path, widgets: Sequence[Any], **options: Any) -> str:
    """Write the page and return its file URL."""
    path.write_text(page(widgets, **options), "utf-8")
    return path.as_uri()
