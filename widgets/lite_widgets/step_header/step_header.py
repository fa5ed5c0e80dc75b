"""StepHeader: the question of a step, its choices and its buttons."""

from __future__ import annotations

import html

import traitlets as t

from .._base import LiteWidget, PlainList


class StepHeader(LiteWidget):
    """The first line of a step: title, segments, choices, a note, buttons (one primary).

    title    the question ("Where does the time go?").
    note     quiet text before the buttons.
    segments {"name", "label", "options": [[value, text, backend or ""]]} or {}.
    selects  [{"name", "label", "backend": dot or "", "options": [[value, text]]}]; "says" is
             the name for screen readers where the label does not say it; "disabled": true while
             it cannot be changed, "why"
    values   {name: value} of segments and selects; set by the choices.
    buttons  [{"id", "label", "primary": bool, "disabled": bool,
             "why": it is disabled}]

    Actions: the ids of `buttons`.
    """

    title = t.Unicode("")
    note = t.Unicode("")
    segments = t.Dict()
    selects = PlainList(need=("name", "options"))
    values = t.Dict()
    buttons = PlainList(need=("id", "label"))

    def static_html(self) -> str:
        """Return the question as a heading."""
        return f"<h3>{html.escape(self.title)}</h3>"
