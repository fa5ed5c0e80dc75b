"""The tracks of a profile's typical run: its threads, a device's queue, other backends.

`profile` is `Profile.to_dict()`; times are in ms from the start of the run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from lite_messages import tr, trn

Kind = Literal["run", "copy", "wait"]


class Event(NamedTuple):
    """What a track did for a layer (its index in the profile). A thread's work on a layer is drawn
    in one piece, and its waiting for the others ("wait") after it, also where several phases took
    turns. `queued_ms` is when a device's queue got it."""

    layer: int
    name: str
    kind: Kind
    start_ms: float
    end_ms: float
    queued_ms: float | None = None


@dataclass
class Track:
    """A thread, a queue or a backend; `backend` is that of its layers. In what its events leave
    free it had nothing to do."""

    name: str
    backend: str
    events: list[Event] = field(default_factory=list)

    def spent_ms(self, *kinds: Kind) -> float:
        return sum(e.end_ms - e.start_ms for e in self.events if e.kind in kinds)


def tracks(profile: dict[str, Any]) -> list[Track]:
    """In the order in which the run comes to them, threads beside each other."""
    found: dict[str, Track] = {}
    threads = max((len(row["threads_ms"]) for row in profile["layers"]), default=0)
    queue = tr("OpenCL queue")
    thread_names = [tr("thread {number}", number=i + 1) for i in range(threads)]
    for i, row in enumerate(profile["layers"]):
        name, (start, end) = row["name"], row["span_ms"]
        kind: Kind = "copy" if row["copy"] or row["overhead"] else "run"

        def add(track: str, *events: Event, backend: str = row["backend"]) -> None:
            found.setdefault(track, Track(track, backend)).events += events

        if row["launches_ms"]:
            for queued, begun, ended in row["launches_ms"]:
                add(queue, Event(i, name, kind, begun, ended, queued))
        elif len(row["threads_ms"]) > 1:
            for thread, spent in zip(thread_names, row["threads_ms"]):
                until = min(start + spent, end)
                own = [Event(i, name, kind, start, until)] if spent else []
                wait = [Event(i, name, "wait", until, end)] if end > until else []
                add(thread, *own, *wait)
        elif row["backend"] == "cpu" and threads > 1:
            add(thread_names[0], Event(i, name, kind, start, end))
        else:
            add(row["backend"], Event(i, name, kind, start, end))
    return list(found.values())


def summary(profile: dict[str, Any], made: list[Track] | None = None) -> str:
    """What the threads and the queue lose: waiting for each other, having nothing to do. `made` are
    the profile's `tracks`, where they are known."""
    made = tracks(profile) if made is None else made
    whole = max((e.end_ms for t in made for e in t.events), default=0.0)
    if not whole:
        return ""
    waits = sum(t.spent_ms("wait") for t in made)
    threads = sum(1 for t in made if t.spent_ms("wait") or t.backend == "cpu")
    copies = sum(t.spent_ms("copy") for t in made)
    said = [tr("{ms} ms in a run near the median", ms=_ms(whole))]
    if waits:
        share = f"{100 * waits / (threads * whole):.0f}"
        said.append(tr("threads wait for each other {share} % of the time", share=share))
    for track in made:
        if track.events[0].queued_ms is not None:
            span = track.events[-1].end_ms - track.events[0].start_ms
            idle = max(0.0, span - track.spent_ms("run", "copy"))
            share = f"{100 * idle / span:.0f}" if span else "0"
            said.append(tr("the queue is empty {share} % of its time", share=share))
    if copies:
        said.append(tr("copies take {ms} ms on all tracks", ms=_ms(copies)))
    if compiled := profile.get("compiled"):
        spent = sum(c["end_ms"] - c["start_ms"] for c in compiled)
        said.append(
            trn(
                "before the first run, the kernels of {n} layer were compiled in {ms} ms",
                "before the first run, the kernels of {n} layers were compiled in {ms} ms",
                len(compiled), ms=_ms(spent),
            )
        )  # fmt: skip
    return "; ".join(said)


def _ms(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
