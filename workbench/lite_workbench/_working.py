"""What the sessions of a model and of a pipeline share: the code so far, and long work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ._observe import Observable
from .jobs import Job, Work
from .names import stem_of


class Working(Observable):
    """`code` is the session so far, one line of Python each; `work` runs in another thread."""

    path: Path
    code: list[str]

    def __init__(self) -> None:
        super().__init__()
        self.work = Work(self._job_changed)

    @property
    def stem(self) -> str:
        """What files made from it are called, without a suffix."""
        return stem_of(self.path)

    def remember(self, line: str) -> None:
        """Adds a line to the code of the session; the same twice in a row is written once."""
        if not self.code or self.code[-1] != line:
            self.code.append(line)
            self.notify("code", line)

    def start(self, title: str, work: Callable[[], object], about: str = "") -> Job:
        """Queues `work` for another thread, told as "job"; `about` is the step that waits."""
        return self.work.start(title, work, about)

    @property
    def job(self) -> Job | None:
        """The work that runs, or ran last."""
        return self.work.job

    @property
    def jobs(self) -> list[Job]:
        """The work that runs, then what waits for it, in this order."""
        return self.work.jobs

    def progress(self, done: int, total: int) -> None:
        """Long methods report here; raises Cancelled when the job was cancelled."""
        self.work.progress(done, total)

    def _job_changed(self, job: Job) -> None:
        self.notify("job", job)
        if job.state == "failed":
            self.notify("error", job.error)
