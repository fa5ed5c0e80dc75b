"""Which backend ran how much: counted from the plan, timed by the run."""

from __future__ import annotations

import json

import pytest
from lite_engine import Predictor, optimize
from lite_engine.backends.opencl.faults import Fault, planted
from lite_engine.compare import Side, compare
from lite_engine.profile import profile
from lite_engine.runtime import host_target
from lite_engine.runtime.inputs import random_feeds
from lite_engine.runtime.shares import Share, sentence, shares
from lite_workbench.cli import main
from lite_workbench.views import comparison_data, profile_data

from tests.small_models import classifier

GRAPH = classifier()
FEEDS = random_feeds(GRAPH)
MOVED = "pw", "fc"


def test_parts_of_layers_and_of_time() -> None:
    found = shares([("opencl", 3), ("cpu", 5), ("opencl", 0)])
    assert found == {"opencl": Share(2, 2 / 3, 3 / 8), "cpu": Share(1, 1 / 3, 5 / 8)}
    assert shares([("cpu", 0)]) == {"cpu": Share(1, 1.0, None)}
    assert shares([("cpu", 5)], timed=False)["cpu"].time_share is None
    assert shares([]) == {}


@pytest.mark.parametrize("found, backend, how, said", [
    ({"opencl": Share(27, 0.3, 0.31), "cpu": Share(70, 0.7, 0.69)}, "opencl", {},
     "27 of 97 layers ran on OpenCL (31 % of the time), 70 on the CPU"),
    ({"opencl": Share(27, 0.3, 0.31), "cpu": Share(70, 0.7, 0.69)}, "opencl", {"of": "them"},
     "27 of them ran on OpenCL (31 % of the time), 70 on the CPU"),
    ({"cpu": Share(97, 1.0, 1.0)}, "arm", {}, "all 97 layers ran on the CPU"),
    ({"opencl": Share(97, 1.0, 1.0)}, "opencl", {"of": "them"}, "all of them ran on OpenCL"),
    ({"opencl": Share(95, 1.0, 1.0)}, "opencl", {"of": "them", "idle": 2},
     "95 of them ran on OpenCL, 2 need no computation"),
    ({"opencl": Share(1, 1.0, 1.0)}, "opencl", {"idle": 1},
     "1 of 2 layers ran on OpenCL, 1 needs no computation"),
    ({"cpu": Share(3, 1.0, None)}, "opencl", {}, "0 of 3 layers ran on OpenCL, 3 on the CPU"),
    ({}, "x86", {}, ""),
])  # fmt: skip
def test_in_words(found, backend, how, said) -> None:
    assert sentence(found, backend, **how) == said


def mixed(*layers: str) -> Predictor:
    """The reference runs these layers, or those of MOVED."""
    moved = dict.fromkeys(layers or MOVED, "reference")
    return Predictor(GRAPH, host_target(), threads=1, overrides=moved)


def test_a_mixed_plan() -> None:
    predictor = mixed()
    predictor.run(FEEDS)
    found = predictor.shares()
    computed = [s for s in predictor.plan().steps if s.node is not None]
    assert found["reference"].layers == len(MOVED)
    assert found["cpu"].layers == len(computed) - len(MOVED)
    assert sum(x.layer_share for x in found.values()) == pytest.approx(1)
    assert sum(x.time_share for x in found.values()) == pytest.approx(1)
    made = profile(predictor, FEEDS, runs=3, roof=False)
    slow = [x.median_ms for x in made.layers if not x.overhead and x.backend == "reference"]
    every = [x.median_ms for x in made.layers if not x.overhead]
    assert made.to_dict()["shares"]["reference"]["time_share"] == pytest.approx(
        sum(slow) / sum(every)
    )
    assert type(made).from_dict(json.loads(made.to_json())).shares == made.shares
    assert "2 on the NumPy reference" in profile_data(made)["ran"]


def test_a_comparison_says_who_ran_what() -> None:
    result = compare(Side(Predictor(GRAPH, "reference")), Side(mixed()), FEEDS)
    count = len(result.layers)
    assert result.agrees and f"agree on all {count} layers; " in result.verdict
    assert {x.name for x in result.layers if x.backend_candidate == "reference"} == set(MOVED)
    assert {x.backend_baseline for x in result.layers} == {"reference"}
    assert result.shares["candidate"]["reference"].layers == len(MOVED)
    assert result.ran in result.verdict and f"{len(MOVED)} on the NumPy reference" in result.ran
    assert comparison_data(result)["ran"] == result.ran
    part = compare(Side(Predictor(GRAPH, "reference")), Side(mixed()), FEEDS, layers=["pw", "wide"])
    assert "agree on 2 layers; 1 of them ran on the CPU" in part.verdict


def test_both_sides_mixed() -> None:
    result = compare(Side(mixed(), "one"), Side(mixed("pw"), "other"), FEEDS)
    one, other = result.ran.split("; ")
    assert one.startswith("one: ") and other.startswith("other: ")
    assert "2 on the NumPy reference" in one and "1 on the NumPy reference" in other


@pytest.mark.cpu
def test_the_command_says_it_of_a_stored_program_too(tmp_path, capsys) -> None:
    model = optimize(GRAPH, targets=[host_target()])
    path = model.save(tmp_path / "m.lite")
    for words in (("run", path), ("profile", path, "--runs", 2, "--no-history")):
        assert main([*map(str, words)]) == 0
        assert " layers ran on the CPU" in capsys.readouterr().out
        assert main([*map(str, words), "--json", "-"]) == 0
        told = json.loads(capsys.readouterr().out)["shares"]
        assert told["cpu"]["layer_share"] == told["cpu"]["time_share"] == 1.0


@pytest.mark.opencl
def test_a_layer_that_opencl_gave_up_counts_for_the_cpu(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))
    from lite_engine.backends.opencl import device

    device.open_device.cache_clear()
    try:
        with planted(Fault("build", "softmax")), pytest.warns(UserWarning, match="softmax"):
            b = Side(Predictor(GRAPH, "opencl"))
            result = compare(Side(Predictor(GRAPH, host_target())), b, FEEDS)
        computed = sum(1 for s in b.predictor.plan().steps if s.node is not None)
        assert result.shares["candidate"]["cpu"].layers == 1
        assert f"{computed - 1} of them ran on OpenCL (" in result.verdict
        assert {x.name for x in result.layers if x.backend_candidate == "cpu"} == {"prob"}
    finally:
        device.open_device.cache_clear()
