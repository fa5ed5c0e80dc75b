"""`lite pipeline --stream`: a folder or a Motion-JPEG file as frames, the rates shown live."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from lite_engine.terminal import printable
from lite_messages import tr

from ..pipelines.tables import found

if TYPE_CHECKING:
    from lite_engine.pipeline import Frame, Pipeline, Rates


def stream(
    pipeline: Pipeline, source: str, backend: str, fps: float | None, *, quiet: bool, **options: Any
) -> Rates:
    """Prints a line for each answer (unless `quiet`), and the rates on standard error once a
    second. Without `fps` every frame is answered; with it they come at this rate and the newest
    wins. Raises UsageError, and what running raises."""
    from lite_engine.pipeline import Frames, Stream, feed

    frames = Frames(source)
    with Stream(pipeline, backend, **options) as running:
        told = time.monotonic()
        for frame in feed(running, frames, fps):
            _tell(frame, quiet)
            if time.monotonic() - told >= 1:
                told = time.monotonic()
                print(rates_line(running.rates), file=sys.stderr)
        return running.rates


def _tell(frame: Frame, quiet: bool) -> None:
    if quiet:
        return
    if frame.answer is None:
        said = str(frame.error)
    else:
        rows = found(frame.answer["answers"])
        said = "; ".join(f"{text or what} {score}" for what, text, score, _ in rows[:3])
        said = said or tr("nothing found")
    print(tr("frame {number}: {said} ({latency:.0f} ms)", number=frame.number, said=printable(said),
             latency=frame.latency_ms), flush=True)  # fmt: skip


def rates_line(rates: Rates) -> str:
    return tr(
        "{answered} frames, {dropped} dropped: {per_second:.1f} frames/s, latency {latency:.0f} ms",
        answered=rates.answered, dropped=rates.dropped, per_second=rates.per_second,
        latency=rates.latency_ms,
    )  # fmt: skip
