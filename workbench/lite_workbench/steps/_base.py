"""Step: a screen of the walk on a Session, and how its widgets stay linked."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

import ipywidgets
from lite_engine import settings
from lite_engine.errors import LiteError, ShapeError
from lite_messages import tr
from lite_widgets import Notice, PicturedBox, Running, StepHeader
from lite_widgets._base import LiteWidget
from lite_widgets.formats import NAMES

from .._observe import running_loop
from ..internal_error import as_ours
from ..jobs import Job
from ..session import Session

#: Why a button cannot be pressed.
UNDER_WAY = tr("This step is still running.")
COLOURED = ("x86", "opencl", "arm", "reference")


class Step(PicturedBox):
    """A question (`title`), its widgets, and what the stepper says about it.

    A subclass fills `self.children` in `build` and follows the Session with `follow`. Callbacks
    run on the kernel's main thread whoever made the change, and an error becomes a notice here.
    """

    name = ""
    title = ""

    def __init__(self, session: Session, *, go: Callable[[str], None] | None = None) -> None:
        self.session = session
        self.alone = go is None
        self.here = True  # a Workbench says when another step is open
        self.go = go or (lambda step: None)
        self._loop = running_loop()
        self._ends: list[Callable[[], None]] = []
        self._begun: list[Job] = []
        self._linked: list[LiteWidget] = []
        self.header = StepHeader(title=self.title)
        self.notice = Notice()
        self.notice.layout.display = "none"
        self.running = Running()
        self.running.layout.display = "none"
        self.pending = self._has_work()
        for widget in (self.header, self.notice, self.running):
            widget.add_class("lite-fresh")
        self.on(self.running, "cancel", lambda payload: cancel(session, payload["job"]))
        self.on(self.notice, "sizes_open", lambda _: self.go("Check"))
        super().__init__()
        self.add_class("lite-step-body")
        self.follow("error", self._job_failed)  # what `build` starts may fail at once
        self.follow("selected", self._select_all)  # it may also select a layer
        try:
            self.build()
        except LiteError as error:
            self.show()
            self.tell_error(error)
        self.follow("job", lambda _: self._show_jobs())
        self._show_jobs()

    def build(self) -> None:
        """Makes the widgets and shows what is there already."""
        raise NotImplementedError

    def entered(self) -> None:
        """Called when the step is opened again."""

    def show(self, *widgets: Any) -> None:
        """Header, notice, what runs, then these."""
        self.children = (self.header, self.notice, self.running, *widgets)

    @property
    def shown(self) -> str:
        """What the results on show are of and from when, or nothing."""
        return ""

    @property
    def waits(self) -> str:
        """Why a button cannot be pressed while this step's work runs, or nothing."""
        return UNDER_WAY if self.pending else ""

    def jobs_changed(self) -> None:
        """Called when this step's work was begun or has ended (`pending`)."""

    # ---- events

    def follow(self, what: str, callback: Callable[[Any], None]) -> None:
        """Calls `callback(value)` on the main thread for this change of the session."""

        def told(_: str, value: Any) -> None:
            self.on_main(lambda: callback(value))

        self._ends.append(self.session.observe(told, what))

    def on_main(self, callback: Callable[[], None]) -> None:
        if self._loop is not None and self._loop is not running_loop():
            self._loop.call_soon_threadsafe(self.guard, callback)
        else:
            self.guard(callback)

    def guard(self, callback: Callable[[], object]) -> None:
        """Runs a callback; what goes wrong becomes a notice, in place."""
        try:
            callback()
        except Exception as error:  # noqa: BLE001  a widget's callback has nobody else to tell
            self._job_failed(error)

    def on(self, widget: Any, action: str, callback: Callable[[dict[str, Any]], None]) -> None:
        """A click on a button of a widget."""
        widget.on_action(lambda _, payload: self.guard(lambda: callback(payload)), action)

    def start(self, title: str, work: Callable[[], object]) -> Job:
        """Long work for this step off the main thread, after what was started before."""
        self.quiet()
        job = self.begin(title, work, self.name)
        self._show_jobs()
        return job

    def begin(self, title: str, work: Callable[[], object], about: str = "") -> Job:
        """Long work whose result another step shows (`about`), or none."""
        job = self.session.start(title, work, about)
        self._begun = [*(one for one in self._begun if not one.ended), job]
        return job

    def leave(self) -> list[str]:
        """Cancels what was begun here, once nobody can see or cancel it any more. Returns the
        titles."""
        left = [job for job in self._begun if not job.ended]
        for job in left:
            job.cancel()
        return list(dict.fromkeys(job.title for job in left))

    def _show_jobs(self) -> None:
        """The queue while this step waits for its own work, always where no Workbench shows it.
        What was there before stays, paler and with its time."""
        before, self.pending = self.pending, self._has_work()
        jobs = self.session.jobs if self.pending or self.alone else []
        older = self.shown if self.pending else ""
        self.running.jobs = [job.to_dict() for job in jobs]
        self.running.layout.display = None if jobs else "none"
        self.running.shown = older
        (self.add_class if older else self.remove_class)("lite-stale")
        if self.pending != before:
            self.jobs_changed()

    def _has_work(self) -> bool:
        return any(job.about == self.name for job in self.session.jobs)

    def close(self) -> None:
        for end in self._ends:
            end()
        super().close()

    # ---- telling

    def tell_error(self, error: LiteError) -> None:
        """Where is the session's file unless the error names another place."""
        where = error.where or str(self.session.path)
        self.tell(
            "error", f"**{error.what}**", detail=error.fix, fix=error.command, where=where,
            actions=self._ways_out(error),
        )  # fmt: skip

    def _ways_out(self, error: LiteError) -> list[list[Any]]:
        """Buttons to where it can be fixed here: open sizes in Check, which reads the file again
        with fixed ones."""
        session = self.session
        open_sizes = isinstance(session, Session) and bool(session.info.assumed)
        if isinstance(error, ShapeError) and open_sizes and not self.alone:
            return [["sizes_open", tr("Fix the input sizes"), True]]
        return []

    def tell(self, kind: str, what: str, **traits: Any) -> None:
        blank = {"where": "", "detail": "", "fix": "", "again": "", "tried": [], "actions": []}
        with self.notice.hold_sync():
            self.notice.set_trait("kind", kind)
            self.notice.what = what
            for key, value in {**blank, **traits}.items():
                setattr(self.notice, key, value)
        self.notice.layout.display = None

    def quiet(self) -> None:
        self.notice.layout.display = "none"

    def _job_failed(self, error: BaseException) -> None:
        """What, where and the fix; of a defect with LITE_DEBUG=1 the traceback in the log."""
        self.tell_error(as_ours(error))
        if not isinstance(error, LiteError) and settings.get("LITE_DEBUG"):
            traceback.print_exception(error)

    # ---- selection

    def link(self, *widgets: LiteWidget) -> None:
        """These widgets, the session and each other select the same layers."""
        for widget in widgets:
            widget.link = f"lite-{id(self.session)}-{self.name}"
            widget.selected = self.session.selected
            widget.observe(self._selected, names=["selected"])
            self._linked.append(widget)

    def _selected(self, change: dict[str, Any]) -> None:
        self.session.selected = change["new"]

    def _select_all(self, names: Sequence[str]) -> None:
        for widget in self._linked:
            if widget.selected != list(names):
                widget.selected = list(names)


def stack(*widgets: Any) -> ipywidgets.VBox:
    """Widgets under each other with the distance of cards."""
    box = ipywidgets.VBox(list(widgets))
    box.add_class("lite-stack")
    return box


def cancel(session: Any, job: str) -> None:
    """Cancels the job of this id, unless it has ended."""
    for one in session.jobs:
        if one.id == job:
            one.cancel()


def button(id_: str, label: str, *, primary: bool = False, why_not: str = "") -> dict[str, Any]:
    """A button of the header; disabled with a reason `why_not`."""
    return {"id": id_, "label": label, "primary": primary, "disabled": bool(why_not),
            "why": why_not}  # fmt: skip


def sides(session: Session) -> list[str]:
    """What two answers can be of: the versions, where there are several, and the backends that work
    here."""
    from lite_engine.runtime import host_target, usability

    backends = [b for b in (host_target(), "opencl", "reference") if usability(b).usable]
    versions = list(session.versions) if len(session.versions) > 1 else []
    return [*versions, *backends]


def side_name(side: str) -> str:
    """A backend or a version as people call it."""
    return NAMES.get(side, side)


def backend_options(session: Session, *names: str) -> list[list[str]]:
    """[[value, text, dot]] of a segment; `names` or the targets of the model."""
    texts = {
        "opencl": "OpenCL",
        "arm": tr("arm (emulated)"),
        "x86": "x86",
        "reference": "reference",
    }
    from lite_engine.runtime import host_target

    if host_target() == "arm":
        texts["arm"] = "arm"
    for name in session.boards.backends:
        own = texts["opencl"] if name == "opencl" else name
        texts[name] = tr("{target} on {board}", target=own, board=session.boards.used)
    wanted = names or session.targets or (host_target(), "opencl")
    return [[n, texts.get(n, n), n if n in COLOURED else ""] for n in wanted]
