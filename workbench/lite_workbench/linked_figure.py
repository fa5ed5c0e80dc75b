"""A Plotly figure of a session in a cell: it follows what is measured, and its selection is the
session's."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from lite_engine.errors import LiteError, UsageError
from lite_engine.figures import comparisons, plotly, profiles
from lite_messages import tr

from ._observe import running_loop

if TYPE_CHECKING:
    from plotly.graph_objects import Figure, FigureWidget

    from .state import SessionState

#: Kinds of which every mark is a layer.
_OF_PROFILES = ("latency", "roofline", "timeline", "memory")
_OF_COMPARISONS = ("error",)
KINDS = (*_OF_PROFILES, *_OF_COMPARISONS)
#: Of the marks of selected layers.
_ACCENT, _OUTLINE = "#0b7285", 3


def linked_figure(session: SessionState, kind: str) -> FigureWidget:
    """See `Session.linked_figure`. Raises UsageError, LiteError."""
    if kind not in KINDS:
        raise UsageError(
            tr("there is no figure {kind!r}", kind=kind),
            fix=tr("choose from {kinds}", kinds=", ".join(KINDS)),
        )
    made = _newest(session, kind)
    if made is None:
        what = "session.compare()" if kind in _OF_COMPARISONS else "session.profile()"
        raise UsageError(tr("nothing is measured yet"), fix=tr("call {call} first", call=what))
    try:
        widget = plotly().FigureWidget(made)
    except ImportError:
        raise LiteError(
            tr("linked figures need anywidget"), command="pip install 'lite-workbench[lab]'"
        ) from None
    _Link(session, kind, widget)
    return widget


def _newest(session: SessionState, kind: str) -> Figure | None:
    if kind in _OF_COMPARISONS:
        compared = next(reversed(session.comparisons.values()), None)
        return None if compared is None else comparisons.figure(compared.to_dict(), kind)
    profile = next(reversed(session.profiles.values()), None)
    return None if profile is None else profiles.figure(profile.to_dict(), kind)


class _Link:
    """Keeps a widget and a session together, until the widget is closed."""

    def __init__(self, session: SessionState, kind: str, widget: FigureWidget) -> None:
        self._session, self._kind, self._widget = session, kind, widget
        self._loop: asyncio.AbstractEventLoop | None = running_loop()
        self._listen()
        self._show_selected()
        ends = [
            session.observe(lambda *_: self._on_main(self._draw), "comparison"
                            if kind in _OF_COMPARISONS else "profile"),
            session.observe(lambda *_: self._on_main(self._show_selected), "selected"),
        ]  # fmt: skip
        widget.observe(lambda change: change["new"] is None and [end() for end in ends], ["comm"])

    def _on_main(self, act: Any) -> None:
        if self._loop is not None and self._loop is not running_loop():
            self._loop.call_soon_threadsafe(act)
        else:
            act()

    def _draw(self) -> None:
        """What was measured last, in the figure that is on screen: zoom and size stay."""
        made = _newest(self._session, self._kind)
        if made is None:
            return
        widget = self._widget
        same = [t.type for t in widget.data] == [t.type for t in made.data]
        with widget.batch_update():
            if same:
                for old, new in zip(widget.data, made.data, strict=True):
                    old.update(new.to_plotly_json(), overwrite=True)
            widget.layout.title.text = made.layout.title.text
        if not same:
            widget.data = []
            widget.add_traces(made.data)
            self._listen()
        self._show_selected()

    def _listen(self) -> None:
        for trace in self._layers():
            trace.on_selection(lambda *_: self._select())
            trace.on_deselect(lambda *_: self._clear())
            trace.on_click(lambda trace, points, _: self._click(trace, points))

    def _layers(self) -> list[Any]:
        """The traces whose marks are layers."""
        return [t for t in self._widget.data if t.customdata is not None and len(t.customdata)]

    def _select(self) -> None:
        names = [
            str(trace.customdata[i])
            for trace in self._layers()
            for i in trace.selectedpoints or ()
        ]  # fmt: skip
        self._session.selected = list(dict.fromkeys(names))

    def _click(self, trace: Any, points: Any) -> None:
        if points.point_inds:
            self._session.selected = [str(trace.customdata[points.point_inds[0]])]

    def _clear(self) -> None:
        self._session.selected = []

    def _show_selected(self) -> None:
        """The session's layers have an outline. Plotly's own fading of what is not selected stays
        with the box that a person drew, which the page would apply again after each change."""
        chosen = set(self._session.selected)
        with self._widget.batch_update():
            for trace in self._layers():
                marked = [str(name) in chosen for name in trace.customdata]
                trace.marker.line.width = [_OUTLINE if one else 0 for one in marked]
                trace.marker.line.color = _ACCENT
