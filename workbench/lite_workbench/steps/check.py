"""Check: does everything in the model run on the targets?"""

from __future__ import annotations

from typing import Any

from lite_widgets import DataTable, TypeSummary, columns

from .. import views
from ..words import plural
from ._base import Step, button


class CheckStep(Step):
    """Operators by target: supported, or why not and what then; where the work is."""

    name = "Check"
    title = "Does it convert?"

    def build(self) -> None:
        info = self.session.info
        self.table = DataTable(title="Operators", **views.support_data(info))
        self.types = TypeSummary(
            profile=views.work_data(info), columns="cost", title="Where the work is"
        )
        self.header.buttons = [button("next", "Choose targets", primary=True)]
        self.on(self.header, "next", lambda _: self.go("Target"))
        if info.hints:
            self.tell("warn", f"**{_hints(info)}**", detail=" · ".join(info.hints))
        self.show(columns(self.table, self.types, kind="wide"))

    @staticmethod
    def result(session: object) -> tuple[str, str]:
        """State and three words for the stepper."""
        info = session.info  # type: ignore[attr-defined]
        missing = {s.op for s in info.support if not s.supported}
        if missing:
            return "attention", f"{len(missing)} elsewhere"
        return "done", _hints(info) if info.hints else "all supported"


def _hints(info: Any) -> str:
    return plural(len(info.hints), "hint")
