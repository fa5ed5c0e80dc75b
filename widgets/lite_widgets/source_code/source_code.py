"""SourceCode: the same few lines in several languages."""

from __future__ import annotations

from typing import Any

import traitlets as t
from lite_messages import tr

from .._base import LiteWidget
from .._svg import code_block


class SourceCode(LiteWidget):
    """Sample code with a Copy button.

    sources   {language: text}
    language  the shown one; set by the choice.
    """

    title = t.Unicode(tr("Code"))
    sources = t.Dict()
    language = t.Unicode("")

    @t.observe("sources")
    def _first(self, change: dict[str, Any]) -> None:
        if self.language not in change["new"]:
            self.language = next(iter(change["new"]), "")

    def static_html(self) -> str:
        """Return the text of the shown language."""
        return code_block(self.sources.get(self.language, ""))
