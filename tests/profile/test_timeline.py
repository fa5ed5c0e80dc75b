"""Tracks of a run: what the threads and the queue did holds against the layers' own times."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lite_engine import Predictor, optimize
from lite_engine.figures.timeline import summary, tracks
from lite_engine.profile import profile
from lite_engine.profile.export import chrome_trace
from lite_engine.profile.record import Compiled
from lite_engine.runtime import host_target

from tests.profile.profiles import layer, of_layers
from tests.small_models import classifier, image


@pytest.mark.cpu
def test_threads_are_tracks_within_their_layers() -> None:
    graph = classifier()
    made = profile(Predictor(graph, host_target(), threads=2), image(graph), runs=3, roof=False)
    assert [len(x.threads_ms) for x in made.layers] == [2] * len(made.layers)
    one, two = tracks(made.to_dict())
    assert (one.name, two.name) == ("thread 1", "thread 2")
    for track in (one, two):
        for before, after in zip(track.events, track.events[1:], strict=False):
            assert before.end_ms <= after.start_ms + 1e-9
        for event in track.events:
            start, end = made.layers[event.layer].span_ms
            assert start <= event.start_ms <= event.end_ms <= end
        spans = sum(x.span_ms[1] - x.span_ms[0] for x in made.layers)
        assert track.spent_ms("run", "copy", "wait") == pytest.approx(spans)
    single = profile(Predictor(graph, host_target(), threads=1), image(graph), runs=3, roof=False)
    assert [t.name for t in tracks(single.to_dict())] == ["cpu"]


@pytest.mark.opencl
def test_the_queue_is_a_track_with_every_launch() -> None:
    graph = optimize(classifier())
    made = profile(Predictor(graph, "opencl"), image(classifier()), runs=3, roof=False)
    (queue,) = (t for t in tracks(made.to_dict()) if t.backend == "opencl")
    assert queue.name == "OpenCL queue"
    launched = [x for x in made.layers if x.launches_ms]
    assert len(queue.events) == sum(len(x.launches_ms) for x in launched) > 5
    for row in launched:
        assert min(a for _, a, _ in row.launches_ms) == row.span_ms[0]
        assert max(b for _, _, b in row.launches_ms) == row.span_ms[1]
        assert all(queued <= a <= b for queued, a, b in row.launches_ms)
    copies = {e.name for e in queue.events if e.kind == "copy"}
    assert copies == {x.name for x in launched if x.overhead} >= {"Copy x"}


def test_sums_and_trace_by_hand() -> None:
    """10 ms: thread 2 waits 3 of them, the queue is empty 1 of its 4."""
    one = replace(layer(0, 6.0), threads_ms=[6.0, 3.0])
    two = layer(1, 4.0, backend="opencl", launches_ms=[[5.0, 6.0, 7.0], [5.5, 8.0, 10.0]])
    made = of_layers([one, two], compiled=[Compiled("conv1", 0.0, 250.0)])
    one.span_ms, two.span_ms = [0.0, 6.0], [6.0, 10.0]
    found = tracks(made.to_dict())
    rows = [(t.name, [(e.kind, e.start_ms, e.end_ms) for e in t.events]) for t in found]
    assert rows == [
        ("thread 1", [("run", 0, 6)]),
        ("thread 2", [("run", 0, 3), ("wait", 3, 6)]),
        ("OpenCL queue", [("run", 6, 7), ("run", 8, 10)]),
    ]
    assert found[2].events[1].queued_ms == 5.5
    assert summary(made.to_dict()) == (
        "10 ms in a run near the median; threads wait for each other 15 % of the time; "
        "the queue is empty 25 % of its time; before the first run, the kernels of 1 layer were "
        "compiled in 250 ms"
    )
    events = chrome_trace(made)["traceEvents"]
    spans = [(e["pid"], e["name"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"]
    assert spans[1:] == [
        (1, "conv0", 0, 6e3), (1, "conv0", 0, 3e3), (1, "wait", 3e3, 3e3),
        (1, "conv1", 6e3, 1e3), (1, "conv1", 8e3, 2e3), (2, "conv1", 0, 250e3),
    ]  # fmt: skip
