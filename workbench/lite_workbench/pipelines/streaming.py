"""Frames through a pipeline for a session: rates, what each stage takes, an answer to look at."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from lite_engine.pipeline import Frame, Frames, Pipeline, Stream, feed
from lite_messages import tr

#: Seconds between two reports, and between two drawn frames.
_TOLD_S, _DRAWN_S = 0.25, 1.0


@dataclass(frozen=True)
class Streamed:
    """Frames that went through a pipeline, all of them or so far (`answered` and `dropped` then are
    fewer than `total`).

    source, version, backend   the folder or the file, and what ran where
    fps                  how many frames came in a second; None: every one was waited for
    failed               frames that could not be read; they count as answered
    per_second           answered frames
    median_ms, worst_ms  latency
    times                means of what the stages take, as `Pipeline.last` has them
    number, answer       the newest frame that was drawn; `drawn` is its PNG file
    """

    source: str
    version: str
    backend: str
    fps: float | None
    total: int
    answered: int
    dropped: int
    failed: int
    per_second: float
    median_ms: float
    worst_ms: float
    times: dict[str, Any] = field(repr=False)
    number: int
    answer: dict[str, Any] | None = field(repr=False)
    drawn: bytes = field(repr=False)

    @property
    def headline(self) -> str:
        return tr("{source}, {version} on {backend}: {rate:.1f} frames/s", source=self.source,
                  version=self.version, backend=self.backend, rate=self.per_second)  # fmt: skip

    @property
    def note(self) -> str:
        """How the frames came, or how far they came before the stream was stopped."""
        count = self.answered + self.dropped
        if count < self.total:
            return tr("{count} of {total} frames", count=count, total=self.total)
        if self.fps is None:
            return tr("every frame answered")
        return tr("sent at {fps:g} frames/s, the newest wins", fps=self.fps)


def stream_frames(
    pipeline: Pipeline, source: str | Path, backend: str = "auto", fps: float | None = None, *,
    version: str, told: Callable[[Streamed], object], progress: Callable[[int, int], object],
) -> Streamed:  # fmt: skip
    """The frames of a folder or a Motion-JPEG file; `told` hears of them four times a second, and
    of what there is when `progress` ends it. Raises UsageError, and what running a model raises."""
    frames = Frames(source)
    tally = _Tally(Path(source).name, version, backend, fps, len(frames))
    draw_s = None if pipeline.hears else _DRAWN_S
    last = time.monotonic()
    with Stream(pipeline, backend) as running:
        try:
            for frame in feed(running, frames, fps, draw_s=draw_s):
                tally.add(frame, shown=bool(frame.drawn) or pipeline.hears)
                if time.monotonic() - last >= _TOLD_S:
                    last = time.monotonic()
                    told(tally.so_far(running.rates.dropped))
                progress(frame.number + 1, len(frames))
        finally:
            if tally.latencies:
                told(tally.so_far(running.rates.dropped))
    return tally.so_far(running.rates.dropped)


class _Tally:
    """What was answered so far."""

    def __init__(
        self, source: str, version: str, backend: str, fps: float | None, total: int
    ) -> None:
        self.given = source, version, backend, fps, total
        self.latencies: list[float] = []
        self.failed = 0
        self.sums: dict[str, Any] | None = None
        self.shown: Frame | None = None
        self._began = self._now = time.monotonic()

    def add(self, frame: Frame, *, shown: bool) -> None:
        self._now = time.monotonic()
        self.latencies.append(frame.latency_ms)
        if frame.times is None:
            self.failed += 1
        else:
            self.sums = _sum(self.sums, frame.times) if self.sums else frame.times
        if shown:
            self.shown = frame

    def so_far(self, dropped: int) -> Streamed:
        count, shown = len(self.latencies), self.shown
        seconds = self._now - self._began
        source, version, backend, fps, total = self.given
        return Streamed(
            source, version, backend, fps, total,
            answered=count, dropped=dropped, failed=self.failed,
            per_second=count / seconds if seconds > 0 else 0.0,
            median_ms=median(self.latencies), worst_ms=max(self.latencies),
            times=_mean(self.sums, count - self.failed), number=shown.number if shown else 0,
            answer=shown.answer if shown else None, drawn=shown.drawn if shown else b"",
        )  # fmt: skip


def _sum(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """Of what two frames took, stage by stage."""
    stages = [
        {key: value if isinstance(value, str) else value + stage[key] for key, value in one.items()}
        for one, stage in zip(a["stages"], b["stages"], strict=True)
    ]
    return {
        "total_ms": a["total_ms"] + b["total_ms"],
        "decode_ms": a["decode_ms"] + b["decode_ms"],
        "stages": stages,
    }


def _mean(sums: dict[str, Any] | None, count: int) -> dict[str, Any]:
    """As `stage_table` takes it; None before the first frame that could be read."""
    if sums is None:
        return {"total_ms": 0.0, "decode_ms": 0.0, "stages": []}
    stages = [
        {key: value if isinstance(value, str) else value / count for key, value in stage.items()}
        for stage in sums["stages"]
    ]
    return {
        "total_ms": sums["total_ms"] / count,
        "decode_ms": sums["decode_ms"] / count,
        "stages": [{**stage, "pictures": f"{stage['pictures']:.3g}"} for stage in stages],
    }
