"""Check: does everything in the model run on the targets?"""

from __future__ import annotations

from collections.abc import Callable

from lite_engine.ir import format_shape
from lite_engine.runtime.hints import open_sizes
from lite_messages import tr, trn
from lite_widgets import DataTable, TypeSummary, columns

from .. import views
from ..opening import open_session
from ..session import Session
from ._base import Step, button

_SIZES = tr("Fix the input sizes")


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
        self.on(self.notice, "sizes", lambda _: self._fix_sizes())
        if info.assumed:
            self._ask_for_sizes()
        elif info.hints:
            self.tell("warn", f"**{info.hints[0]}**", detail=" · ".join(info.hints[1:]))
        self.show(columns(self.table, self.types, kind="wide"))

    def _ask_for_sizes(self) -> None:
        """The file leaves sizes open: what to do comes first, further hints behind it."""
        assumed, hints = self.session.info.assumed, self.session.info.hints
        told = {fits: open_sizes(assumed, fits=fits) for fits in (True, False)}
        fits = told[True] in hints
        sizes = ", ".join(f"{n} {format_shape(tuple(d))}" for n, d in assumed.items())
        shapes = {name: tuple(dims) for name, dims in assumed.items()}
        how = f"lw.open({str(self.session.path.name)!r}, shapes={shapes})"
        what = (
            tr("The file leaves them open; what you see here is for {sizes}.", sizes=sizes)
            if fits
            else tr("The file leaves them open, and none of the usual sizes fits.")
        )
        self.tell(
            "warn",
            f"**{_SIZES}.** {what}",
            detail=" · ".join([
                tr("To use other sizes: `{code}`", code=how),
                *(hint for hint in hints if hint not in told.values()),
            ]),
            actions=[["sizes", tr("Use {sizes}", sizes=sizes), True]]
            if fits and self.opened is not None
            else [],
        )  # fmt: skip

    def _fix_sizes(self) -> None:
        assert self.opened is not None  # else there is no such button
        fixed = {name: tuple(dims) for name, dims in self.session.info.assumed.items()}
        self.opened(open_session(self.session.path, shapes={**self.session.shapes, **fixed}))

    @staticmethod
    def result(session: Session) -> tuple[str, str]:
        """State and three words for the stepper."""
        info = session.info
        # once there are targets, only they count
        missing = [
            s
            for s in info.support
            if not s.supported and s.target in (session.targets or {s.target})
        ]
        if nowhere := {s.op for s in missing if not s.backend}:
            return "attention", trn("{n} unsupported", "{n} unsupported", len(nowhere))
        if elsewhere := {s.op for s in missing}:
            return "attention", trn("{n} falls back", "{n} fall back", len(elsewhere))
        if info.assumed:
            return "done", tr("sizes are open")
        if info.hints:
            return "done", trn("{n} warning", "{n} warnings", len(info.hints))
        return "done", tr("all supported")
