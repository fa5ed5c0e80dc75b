"""Notice: what is wrong, where, and the fix."""

from __future__ import annotations

import html
import re
from typing import Any

import traitlets as t

from .._base import LiteWidget
from .._svg import code_block


class Notice(LiteWidget):
    """One message: what (bold), where, the fix as a command to copy, then "check again".

    kind     "error", "warn", "info", "done".
    what     a sentence; ``**bold**`` and `code` in backticks are marked.
    where    file, layer or path. detail: a second, quieter sentence.
    fix      a command with a Copy button. again: label of the button that checks again.
    tried    [[mark, where, what was found]] under "What was tried (n)".
    actions  [[id, label, primary?]].

    Actions: {"id": "again"} and those of `actions`.
    """

    kind = t.Enum(["error", "warn", "info", "done"], "error")
    what = t.Unicode("")
    where = t.Unicode("")
    detail = t.Unicode("")
    fix = t.Unicode("")
    again = t.Unicode("")
    tried = t.List(t.List(t.Unicode()))
    actions: t.List[Any] = t.List()

    def static_html(self) -> str:
        """Return the message as HTML."""
        parts = [_marked(self.what), html.escape(self.where), _marked(self.detail)]
        text = " ".join(part for part in parts if part)
        fix = code_block(self.fix) if self.fix else ""
        return f"<div>{text}{fix}</div>"


def _marked(text: str) -> str:
    """Return a sentence as HTML, with **bold** and `code` as the page shows them."""
    bold = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", html.escape(text))
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", bold)
