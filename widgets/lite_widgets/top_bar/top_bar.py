"""TopBar: what is open, in which version, and what is running; Cancel is always here."""

from __future__ import annotations

import traitlets as t

from .._base import LiteWidget, PlainList


class TopBar(LiteWidget):
    """The top line of the Workbench.

    title     the model's file name.
    versions  names of the model's versions; version is the chosen one (set by the choice).
    jobs      what runs and what waits for it, as `Running.jobs`: the first with a bar and Cancel.
    undo      what Undo takes back, or nothing.
    restore   Python that brings the session back after the kernel was restarted, or nothing: with
              JupyterLab's extension `lite-workbench` a button runs it in a cell of its own.
    note      shown when no job runs ("kernel idle").
    picture   the Workbench as static HTML: what the saved notebook shows where no kernel runs.
              JupyterLab keeps it with the output (extension `lite-workbench`).

    Actions {"id": "cancel", "job": id}, {"id": "undo"}.
    """

    title = t.Unicode("")
    versions = t.List(t.Unicode())
    version = t.Unicode("")
    jobs = PlainList(need=("id", "title", "state"))
    undo = t.Unicode("")
    restore = t.Unicode("")
    note = t.Unicode("")
    picture = t.Unicode("")

    def static_html(self) -> str:
        """Return nothing: a saved notebook has no job and no choices."""
        return ""
