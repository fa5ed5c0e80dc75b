"""CodeDrawer: every click as a line of Python."""

from __future__ import annotations

import traitlets as t

from .._base import LiteWidget
from .._svg import code_block


class CodeDrawer(LiteWidget):
    """One line at the bottom: the Python of the last click. Open, it lists all of them.

    lines    the whole walk so far, one statement each.
    opened   is the list open? Set by the button.

    cells    the same as sources of cells, for "Insert as cells": JupyterLab puts them below (its
             extension `lite-workbench` comes with this package); elsewhere they are copied.

    Actions: {"id": "insert", "count"} (cells were inserted; 0: copied instead), {"id": "export"}.
    `add(line)` appends a line unless it repeats the last one.
    """

    lines = t.List(t.Unicode())
    opened = t.Bool(False)
    cells = t.List(t.Unicode())
    can_insert = t.Bool(True)

    def add(self, line: str) -> None:
        """Append one statement; the same twice in a row is written once."""
        if self.lines[-1:] != [line]:
            self.lines = [*self.lines, line]

    def static_html(self) -> str:
        """Return the lines as code."""
        return code_block("\n".join(self.lines))
