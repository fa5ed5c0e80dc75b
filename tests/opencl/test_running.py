"""Around the kernels: cache, threads, taps, fallbacks, tuning, and a driver that fails."""

from __future__ import annotations

import dataclasses
import json
import threading
from pathlib import Path

import lite_engine.backends.opencl as opencl
import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import Predictor, settings
from lite_engine.backends import get_backend
from lite_engine.backends.opencl import device as devices
from lite_engine.backends.opencl import gpu_convolutions
from lite_engine.backends.opencl.faults import Fault, planted
from lite_engine.backends.opencl.tuning import Tuning
from lite_engine.backends.opencl.variants import Tile, Variant
from lite_engine.errors import BackendUnavailableError, UsageError
from lite_engine.model_file import Model, open_model
from lite_engine.profile import profile
from lite_engine.runtime.inputs import random_feeds
from lite_engine.runtime.tune import tune
from lite_workbench.cli import main

from tests.opencl.tiny import device
from tests.small_models import Builder, classifier

pytestmark = pytest.mark.opencl

GRAPH = classifier()
FEEDS = random_feeds(GRAPH)


@pytest.fixture(scope="module")
def wanted() -> dict[str, np.ndarray]:
    return Predictor(GRAPH, "reference").run(FEEDS)


def close(found: dict[str, np.ndarray], exact: dict[str, np.ndarray]) -> bool:
    return all(np.allclose(found[n], exact[n], rtol=1e-4, atol=1e-5) for n in exact)


def test_build_failure_has_the_log() -> None:
    with pytest.raises(BackendUnavailableError, match=r"cannot build unary\.cl: .*error"):
        device().program("unary", "#define ACT(x) no_such_name")


def test_two_predictors_in_two_threads(wanted) -> None:
    results: list[bool] = []

    def work() -> None:
        predictor = Predictor(GRAPH, "opencl")
        for _ in range(5):
            results.append(close(predictor.run(FEEDS), wanted))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 10


def test_a_batch_of_none() -> None:
    """Layers without elements are left to the CPU."""
    x = np.zeros((0, 3, 20, 20), np.float32)
    (got,) = Predictor(classifier("N"), "opencl").run({"x": x}).values()
    assert got.shape == (0, 10)


def test_taps_and_times() -> None:
    predictor = Predictor(GRAPH, "opencl")
    plan = predictor.plan()  # a value inside a fused step has no tensor
    names = [n.output.name for n in GRAPH.nodes if n.output.name in plan.tensor_of]
    assert close(
        predictor.run(FEEDS, taps=names), Predictor(GRAPH, "reference").run(FEEDS, taps=names)
    )
    times = predictor.execution().times()
    assert len(times) == len(predictor.plan().steps)
    assert all(t.end_ns >= t.start_ns >= 0 for t in times) and any(t.end_ns for t in times)
    assert predictor.execution().times() == times


def test_kernels_are_named_by_what_they_read() -> None:
    """A layer set to fp32 in a half-precision plan, and the casts around it."""
    half = Predictor(GRAPH, "opencl", precision="fp16", overrides={"dw": "fp32"})
    made = profile(half, FEEDS, runs=1, warmup=0)
    for layer in made.layers:
        plain = layer.op not in ("Cast", "Copy")
        assert not plain or layer.kernel.startswith(f"{layer.dtype}_"), layer
    kernel = {layer.name: layer.kernel.partition("_")[0] for layer in made.layers}
    assert kernel["pw"] == "f16" and kernel["dw"] == "f32" and kernel["Cast x"] == "f32"


def test_fallback_is_a_copy_in_the_plan() -> None:
    b = Builder((1, 4, 6, 6))
    y = b.conv(b.x, 4, 4, 3, name="conv")
    graph = b.done(b.add("Relu", b.add("CumSum", y, b.ints(2), name="fallback"), name="relu"))
    predictor = Predictor(graph, "opencl")
    ops = [(s.op, s.backend) for s in predictor.plan().steps]
    at = next(i for i, (op, _) in enumerate(ops) if op == "CumSum")
    assert ops[at][1] != "opencl"
    assert ("Copy", "opencl") in ops[:at] and ("Copy", "opencl") in ops[at:]
    feeds = random_feeds(graph)
    assert close(predictor.run(feeds), Predictor(graph, "reference").run(feeds))


def test_device_by_name_or_number() -> None:
    first = devices.reports()[0]
    for text in ("0", first.name[:5].upper()):
        with settings.override(LITE_OPENCL_DEVICE=text):
            assert devices.choose() == first
    with settings.override(LITE_OPENCL_DEVICE="no such device"):
        with pytest.raises(BackendUnavailableError, match="is not one of: 0 "):
            devices.choose()
        assert not get_backend("opencl").usability().usable


def test_tuning_is_measured_once_and_kept(tmp_path: Path) -> None:
    table = Tuning(tmp_path / "tuning.json")
    seconds = {"slow": 2.0, "fast": 1.0, "impossible": float("inf")}
    ways = list(seconds)
    measured = []

    def time(way: str) -> float:
        measured.append(way)
        return seconds[way]

    assert table.measure("normal", "size", ways, time) == seconds
    assert measured == ways and table.pick("size", ways) == "fast"
    assert not table.measure("normal", "size", ways, time)
    table.save()
    assert Tuning.load(table.path).table == {"size": "fast"}
    table.path.write_text("{ damaged")
    assert Tuning.load(table.path).table == {}


def test_measured_ways_travel_in_the_file(tmp_path: Path, monkeypatch) -> None:
    own = dataclasses.replace(device(), tuning=Tuning(tmp_path / "tuning-d0.json"))
    monkeypatch.setattr(opencl, "open_device", lambda report: own)
    backend = get_backend("opencl")
    own.tuning.table = {"size": "fast", "another model's": "way"}
    own.tuning.pick("size", ["slow", "fast"])
    assert backend.learned() == {"opencl/d0": {"size": "fast"}}
    model = Model(GRAPH, targets=["opencl"], tuning=backend.learned())
    model.save(tmp_path / "tuned.lite")
    own.tuning.table = {"measured here": "way"}
    Predictor(tmp_path / "tuned.lite", "opencl").plan()
    assert own.tuning.table == {"size": "fast", "measured here": "way"}


def test_flags_that_measure(tmp_path: Path, monkeypatch, capsys) -> None:
    """convert keeps what it measured in the file, profile places layers, run picks a backend."""
    own = dataclasses.replace(device(tiles=True), tuning=Tuning(tmp_path / "tuning-d0.json"))
    monkeypatch.setattr(opencl, "open_device", lambda report: own)
    ways = [Variant(Tile(16, 16, 4, 4), parts) for parts in (1, 2)]
    monkeypatch.setattr(gpu_convolutions, "ranked", lambda *_: ways)
    b = Builder((1, 4, 4, 4), "small")
    Model(b.done(b.conv(b.x, 4, 8, 3, name="conv"))).save(tmp_path / "small.lite")
    made = str(tmp_path / "tuned.lite")
    convert = ["convert", str(tmp_path / "small.lite"), "-o", made, "--targets", "opencl,x86"]
    assert main([*convert, "--tune", "rapid"]) == 0
    (kept,) = open_model(made).tuning["opencl/d0"].values()
    assert kept in {"image", "direct", *map(str, ways)}
    own.tuning.table.clear()
    shown = ["profile", str(tmp_path / "small.lite"), "--backend", "opencl", "--no-history"]
    assert main([*shown, "--runs", "1", "--tune", "rapid"]) == 0 and len(own.tuning.table) == 1
    assert "alone" in capsys.readouterr().out
    assert main(["run", made, "--tune", "-v"]) == 0
    assert "median of" in "".join(capsys.readouterr())
    assert main([*shown, "--tune", "sloppy"]) == 2


def test_lite_tune_says_what_changed(tmp_path: Path, monkeypatch, capsys) -> None:
    own = dataclasses.replace(device(tiles=True), tuning=Tuning(tmp_path / "tuning-d0.json"))
    monkeypatch.setattr(opencl, "open_device", lambda report: own)
    ways = [Variant(Tile(16, 16, 4, 4), parts) for parts in (1, 2)]
    monkeypatch.setattr(gpu_convolutions, "ranked", lambda *_: ways)
    b = Builder((1, 4, 4, 4), "small")
    Model(b.done(b.conv(b.x, 4, 8, 3, name="conv"))).save(tmp_path / "small.lite")
    with planted(Fault("launch", "conv2d", "image")):
        assert main(["tune", str(tmp_path / "small.lite"), "--effort", "rapid", "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    (row,) = told["measured"]
    assert (row["layer"], row["before"], told["known"]) == ("conv", str(ways[0]), 0)
    assert set(row["seconds"]) == {*map(str, ways), "image", "direct"}
    assert row["seconds"]["image"] is None  # it failed
    timed = {way: s for way, s in row["seconds"].items() if s}
    assert row["way"] == min(timed, key=timed.get) == own.tuning.table[row["size"]]
    assert main(["tune", str(tmp_path / "small.lite")]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("0 sizes of layers measured, 0 changed; 1 known already.")
    assert main(["tune"]) == 2 and main(["tune", "a.lite", "--import", "b.json"]) == 2


def test_a_session_tunes_its_model(tmp_path: Path, monkeypatch) -> None:
    own = dataclasses.replace(device(), tuning=Tuning(tmp_path / "tuning-d0.json"))
    monkeypatch.setattr(opencl, "open_device", lambda report: own)
    session, heard = lw.open(lw.shipped("digits.onnx")), []
    session.convert(["opencl"])
    session.observe(lambda what, _: heard.append(what))
    measured = session.tune("rapid")
    assert measured and {m.size: m.way for m in measured} == own.tuning.table
    assert session.code[-1] == "session.tune('rapid')" and "tuned" in heard
    assert not session.tune("rapid")  # every size is known
    assert session.run(lw.shipped("digits.png"), backend="opencl").text == "7"


def test_tune_runs_and_refuses_other_backends(wanted) -> None:
    predictor = Predictor(GRAPH, "opencl")
    tune(predictor, "rapid")
    assert close(predictor.run(FEEDS), wanted)
    with pytest.raises(UsageError, match="not one of none, rapid"):
        tune(predictor, "sloppy")
    with pytest.raises(UsageError, match="only OpenCL"):
        tune(Predictor(GRAPH, "reference"), "rapid")
