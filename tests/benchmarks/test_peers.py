"""The benchmark against peers: what it compares, and that a missing peer stops nothing."""

import json
import subprocess
import sys

import numpy as np
import pytest

from benchmarks import table
from benchmarks.cold import cold_starts
from benchmarks.environments import extra, python_of
from benchmarks.models import Files
from benchmarks.peers import ENGINES, peer
from benchmarks.schedule import choose, distance_of, measure

NETWORK = "mobilenet_v3_small"


def test_outputs_are_brought_together_before_they_are_compared():
    rng = np.random.default_rng(0)
    a, b = rng.random((1, 3, 4, 5), np.float32), rng.random((1, 7), np.float32)
    assert distance_of([a, b], [a, b]) == 0
    assert distance_of([b[0], np.moveaxis(a, 1, -1)], [a, b]) == 0  # another order, NHWC, no batch
    assert distance_of([a, b + 1], [a, b]) > 0.5
    assert distance_of([a], [a, b]) is None
    assert distance_of([a, b[:, 1:]], [a, b]) is None


def test_a_ratio_counts_only_peers_whose_output_is_ours():
    nets = {
        "one/1": {"lite": {"min_ms": 2.0}, "ncnn": {"min_ms": 4.0},
                  "mnn": {"min_ms": 1.0, "error": "its output is not ours"}},
        "two/1": {"lite": {"min_ms": 2.0}, "ncnn": {"min_ms": 1.0}},
        "three/2": {"lite": {"min_ms": 2.0}, "ncnn": {"error": "not installed"}},
    }  # fmt: skip
    found = table.ratios(nets, "min_ms")
    assert found == pytest.approx({"one/1": 0.5, "two/1": 2.0, "geomean/1": 1.0, "geomean": 1.0})


def test_engines_are_chosen_by_name():
    assert choose("ncnn,lite") == ["lite", "ncnn"]
    with pytest.raises(ValueError, match="there are: lite, onnxruntime"):
        choose("torch")
    for engine in ENGINES:
        assert "fp32" in peer(engine).PRECISIONS
    assert {r.partition(">")[0].lower() for r in extra()} >= {"onnxruntime", "openvino", "mnn"}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return Files(tmp_path_factory.mktemp("models"))


@pytest.fixture
def no_peers(monkeypatch, tmp_path):
    """Only what this environment has: our engine and onnxruntime."""
    monkeypatch.setenv("LITE_BENCH_PEERS", str(tmp_path))
    assert python_of("openvino") == sys.executable


def test_a_run_goes_on_without_a_peer(files, no_peers):
    rows = measure(files, NETWORK, ["lite", "onnxruntime", "mnn"], 1, "fp32", 0.1)
    assert "_tools" in rows["mnn"]["error"]  # the converter's own complaint
    assert rows["onnxruntime"]["distance"] < 1e-4
    for engine in ("lite", "onnxruntime"):
        row = rows[engine]
        assert 0 < row["min_ms"] <= row["median_ms"] and row["runs"] >= 3
        assert row["peak_mib"] > 10 and row["load_s"] > 0 and row["min_cpu_ms"] > 0
    assert table.ratio(rows, "min_ms") == rows["lite"]["min_ms"] / rows["onnxruntime"]["min_ms"]


def test_a_cold_start_counts_from_the_start_of_the_process(files, no_peers, monkeypatch):
    monkeypatch.setattr("benchmarks.cold.TIMES", 1)
    rows = cold_starts(files, NETWORK, ["lite", "onnxruntime"], 1, "fp32")
    for row in rows.values():
        assert row["process_s"] > row["load_s"] + row["first_s"] and row["again_s"] > 0


def test_a_worker_answers_errors_as_json():
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.worker", "lite"], capture_output=True, text=True,
        input='{"burst_ms": 1}\n', check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == {"error": "no model is loaded"}
