"""Workbench: the whole walk in one widget, on a Session."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lite_engine.compare.comparison import Comparison
from lite_engine.compare.finding import AnswerDifference
from lite_engine.errors import LiteError, UsageError
from lite_engine.pipeline import Pipeline
from lite_messages import tr, trn
from lite_widgets import WorkbenchView

from . import views
from ._observe import Later, running_loop
from .evaluate import Evaluation
from .jobs import Job
from .notebook import cells_of
from .opening import open_any
from .pipelines.session import PipelineSession
from .session import Session
from .steps import STEPS, step_class
from .steps._base import Step, cancel
from .steps.check import CheckStep
from .words import listed

_log = logging.getLogger(__name__)
#: how long nothing changes before the saved notebook's picture is drawn anew
PICTURE_S = 0.5
#: how long nothing changes before the session is kept for `lw.restore`
KEEP_S = 3.0


class Workbench(WorkbenchView):
    """``lw.Workbench(session)`` or ``lw.Workbench("model.onnx")``, of a model or a pipeline.

    `session` is what it works on; `step(name)` is a screen, made when first opened. Everything a
    click does is a call of the session, and a line in its `code`.
    """

    session: Session | PipelineSession

    def __init__(
        self, session: Session | PipelineSession | Pipeline | str | Path, *, step: str = "Model"
    ) -> None:
        if step not in STEPS:
            raise UsageError(
                tr("{step!r} is not a step", step=step),
                fix=tr("steps: {steps}", steps=", ".join(STEPS)),
            )
        #: Held while a session is replaced or a step is made: clicks come on several threads.
        self._changing = threading.RLock()
        super().__init__()
        self._steps: dict[str, Step] = {}
        self._ends: list[Callable[[], None]] = []
        self._loop = running_loop()
        self._pictured = Later(PICTURE_S, self._picture)
        self._kept = Later(KEEP_S, self._keep)
        self._on(self.top, "cancel", lambda payload: cancel(self.session, payload["job"]))
        self._on(self.top, "undo", lambda _: self._undo())
        self.top.observe(self._version_chosen, names=["version"])
        self._on(self.code, "insert", lambda payload: self._inserted(payload["count"]))
        self._on(self.code, "export", lambda _: self._export())
        self.load(session)
        self.current = step
        self.observe(lambda _: self._stepped(), names=["current"])

    def _on(self, widget: Any, action: str, callback: Callable[[dict[str, Any]], object]) -> None:
        """A click on a button; what goes wrong is said in the top bar."""

        def clicked(_: str, payload: dict[str, Any]) -> None:
            try:
                callback(payload)
            except LiteError as error:
                self.top.note = str(error)
            except Exception as error:  # noqa: BLE001  a widget's callback has nobody else to tell
                self.top.note = f"{type(error).__name__}: {error}"

        widget.on_action(clicked, action)

    def load(self, session: Session | PipelineSession | Pipeline | str | Path) -> None:
        """Starts over with another model or pipeline. Raises LiteError when it cannot be read."""
        made = session
        if not isinstance(made, (Session, PipelineSession)):
            made = open_any(made)
        with self._changing:
            self._load(made)
            self.current = "Model"

    def _load(self, made: Session | PipelineSession) -> None:
        """Every step is that of this session from now on; the open one stays open. What the steps
        had begun on another one ends, and what was done on it is kept now: it is out of sight."""
        for old in self._ends:
            old()
        left: list[str] = []
        if self._ends and made is not self.session:
            left = [title for step in self._steps.values() for title in step.leave()]
            self._begin_keeping()
        self.session = made
        self._restorable = False  # once the session was kept
        self.top.restore = ""
        self._names = _walk_of(made)
        self._steps.clear()
        self.top.title = made.path.name
        self.top.jobs = []  # those, and what was told, were of the model before
        self.top.note = _ended(listed(left), "cancelled") if left else ""
        self._write_code()
        for name in self._names:
            self.build(name, lambda name=name: self._make(name))
        self._ends = [made.observe(self._told)]
        self._states()
        self._kept.ask()  # what was done before the Workbench opened is not lost, either

    def step(self, name: str) -> Step:
        """A screen by its name; makes it when it was not opened yet. Raises KeyError."""
        if isinstance(self.session, PipelineSession):
            from .pipeline_steps.walk import STEPS as OF_PIPELINES

            if name not in self._steps:
                self._steps[name] = OF_PIPELINES[name](self.session, go=self._go)
        elif name not in self._steps:
            opens = {"Model": self._replaced, "Check": self._reopened}
            options = {"opened": opens[name]} if name in opens else {}
            self._steps[name] = step_class(name)(self.session, go=self._go, **options)
        return self._steps[name]

    def _open(self, name: str) -> None:
        with self._changing:
            super()._open(name)
        for known, step in self._steps.items():
            step.here = known == name
        if name in self._steps:
            self._steps[name].guard(self._steps[name].entered)

    def _make(self, name: str) -> Sequence[Any]:
        return [self.step(name)]

    def _replaced(self, path: Path) -> None:
        self.load(path)

    def _reopened(self, session: Session) -> None:
        """The same model, read in another way: the walk goes on at the same step."""
        with self._changing:
            self._load(session)

    def _go(self, name: str) -> None:
        self.current = name

    # ---- following the session

    def _picture(self) -> None:
        """The saved notebook's picture follows what was done, once for a burst of changes."""
        self.top.picture = self.static_html()

    def _keep(self) -> None:
        """The session is kept when nothing has changed and nothing runs."""
        if self.session.jobs:
            self._kept.ask()
            return
        self._begin_keeping()

    def _begin_keeping(self) -> None:
        if self._loop is not None:
            threading.Thread(
                target=self._write_kept, args=(self.session,), name="lite keep", daemon=True
            ).start()

    def _write_kept(self, session: Session | PipelineSession) -> None:
        for job in session.jobs:  # of a session that is out of sight
            with contextlib.suppress(Exception):
                job.wait()
        try:
            kept = session.keep()
        except LiteError as error:  # a full disk: the session itself goes on
            _log.warning("the session could not be saved: %s", error)
            return
        if kept is not None and self._loop is not None:
            self._loop.call_soon_threadsafe(self._was_kept, session)

    def _was_kept(self, session: Session | PipelineSession) -> None:
        if session is self.session:
            self._restorable = True
            self._write_restore()

    def _write_restore(self) -> None:
        """The cell that a click on Restore runs: back at the step that is open."""
        if self._restorable:
            self.top.restore = (
                f"import lite_workbench as lw\nsession = lw.restore({str(self.session.path)!r})\n"
                f"workbench = lw.Workbench(session, step={self.current!r})\nworkbench"
            )

    def _stepped(self) -> None:
        self._pictured.ask()
        self._write_restore()

    def _told(self, what: str, value: Any) -> None:
        if self._loop is not None and self._loop is not running_loop():
            self._loop.call_soon_threadsafe(self._show, what, value)
        else:
            self._show(what, value)

    def _show(self, what: str, value: Any) -> None:
        if what == "job":
            self._job(value)
        elif what == "code":
            self._write_code()
        elif what != "selected":
            self._states()
        if what not in ("job", "code"):
            self._kept.ask()

    def _job(self, job: Job) -> None:
        self.top.jobs = [one.to_dict() for one in self.session.jobs]
        if job.state in ("waiting", "running"):
            self._mark_running()
        else:
            self.top.note = "" if job.state == "done" else _ended(job.title, job.state)
            self._states()

    def _mark_running(self) -> None:
        """The steps whose results are under way."""
        for job in reversed(self.session.jobs):  # what runs has the last word
            if job.about in self._names:
                word = "waiting" if job.state == "waiting" else "working"
                self.stepper.set_step(job.about, "running", word)

    def stepper_state(self, name: str) -> str:
        """State of one step as the stepper shows it."""
        return str(next(s["state"] for s in self.stepper.steps if s["name"] == name))

    def _states(self) -> None:
        session, states = self.session, states_of(self.session)
        self.stepper.steps = [
            {"name": name, "state": states[name][0], "result": states[name][1]}
            for name in self._names
        ]
        self._mark_running()
        self.top.undo = session.undoable[-1].what if session.undoable else ""
        self.top.versions = list(session.versions)
        if session.version in session.versions:
            self.top.version = session.version
        self._pictured.ask()

    def _version_chosen(self, change: dict[str, Any]) -> None:
        if change["new"] in self.session.versions and change["new"] != self.session.version:
            self.session.use(change["new"])

    def _undo(self) -> None:
        undone = self.session.undo()
        self.top.note = tr("undone: {what}", what=undone) if undone else tr("undone")

    # ---- the code drawer

    def _export(self) -> None:
        made = self.session.notebook(f"{self.session.stem}_walk")
        self.top.note = tr("wrote {made}", made=made)

    def _write_code(self) -> None:
        with self.code.hold_sync():
            self.code.lines = list(self.session.code)
            self.code.cells = cells_of(self.session.code)

    def _inserted(self, count: int) -> None:
        cells = tr("{cells} inserted below", cells=trn("{n} cell", "{n} cells", count))
        self.top.note = cells if count else tr("Copied. Paste it into a cell.")


def _ended(title: str, state: str) -> str:
    """What is told of work that did not come to its end."""
    return (
        tr("{title}: cancelled", title=title)
        if state == "cancelled"
        else tr("{title}: failed", title=title)
    )


def _walk_of(session: Session | PipelineSession) -> list[str]:
    """The names of its steps."""
    if isinstance(session, Session):
        return list(STEPS)
    from .pipeline_steps.walk import STEPS as OF_PIPELINES

    return list(OF_PIPELINES)


def states_of(session: Session | PipelineSession) -> dict[str, tuple[str, str]]:
    """(state, three words) of every step of a model's or a pipeline's walk."""
    if isinstance(session, Session):
        return step_states(session)
    from .pipeline_steps.walk import step_states as of_pipeline

    return of_pipeline(session)


def step_states(session: Session) -> dict[str, tuple[str, str]]:
    """(state, three words) of every step."""
    states = dict.fromkeys(STEPS, ("todo", ""))
    info = session.info
    dims = (info.inputs[0]["shape"] or []) if info.inputs else []
    shape = "×".join(str(d) if isinstance(d, int) else "?" for d in dims)
    states["Model"] = ("done", shape)
    states["Check"] = CheckStep.result(session)
    if session.targets:
        states["Target"] = ("done", trn("{n} target", "{n} targets", len(session.targets)))
    if session.base in session.versions:
        states["Convert"] = (
            "done",
            trn("{n} layer", "{n} layers", len(session.base_model.graph.nodes)),
        )
    if session.quantization is not None:
        verdict = session.quantization.verdict
        states["Quantize"] = ("done", f"{verdict.sqnr_db:.0f} dB")
    if session.runs:
        *_, newest = session.runs.values()
        runs = [run for run in session.runs.values() if run.same_input(newest)]
        said = {run.gist for run in runs}
        count = len(runs)
        text = trn("{n} backend", "{n} backends", count)
        states["Run"] = ("done", text) if len(said) == 1 else ("attention", tr("outputs differ"))
    if session.evaluations:
        states["Evaluate"] = _evaluated(session.evaluations[-1])
    if session.profiles:
        last = next(reversed(session.profiles.values()))
        states["Profile"] = ("done", views.total_text(last))
    if session.comparisons:
        states["Compare"] = _compared(next(reversed(session.comparisons.values())))
    if session.exported is not None:
        states["Deploy"] = ("done", tr("written"))
    return states


def _evaluated(made: Evaluation) -> tuple[str, str]:
    """The candidate's main metric; worse by more than chance needs attention."""
    worse = any(change.significant and change.worse for change in made.changes)
    return "attention" if worse else "done", made.sides[-1].main.short


def _compared(comparison: Comparison) -> tuple[str, str]:
    state = "attention" if comparison.needs_attention else "done"
    if (answer := comparison.answer) is not None:
        return state, _answered(answer)
    if comparison.agrees:
        return state, tr("all agree")
    wrong = comparison.over_tolerance
    return state, trn("{n} failing layer", "{n} failing layers", wrong) if wrong else tr(
        "outputs differ"
    )


def _answered(answer: AnswerDifference) -> str:
    """Of integers against floats."""
    if answer.same is False:
        return tr("answers differ")
    if answer.sqnr_db is None:
        return tr("same answer") if answer.same else tr("equal outputs")
    decibels = f"{answer.sqnr_db:.0f} dB"
    return tr("same answer, {decibels}", decibels=decibels) if answer.same else decibels
