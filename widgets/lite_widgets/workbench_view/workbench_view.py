"""WorkbenchView: the page frame. Ordinary ipywidgets boxes, so every child is a widget of its own.

Nothing here draws: TopBar, Stepper, TabBar and CodeDrawer do, and TopBar carries the frame's
style. Steps and tabs switch in the page at once (their JavaScript toggles a class), so that a
click never waits for the kernel, and works in an exported page too; Python learns of it by a trait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ipywidgets
import traitlets as t
from lite_messages import tr

from .._base import VIEW_MIME
from ..code_drawer import CodeDrawer
from ..stepper import Stepper
from ..stepper.stepper import STEPS
from ..tab_bar import TabBar
from ..top_bar import TopBar

_KINDS = ("half", "graph", "wide", "third")


def columns(*children: ipywidgets.Widget, kind: str = "half") -> ipywidgets.Box:
    """Put widgets beside each other; under 900 px they stack.

    kind: "half" (1:1), "graph" (388 px and the rest), "wide" (1.35:1), "third" (1:1.7).
    """
    if kind not in _KINDS:
        raise ValueError(
            tr("kind must be one of {kinds}, not {kind!r}", kinds=", ".join(_KINDS), kind=kind)
        )
    box = ipywidgets.Box(list(children))
    box.add_class("lite-cols")
    box.add_class(f"lite-cols-{kind}")
    return box


class PicturedBox(ipywidgets.VBox):
    """A box that shows the static pictures of what it holds where no kernel runs."""

    def static_html(self) -> str:
        """Return the pictures of the widgets inside, in order; without what is hidden."""
        return "".join(child.static_html() for child in _leaves(self))

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        made = super()._repr_mimebundle_(**kwargs)
        still = {"text/html": self.static_html(), "text/plain": type(self).__name__}
        return {**made, **still, VIEW_MIME: {}}


class Tabbed(PicturedBox):
    """A card with tabs: ``Tabbed({"Layers": table, "Roofline": roofline}, height=496)``.

    `bar` is the TabBar: ``bar.current`` is the open tab; ``badge(name, text)`` marks one.
    """

    def __init__(
        self, bodies: Mapping[str, ipywidgets.Widget], *, height: int | None = None
    ) -> None:
        names = list(bodies)
        self.bar = TabBar(tabs=[{"name": n, "badge": ""} for n in names], current=names[0])
        for i, body in enumerate(bodies.values()):
            body.add_class("lite-tab")
            body.add_class(f"lite-tab-{i}")
        super().__init__([self.bar, *bodies.values()])
        self.add_class("lite-tabbed")
        if height:
            self.layout.height = f"{height}px"

    def badge(self, name: str, text: str) -> None:
        """Mark a tab, or remove its mark with an empty text."""
        self.bar.tabs = [
            {**tab, "badge": text} if tab["name"] == name else tab for tab in self.bar.tabs
        ]


class WorkbenchView(PicturedBox):
    """Top bar, stepper, one body per step, code drawer.

    ``view.top`` TopBar · ``view.stepper`` Stepper · ``view.code`` CodeDrawer · ``view.body(name)``.
    ``view.fill(name, widgets)`` sets what a step shows. ``view.build(name, make)`` does so the
    first time the step is opened: make() returns the widgets. ``view.current`` is the open step.
    """

    current = t.Unicode("Model")

    def __init__(self, title: str = "", **kwargs: Any) -> None:
        self.top = TopBar(title=title)
        self.stepper = Stepper()
        self.code = CodeDrawer()
        self._makers: dict[str, Callable[[], Sequence[ipywidgets.Widget]]] = {}
        self._bodies = {name: ipywidgets.VBox() for name in STEPS}
        for name, body in self._bodies.items():
            body.add_class("lite-step")
            body.add_class(f"lite-step-{name}")
        super().__init__([self.top, self.stepper, *self._bodies.values(), self.code], **kwargs)
        self.add_class("lite-workbench")
        t.link((self, "current"), (self.stepper, "current"))
        self.observe(lambda change: self._open(change["new"]), names=["current"])

    def body(self, name: str) -> ipywidgets.VBox:
        """Return the box of one step. Raises KeyError for an unknown name."""
        return self._bodies[name]

    def fill(self, name: str, widgets: Sequence[ipywidgets.Widget]) -> None:
        """Set what a step shows."""
        self._makers.pop(name, None)
        self._bodies[name].children = tuple(widgets)

    def build(self, name: str, make: Callable[[], Sequence[ipywidgets.Widget]]) -> None:
        """Fill a step the first time it is opened: first paint makes only the open step."""
        if name not in self._bodies:
            raise KeyError(name)
        self._makers[name] = make
        if name == self.current:
            self._open(name)
        else:
            self._bodies[name].children = ()

    def _open(self, name: str) -> None:
        make = self._makers.pop(name, None)
        if make:
            self._bodies[name].children = tuple(make())

    def static_html(self) -> str:
        """Return the steps, the static picture of the open step, and the code so far."""
        body = [child.static_html() for child in _leaves(self._bodies[self.current])]
        return "".join([self.stepper.static_html(), *body, self.code.static_html()])


def _leaves(box: ipywidgets.Box) -> list[Any]:
    """Return the widgets inside nested boxes that have a static picture, in order."""
    out: list[Any] = []
    for child in box.children:
        if child.layout.display == "none":
            continue
        if isinstance(child, ipywidgets.Box):
            out += _leaves(child)
        elif hasattr(child, "static_html"):
            out.append(child)
    return out
