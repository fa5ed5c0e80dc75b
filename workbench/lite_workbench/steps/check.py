"""Check: does everything in the model run on the targets?"""

from __future__ import annotations

from collections.abc import Callable

from lite_engine.ir import format_shape
from lite_engine.runtime.support import ModelInfo
from lite_messages import tr, trn
from lite_widgets import DataTable, TypeSummary, columns

from .. import views
from ..opening import open_session
from ..session import Session
from ._base import Step, button


class CheckStep(Step):
    """Operators by target: supported, or why not and what then; where the work is. A click fixes
    sizes that the file leaves open: the model is read again and given to `opened(session)`."""

    name = "Check"
    title = tr("Does it convert?")

    def __init__(
        self,
        session: Session,
        *,
        opened: Callable[[Session], None] | None = None,
        go: Callable[[str], None] | None = None,
    ) -> None:
        self.opened = opened
        super().__init__(session, go=go)

    def build(self) -> None:
        info = self.session.info
        self.table = DataTable(title=tr("Operators"), **views.support_data(info))
        self.types = TypeSummary(
            profile=views.work_data(info), columns="cost", title=tr("Cost by operator")
        )
        self.header.buttons = [button("next", tr("Choose targets"), primary=True)]
        self.on(self.header, "next", lambda _: self.go("Target"))
        if info.hints:
            sizes = ", ".join(f"{n} {format_shape(tuple(d))}" for n, d in info.assumed.items())
            fixable = self.opened is not None and info.macs is not None and sizes
            self.tell(
                "warn", f"**{_hints(info)}**", detail=" · ".join(info.hints),
                actions=[["sizes", tr("Use {sizes}", sizes=sizes), False]] if fixable else [],
            )  # fmt: skip
            self.on(self.notice, "sizes", lambda _: self._fix_sizes())
        self.show(columns(self.table, self.types, kind="wide"))

    def _fix_sizes(self) -> None:
        assert self.opened is not None  # else there is no such button
        fixed = {name: tuple(dims) for name, dims in self.session.info.assumed.items()}
        self.opened(open_session(self.session.path, shapes={**self.session.shapes, **fixed}))

    @staticmethod
    def result(session: Session) -> tuple[str, str]:
        """State and three words for the stepper."""
        info = session.info
        missing = {s.op for s in info.support if not s.supported}
        if missing:
            return "attention", trn("{n} falls back", "{n} fall back", len(missing))
        return "done", _hints(info) if info.hints else tr("all supported")


def _hints(info: ModelInfo) -> str:
    return trn("{n} hint", "{n} hints", len(info.hints))
