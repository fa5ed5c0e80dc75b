"""Widgets → one HTML page without network: their own modules, styles and states, inlined.

A page holds the script of all widgets once and each trait value once (many views share one
profile), so that its size grows with the model and not with the number of views.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import lite_widgets
from lite_engine.runtime import strict_json
from lite_messages import language, tr
from lite_widgets import TopBar
from lite_widgets._base import Checked, LiteWidget, bundled

_HERE = Path(__file__).parent
_SHARED_CSS = Path(lite_widgets.__file__).with_name("_shared") / "lite.css"
#: Traits of ipywidgets that a page has no use for.
_FOREIGN = ("layout", "comm", "tabbable", "tooltip", "action")
#: Of compression: 6 would take half as long again, for 4 % less.
_LEVEL = 5


@dataclass
class Section:
    """A heading, a sentence under it, `bar` (markup), and widgets (ipywidgets boxes may nest)."""

    id: str
    title: str
    intro: str = ""
    widgets: Sequence[Any] = ()
    bar: str = ""


@dataclass
class Page:
    """Collects what the widgets need while their markup is written."""

    sheets: dict[str, str] = field(default_factory=dict)
    values: list[str] = field(default_factory=list)
    mounts: list[dict[str, Any]] = field(default_factory=list)
    _seen: dict[str, int] = field(default_factory=dict)
    #: Number by the id of data that widgets share; held, so that no id is used again.
    _shared: dict[int, tuple[Checked, int]] = field(default_factory=dict)

    def markup(self, widget: Any) -> str:
        """HTML of a widget or a box of widgets."""
        if not hasattr(widget, "_esm"):
            classes = " ".join(widget._dom_classes)
            height = getattr(widget.layout, "height", None)
            style = f' style="height:{html.escape(height)}"' if height else ""
            inner = "".join(self.markup(child) for child in widget.children)
            return f'<div class="box {html.escape(classes)}"{style}>{inner}</div>'
        name = type(widget).__module__.rpartition(".")[2]
        self.sheets[name] = widget._css
        mount: dict[str, Any] = {"module": name, "state": {}, "bytes": {}}
        for trait in widget.keys:
            if trait.startswith("_") or trait in _FOREIGN:
                continue
            value = getattr(widget, trait)
            kind = "bytes" if isinstance(value, bytes) else "state"
            mount[kind][trait] = self.value(value)
        answers = getattr(widget, "report_answers", None)
        if answers:
            mount["answers"] = {
                layer: {trait: self.value(value) for trait, value in traits.items()}
                for layer, traits in answers.items()
            }
        rows = getattr(widget, "report_rows", None)
        if rows:
            trait, data = rows
            mount["rows"] = {"trait": trait, "data": self.value(data), "list": data.rows}
        self.mounts.append(mount)
        classes = " ".join(["mount", *widget._dom_classes])
        return f'<div class="{html.escape(classes)}" data-mount="{len(self.mounts) - 1}"></div>'

    def value(self, value: Any) -> int:
        """Number of a value in the page's table; equal values share one entry."""
        if isinstance(value, Checked):
            if id(value) not in self._shared:
                self._shared[id(value)] = value, self._number(value.json)
            return self._shared[id(value)][1]
        if isinstance(value, bytes):
            value = base64.b64encode(value).decode()
        return self._number(strict_json.dumps(value, ensure_ascii=False, separators=(",", ":")))

    def _number(self, text: str) -> int:
        if text not in self._seen:
            self._seen[text] = len(self.values)
            self.values.append(text)
        return self._seen[text]

    def scripts(self, live: Mapping[str, Any] | None = None) -> str:
        """Values, mounts, and the script of all widgets; with the config of a live section, the
        runtime's JavaScript, too."""
        data = f'{{"values":[{",".join(self.values)}],"mounts":{json.dumps(self.mounts)}}}'
        parts = [_packed("lite-data", data), f"<script>{_inert(bundled('report'))}</script>"]
        if live is None:
            return "\n".join(parts)
        config = _held("lite-live-data", strict_json.dumps(live, ensure_ascii=False))
        script = f'<script type="module">{_inert(bundled("live"))}</script>'
        return "\n".join([*parts, config, script])

    def styles(self) -> str:
        """The shared sheet once, then each class's own; the frame's rules are TopBar's."""
        shared = _SHARED_CSS.read_text("utf-8")
        sheets = {"top_bar": TopBar._css, **self.sheets}
        own = [sheet.removeprefix(shared) for sheet in sheets.values()]
        return "\n".join([shared, *own, (_HERE / "page.css").read_text("utf-8")])


def page(
    title: str,
    subtitle: str,
    sections: Sequence[Section],
    live: Mapping[str, Any] | None = None,
) -> str:
    """The whole document; `live` is the config of its live section (live.py). Raises ValueError
    when a state holds NaN (widgets make it None)."""
    made = Page()
    bodies, links = [], []
    for section in sections:
        inner = "".join(made.markup(w) for w in section.widgets)
        intro = f'<p class="intro">{html.escape(section.intro)}</p>' if section.intro else ""
        bodies.append(
            f'<section id="{section.id}"><h2>{html.escape(section.title)}</h2>{intro}'
            f"{section.bar}{inner}"
            "</section>"
        )
        links.append(f'<a href="#{section.id}">{html.escape(section.title)}</a>')
    return (
        f'<!doctype html>\n<html lang="{language()}"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f'<link rel="icon" href="data:,"><title>{html.escape(title)}</title>\n'
        f"<style>{made.styles()}</style></head>\n<body>\n"
        f"<header><h1>{html.escape(title)}</h1><p>{html.escape(subtitle)}</p>"
        f'<button type="button" id="theme" aria-label="{html.escape(tr("Light or dark"))}">◐'
        "</button></header>\n"
        f"<nav>{''.join(links)}</nav>\n<main>{''.join(bodies)}</main>\n"
        f"{made.scripts(live)}\n</body></html>\n"
    )


def _held(name: str, data: str) -> str:
    """JSON in the page; only strings can hold a "<"."""
    inert = data.replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{inert}</script>'


def _packed(name: str, data: str) -> str:
    """JSON in the page, compressed (RFC 1952) in base64: `report.js` reads it."""
    packed = base64.b64encode(gzip.compress(data.encode(), _LEVEL, mtime=0)).decode()
    return f'<script type="text/plain" id="{name}">{packed}</script>'


def _inert(text: str) -> str:
    """No text inside a script element can end it or open a comment."""
    return text.replace("</", "<\\/").replace("<!--", "\\u003c!--")


_Widget = TypeVar("_Widget", bound=LiteWidget)


def answer(widget: _Widget, answers: Mapping[str, Mapping[str, Any]]) -> _Widget:
    """What the kernel would say: when a layer is picked, these traits of the widget change."""
    widget.report_answers = dict(answers)
    return widget


def answer_rows(widget: _Widget, trait: str, data: Checked) -> _Widget:
    """The same where the answer is the layer's own row of data that the page holds anyway."""
    widget.report_rows = trait, data
    return widget
