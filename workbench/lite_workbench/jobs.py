"""Long work off the main thread: progress, time left, cancel, and an error that keeps its fix."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from lite_engine.errors import LiteError, UsageError
from lite_engine.progress import listening


class Cancelled(LiteError):
    """The person pressed Cancel; what was finished before is kept."""

    kind = "cancelled"


class Job:
    """One piece of work. `state` is "running", "done", "failed" or "cancelled".

    The work calls ``progress(done, total)`` or `heed`, which raise Cancelled once `cancel` was
    called; what the engine tells of itself (`lite_engine.progress`) is `doing` meanwhile.
    `on_change(job)` is called on the working thread, at most ten times a second.
    """

    def __init__(self, title: str, work: Callable[[Job], object], on_change: Callable[[Job], None]):
        self.title = title
        self.state = "running"
        self.done, self.total = 0, 0
        self.doing = ""
        self.result: Any = None
        self.error: BaseException | None = None
        self._work, self._on_change = work, on_change
        self._stop = threading.Event()
        self._told = time.monotonic()
        self._counted = self._told, 0  # when this count began, and at what
        self._thread = threading.Thread(target=self._run, name=f"lite {title}", daemon=True)

    def start(self) -> Job:
        self._on_change(self)
        self._thread.start()
        return self

    def cancel(self) -> None:
        """Asks the work to stop at its next progress."""
        self._stop.set()

    def wait(self, timeout: float | None = None) -> Any:
        """The result. Raises the work's own error, or TimeoutError."""
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise TimeoutError(f"{self.title} still runs")
        if self.error is not None:
            raise self.error
        return self.result

    def heed(self) -> None:
        """Where there is nothing to count. Raises Cancelled."""
        if self._stop.is_set():
            after = f" after {self.done} of {self.total}" if self.total else ""
            raise Cancelled(f"{self.title} was cancelled{after}")

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
        the count began; None before one more was done."""
        began, first = self._counted
        if self.done == first or not self.total:
            return None
        return (time.monotonic() - began) / (self.done - first) * (self.total - self.done)

    def to_dict(self) -> dict[str, Any]:
        """As `lite_widgets.TopBar.job` takes it."""
        left = self.left_s
        text = "" if left is None else f"about {duration(left)}"
        title = f"{self.title}: {self.doing}" if self.doing else self.title
        return {"title": title, "done": self.done, "total": self.total, "left": text}

    def _run(self) -> None:
        try:
            self.result = self._work(self)
            self.state = "done"
        except Cancelled as error:
            self.error, self.state = error, "cancelled"
        except Exception as error:  # noqa: BLE001  handed over by `wait` and shown by who observes
            self.error, self.state = error, "failed"
        self._on_change(self)


class Work:
    """Jobs one at a time. `told(job)` is called as `Job.on_change` is."""

    def __init__(self, told: Callable[[Job], None]) -> None:
        self.job: Job | None = None
        self._told = told
        self._now: Job | None = None

    def start(self, title: str, work: Callable[[], object]) -> Job:
        """Runs `work` on another thread. Raises UsageError while something else runs."""
        if self.job is not None and self.job.state == "running":
            raise UsageError(f"{self.job.title} still runs", fix="wait for it or cancel it")

        def run(job: Job) -> object:
            self._now = job
            try:
                with listening(job.engine_progress):
                    return work()
            finally:
                self._now = None

        self.job = Job(title, run, self._told)
        return self.job.start()

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
