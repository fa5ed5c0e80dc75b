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

_SCRIPT = Path(__file__).with_name("host_page.js")
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


def page(
    widgets: Sequence[Any], *, theme: str = "light", width: int = 1100, base_url: str = "/"
) -> str:
    """Return an HTML page with these widgets under each other."""
    specs = []
    for widget in widgets:
        state, binary = _state(widget)
        specs.append({"esm": widget._esm, "css": widget._css, "state": state, "bytes": binary})
    data = json.dumps(specs, allow_nan=False).replace("</", "<\\/")
    boxes = "".join(f'<div id="w{i}" style="margin-bottom:16px"></div>' for i in range(len(specs)))
    return (
        f'<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,">'
        "<title>widgets</title>"
        f'<body data-jp-theme-light="{str(theme == "light").lower()}" '
        f'data-base-url="{base_url}" style="margin:16px;'
        f'{_THEMES[theme]}"><div style="width:{width}px">{boxes}</div>'
        f"<script>window.widgets={data}</script>"
        f'<script type="module">{_SCRIPT.read_text("utf-8")}</script></body>'
    )


def write(path: Path, widgets: Sequence[Any], **options: Any) -> str:
    """Write the page and return its file URL."""
    path.write_text(page(widgets, **options), "utf-8")
    return path.as_uri()
