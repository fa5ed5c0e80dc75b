"""Long work off the main thread, one after the other: progress, time left, cancel, and an error
that keeps its fix."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

from lite_engine.errors import LiteError
from lite_engine.progress import listening
from lite_messages import tr

_NUMBERS = itertools.count(1)


class Cancelled(LiteError):
    """The person pressed Cancel; what was finished before is kept."""

    kind = "cancelled"


class Job:
    """One piece of work. `about` names the step of the Workbench whose result it makes. `state` is
    "waiting", "running", "done", "failed" or "cancelled".

    The work calls ``progress(done, total)`` or `heed`, which raise Cancelled once `cancel` was
    called; what the engine tells of itself (`lite_engine.progress`) is `doing` meanwhile.
    `on_change(job)` is called on the working thread, at most ten times a second.
    """

    def __init__(
        self,
        title: str,
        work: Callable[[Job], object],
        on_change: Callable[[Job], None],
        about: str = "",
    ) -> None:
        self.title, self.about = title, about
        self.id = f"job-{next(_NUMBERS)}"
        self.state = "waiting"
        self.done, self.total = 0, 0
        self.doing = ""
        self.result: Any = None
        self.error: BaseException | None = None
        self._work, self._on_change = work, on_change
        self._stop, self._ended = threading.Event(), threading.Event()
        self._lock = threading.Lock()
        self._told = time.monotonic()
        self._counted = self._told, 0  # when this count began, and at what

    def claim(self) -> bool:
        """Takes it from the queue; False when it was cancelled meanwhile."""
        with self._lock:
            claimed = self.state == "waiting"
            if claimed:
                self.state = "running"
        return claimed

    def begin(self) -> None:
        """Runs the claimed work on a thread of its own."""
        self._told = time.monotonic()
        self._counted = self._told, 0
        self._on_change(self)
        threading.Thread(target=self._run, name=f"lite {self.title}", daemon=True).start()

    @property
    def ended(self) -> bool:
        return self.state in ("done", "failed", "cancelled")

    def cancel(self) -> None:
        """Asks the work to stop at its next progress; what still waits never begins."""
        self._stop.set()
        with self._lock:
            waits = self.state == "waiting"
            if waits:
                self.state = "cancelled"
        if waits:
            self._end(
                "cancelled",
                Cancelled(tr("{title} was cancelled before it began", title=self.title)),
            )

    def wait(self, timeout: float | None = None) -> Any:
        """The result. Raises the work's own error, LiteError for work that exited, or
        TimeoutError."""
        if not self._ended.wait(timeout):
            raise TimeoutError(tr("{title} still runs", title=self.title))
        if self.error is not None:
            raise self.error
        return self.result

    def heed(self) -> None:
        """Where there is nothing to count. Raises Cancelled."""
        if self._stop.is_set():
            after = (
                tr(" after {done} of {total}", done=self.done, total=self.total)
                if self.total
                else ""
            )
            raise Cancelled(tr("{title} was cancelled{after}", title=self.title, after=after))

    def progress(self, done: int, total: int) -> None:
        """Nothing to count any more: 0, 0. Raises Cancelled."""
        self.heed()
        now = time.monotonic()
        if total != self.total or done < self.done:
            self._counted = now, done
        self.done, self.total = done, total
        if now - self._told >= 0.1 or done == total:
            self._told = now
            self._on_change(self)

    def engine_progress(self, what: str, done: int, total: int) -> None:
        """A part of the work that the engine counts by itself. Raises Cancelled."""
        self.doing = what if done < total else ""
        self.progress(done, total)

    @property
    def left_s(self) -> float | None:
        """Seconds left of what is counted now, if the rest goes as fast as what was done since
        the count began; None before one more was done, and after the last."""
        began, first = self._counted
        if self.done == first or self.done >= self.total:
            return None
        return (time.monotonic() - began) / (self.done - first) * (self.total - self.done)

    def to_dict(self) -> dict[str, Any]:
        """As `lite_widgets.Running.jobs` takes it."""
        left = self.left_s
        text = "" if left is None else tr("about {duration}", duration=duration(left))
        if self.state == "running" and 0 < self.total <= self.done:
            text = tr("finishing")  # what was counted is done, the work is not
        title = f"{self.title}: {self.doing}" if self.doing else self.title
        return {"id": self.id, "state": self.state, "title": title,
                "done": self.done, "total": self.total, "left": text}  # fmt: skip

    def _run(self) -> None:
        try:
            self.result = self._work(self)
            self._end("done")
        except Cancelled as error:
            self._end("cancelled", error)
        except Exception as error:  # noqa: BLE001  handed over by `wait` and shown by who observes
            self._end("failed", error)
        except BaseException as error:  # noqa: BLE001  an exit ends the work, not who waits for it
            said = f"{type(error).__name__}: {error}".removesuffix(": ")
            failed = LiteError(tr("{title} stopped ({reason})", title=self.title, reason=said))
            failed.__cause__ = error
            self._end("failed", failed)

    def _end(self, state: str, error: BaseException | None = None) -> None:
        self.error, self.state = error, state
        try:
            self._on_change(self)
        finally:
            self._ended.set()


class Work:
    """A queue of jobs, of which one runs at a time. `told(job)` is called as `Job.on_change` is."""

    def __init__(self, told: Callable[[Job], None]) -> None:
        self.job: Job | None = None
        self._waiting: list[Job] = []
        self._told = told
        self._now: Job | None = None
        self._lock = threading.RLock()

    @property
    def jobs(self) -> list[Job]:
        """What runs, then what waits, in their order."""
        with self._lock:
            running = [self.job] if self.job is not None and self.job.state == "running" else []
            return [*running, *self._waiting]

    def start(self, title: str, work: Callable[[], object], about: str = "") -> Job:
        """Runs `work` on another thread, after what was started before."""

        def run(job: Job) -> object:
            self._now = job
            try:
                with listening(job.engine_progress):
                    return work()
            finally:
                self._now = None

        job = Job(title, run, self._changed, about)
        with self._lock:
            self._waiting.append(job)
            waits = bool(self.jobs[:-1])
        if waits:
            self._told(job)
        else:
            self._next()
        return job

    def _changed(self, job: Job) -> None:
        """Tells of a job; after the last change of one, the next begins."""
        if job.state in ("waiting", "running"):
            self._told(job)
            return
        with self._lock:
            if job in self._waiting:
                self._waiting.remove(job)
        try:
            self._told(job)
        finally:
            self._next()

    def _next(self) -> None:
        with self._lock:
            if self.job is not None and self.job.state == "running":
                return
            job = next((x for x in self._waiting if x.claim()), None)
            if job is None:
                return
            self._waiting.remove(job)
            self.job = job
        job.begin()

    def progress(self, done: int, total: int) -> None:
        """The running job's; work that was called directly has none to tell."""
        if self._now is not None:
            self._now.progress(done, total)

    def heed(self) -> None:
        """`Job.heed` of what runs."""
        if self._now is not None:
            self._now.heed()


def duration(seconds: float) -> str:
    """5 s, 3 min, 2 h: to the unit that a person waits in, at least 1 s."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 1):.0f} s"
