"""Frames of a camera or a video through a pipeline: a bounded queue in which the newest frame wins.

    with Stream(pipeline, "auto") as stream:
        for frame in camera:
            stream.put(frame)                # never waits
            for answer in stream.ready():    # in the order of the frames
                …

Two workers by default, each with a pipeline of its own in the native runtime: while one frame is in
a model on OpenCL, the next one is decoded and prepared on the CPU.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from lite_messages import tr

from ..errors import LiteError, UsageError
from .native import NativePipeline

if TYPE_CHECKING:
    from .pipeline import Pipeline

#: Answers of which the throughput is made.
_WINDOW = 30


@dataclass(frozen=True)
class Frame:
    """One frame that was answered: its number since the start, from 0, the answer or the error of
    a frame that could not be read, the time from `put` to the answer, what each stage took of it,
    and where `put` asked for it the image with the answer on it, as a PNG file."""

    number: int
    answer: dict[str, Any] | None
    error: LiteError | None
    latency_ms: float
    times: dict[str, Any] | None = None
    drawn: bytes = b""


@dataclass(frozen=True)
class Rates:
    """Answered and dropped frames since the start; frames per second and mean latency of the last
    answers."""

    answered: int
    dropped: int
    per_second: float
    latency_ms: float


@dataclass(frozen=True)
class _Waiting:
    number: int
    data: bytes
    since: float
    draw: bool


class Stream:
    """Takes encoded frames (bytes of JPEG, PNG, BMP, or WAV) and gives answers in their order.

    `waiting` (2) frames wait at most; another one takes the place of the oldest, which is dropped.
    `workers` (2) frames are worked on at the same time. What is not a frame's own fault ends the
    stream: `put`, `ready` and `close` then raise it.
    """

    def __init__(
        self, pipeline: Pipeline, backend: Any = "auto", *, waiting: int = 2, workers: int = 2,
        **options: Any,
    ) -> None:  # fmt: skip
        for name, value in (("waiting", waiting), ("workers", workers)):
            if not 1 <= value <= 64:
                raise UsageError(
                    tr("{name} must be between 1 and 64, got {value}", name=name, value=value)
                )
        self._most = waiting
        self._change = threading.Condition()
        self._queue: deque[_Waiting] = deque()
        self._number = self._dropped = self._answered = 0
        self._working: set[int] = set()
        self._done: dict[int, Frame] = {}
        self._last: deque[tuple[float, float]] = deque(maxlen=_WINDOW)  # when, latency
        self._failed: BaseException | None = None
        self._closed = False
        made = [pipeline.native(pipeline.runners(backend, **options)) for _ in range(workers)]
        self._threads = [
            threading.Thread(target=self._work, args=(native,), daemon=True) for native in made
        ]
        for thread in self._threads:
            thread.start()

    def put(self, frame: bytes, *, drop: bool = True, draw: bool = False) -> int:
        """Gives a frame and returns its number; without `drop` it waits for room instead of taking
        the place of the oldest. With `draw` its answer is drawn on it, or that of the frame which
        takes its place. Raises UsageError after `close`, and what ended the stream."""
        with self._change:
            self._check()
            if self._closed:
                raise UsageError(tr("the stream is closed"))
            while not drop and len(self._queue) == self._most and not self._closed:
                self._change.wait()
                self._check()
            if len(self._queue) == self._most:
                draw = self._queue.popleft().draw or draw
                self._dropped += 1
            number, self._number = self._number, self._number + 1
            self._queue.append(_Waiting(number, frame, time.perf_counter(), draw))
            self._change.notify_all()
            return number

    def ready(self) -> Iterator[Frame]:
        """Answers that nothing earlier holds up; does not wait."""
        while True:
            with self._change:
                self._check()
                frame = self._next()
            if frame is None:
                return
            yield frame

    def close(self) -> list[Frame]:
        """Works off what waits, and returns the answers that `ready` has not given. Raises what
        ended the stream."""
        with self._change:
            self._closed = True
            self._change.notify_all()
        for thread in self._threads:
            thread.join()
        return list(self.ready())

    @property
    def rates(self) -> Rates:
        with self._change:
            latency = [ms for _, ms in self._last]
            span = self._last[-1][0] - self._last[0][0] if len(self._last) > 1 else 0.0
            rate = (len(self._last) - 1) / span if span > 0 else 0.0
            mean = sum(latency) / len(latency) if latency else 0.0
            return Rates(self._answered, self._dropped, rate, mean)

    def __enter__(self) -> Stream:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        with self._change:
            if error is not None:
                self._queue.clear()
            self._closed = True
            self._change.notify_all()
        for thread in self._threads:
            thread.join()

    def _check(self) -> None:
        if self._failed is not None:
            raise self._failed

    def _next(self) -> Frame | None:
        """The oldest answer, unless an older frame is still in work."""
        if not self._done:
            return None
        number = min(self._done)
        return None if any(w < number for w in self._working) else self._done.pop(number)

    def _work(self, native: NativePipeline) -> None:
        while (taken := self._take()) is not None:
            answer, error, failed, drawn = None, None, None, b""
            now = taken.since
            try:
                answer = native.answer_of(taken.data, times=True)
                now = time.perf_counter()
                drawn = native.drawn() if taken.draw else b""
            except UsageError as raised:  # this frame's own
                error, now = raised, time.perf_counter()
            except BaseException as raised:  # noqa: BLE001 (handed on to whoever uses the stream)
                failed = raised
            with self._change:
                self._working.discard(taken.number)
                if failed is not None:
                    self._failed = self._failed or failed
                    self._queue.clear()
                    self._change.notify_all()
                    return
                latency = (now - taken.since) * 1e3
                times = answer.pop("times") if answer else None
                self._done[taken.number] = Frame(taken.number, answer, error, latency, times, drawn)
                self._answered += 1
                self._last.append((now, latency))

    def _take(self) -> _Waiting | None:
        """The oldest frame that waits; None when nothing comes any more."""
        with self._change:
            while not self._queue and not self._closed and self._failed is None:
                self._change.wait()
            if not self._queue or self._failed is not None:
                return None
            taken = self._queue.popleft()
            self._working.add(taken.number)
            self._change.notify_all()  # there is room
            return taken
