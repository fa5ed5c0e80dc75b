"""The values of the selected layer, for a step that has a tab or a card of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lite_messages import tr
from lite_widgets import TensorView

from ..looking import Look
from ._base import Step

#: Sides that take seconds for a run: they are asked for, and run as a job.
SLOW = ("arm", "wasm")


class InsidePanel:
    """`view` follows the selection while it is `open`. `sides` says whose values to show."""

    def __init__(self, step: Step, sides: Callable[[], tuple[str, ...]], *, open: bool) -> None:
        self._step, self._sides, self._open = step, sides, open
        self._shows: tuple[Any, ...] = ()
        self.view = TensorView()
        self.view.observe(lambda _: step.guard(self._chosen), names=["chosen"])
        step.on(self.view, "look", lambda _: self._start())
        step.follow("selected", lambda _: self.refresh())
        step.follow("input", lambda _: self.refresh(again=True))

    def opened(self, shown: bool) -> None:
        """Whether a person sees it."""
        self._open = shown
        self.refresh()

    def refresh(self, *, again: bool = False) -> None:
        """Shows the layer that is selected now; `again`, though its values were shown before."""
        session, sides = self._step.session, self._sides()
        wanted = (*session.selected[-1:], *sides)
        if not self._open or not session.selected or not sides:
            return
        if wanted == self._shows and not again:
            return
        if session.jobs:
            self._wait(tr("Waiting for {job}", job=session.jobs[0].title))
        elif any(side in SLOW for side in sides):
            self._wait(tr("A run on {sides} takes seconds", sides=", ".join(sides)), tr("Look"))
        else:
            self._step.guard(lambda: self._show(self._look(wanted[0]), wanted))

    def _look(self, name: str) -> Look:
        return self._step.session.look(name, self._sides())

    def _show(self, made: Look, shows: tuple[Any, ...]) -> None:
        self._shows = ()  # while `chosen` is set, nobody has chosen
        self.view.status = {}
        made.fill(self.view)
        self._shows = shows

    def _wait(self, text: str, button: str = "") -> None:
        self._shows = ()
        asked = {"button": button, "action": "look"} if button else {}
        title = tr("Values of {layer}", layer=self._step.session.selected[-1])
        self.view.status = {"kind": "empty", "title": title, "text": text, **asked}

    def _start(self) -> None:
        if not self._step.session.selected:  # since the button was shown
            return
        name, sides = self._step.session.selected[-1], self._sides()

        def work() -> None:
            made = self._look(name)
            self._step.on_main(lambda: self._show(made, (name, *sides)))

        self._step.begin(tr("Running {name}", name=", ".join(sides)), work)

    def _chosen(self) -> None:
        """Another tensor of the same layer."""
        if self._shows and self.view.chosen:
            self._show(self._look(self.view.chosen), self._shows)
