"""Profile: rows for every step, reconciled sums, JSON with the promised keys."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from lite_engine import Predictor, optimize, settings, system
from lite_engine.backends import Samples as RunnerSamples
from lite_engine.ir import DType, Graph, Value
from lite_engine.plan import make_plan
from lite_engine.profile import Profile, profile
from lite_engine.profile.export import layers_csv
from lite_engine.profile.measured import measure_there, median_interval, usual_runs
from lite_engine.profile.memory_map import memory_map
from lite_engine.profile.record import rounded
from lite_engine.profile.roof import Roof
from lite_engine.profile.warnings import busy_with, told_apart_ms, warnings_of
from lite_engine.runtime import host_target

from tests.profile.profiles import made_up
from tests.small_models import Builder, classifier, image

KEYS = {
    "model",
    "backend",
    "device",
    "threads",
    "environment",
    "total_ms",
    "first_run_ms",
    "layers",
    "overhead_ms",
    "peak_memory_bytes",
}
LAYER_KEYS = {
    "index",
    "name",
    "op",
    "sources",
    "backend",
    "kernel",
    "why",
    "input_shapes",
    "output_shapes",
    "dtype",
    "median_ms",
    "min_ms",
    "share",
    "macs",
    "gflops",
    "gbytes_per_s",
}


@pytest.mark.cpu
def test_profile() -> None:
    graph = classifier()
    result = profile(Predictor(graph, host_target(), threads=1), image(graph), runs=7)
    data = json.loads(result.to_json())
    assert set(data) >= KEYS and set(data["layers"][0]) >= LAYER_KEYS
    assert set(data["total_ms"]) >= {"median", "min", "p90"}
    assert sum(x.share for x in result.layers) == pytest.approx(1)
    assert result.total_ms["median"] == pytest.approx(result.sum_ms + result.unexplained_ms)
    conv = next(x for x in result.layers if x.name == "stem")
    assert conv.macs == 10 * 10 * 16 * 27 and conv.sources == ["stem"]
    assert "__" in conv.kernel and conv.why
    assert 0 < result.overhead_share < 0.5  # of a model that takes microseconds
    assert all(x.min_ms <= x.median_ms <= x.p90_ms for x in result.layers)
    assert Profile.from_dict(data).to_dict() == result.to_dict()


@pytest.mark.cpu
def test_too_few_runs_and_too_many_threads_are_said() -> None:
    graph = classifier()
    threads = system.processors() + 1
    result = profile(Predictor(graph, host_target(), threads=threads), image(graph), runs=1,
                     roof=False)  # fmt: skip
    assert {x.ci_ms for x in result.layers} == {None} and result.rankable_us == 0
    said = " ".join(result.warnings)
    assert "1 run: too few for confidence intervals" in said and "measure 6 or more" in said
    assert f"use at most --threads {threads - 1}" in said
    assert "cannot be ranked" not in said


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("layers", "runs"), [(0, 20), (1, 20), (1000, 20), (1600, 12), (2500, 8), (10**6, 8)]
)
def test_models_of_very_many_layers_run_less_often(layers: int, runs: int) -> None:
    assert usual_runs(layers) == runs


def test_runs_are_those_asked_for_or_the_usual() -> None:
    graph = classifier()
    for asked, made in ((7, 7), (None, 20)):
        found = profile(Predictor(graph, "reference"), image(graph), runs=asked, roof=False)
        assert found.runs == len(found.samples_ms) == made


def test_integers_are_called_so() -> None:
    graph = Graph("quantised")
    graph.inputs = [Value("x", DType.F32, (1, 3, 20, 20))]
    scale, zero = graph.constant(np.float32(0.1)), graph.constant(np.int8(0))
    graph.outputs = [graph.add("QuantizeLinear", [*graph.inputs, scale, zero], {}).output]
    predictor = Predictor(graph, host_target(), threads=1)
    assert profile(predictor, image(classifier()), runs=1, roof=False).precision == "int8"


@pytest.mark.cpu
def test_sizes_that_depend_on_data_are_open() -> None:
    """A count of what is not zero gives ?; a scalar stays one."""
    b = Builder((2, 3), "open")
    found = b.add("NonZero", b.x)
    rows = b.add("Transpose", found, perm=[1, 0])
    graph = b.done(rows, b.add("ReduceSum", b.x, keepdims=0))
    result = profile(Predictor(graph, host_target(), threads=1), {"x": np.ones((2, 3), np.float32)},
                     runs=1, roof=False)  # fmt: skip
    shapes = {x.op: (x.input_shapes, x.output_shapes) for x in result.layers}
    assert shapes["Transpose"] == ([[2, None]], [[None, 2]])
    assert shapes["ReduceSum"][1] == [[]]
    assert "2x?,?x2," in layers_csv(result)


@pytest.mark.opencl
def test_a_layer_on_the_cpu_is_under_no_roof_of_the_device(tmp_path) -> None:
    graph = classifier()
    predictor = Predictor(optimize(graph), "opencl", overrides={"wide": "cpu"})
    with settings.override(LITE_CACHE_DIR=str(tmp_path)):
        rows = profile(predictor, image(graph), runs=1).layers
    assert {x.backend for x in rows if x.roofline_fraction is not None} == {"opencl"}
    assert "cpu" in {x.backend for x in rows}


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("gflops", "gops", "bound"),
    [(1e-6, 0.0, None), (1e9, 0.0, "memory"), (1e-6, 1e9, "memory"), (1e9, 1e-6, "compute")],
)
def test_integers_are_under_a_roof_of_their_own(gflops, gops, bound, monkeypatch) -> None:
    """Their own, or none where it is not measured."""
    roof = Roof(gflops, 1.0, 1.0, "paper", integer_gops=gops)
    monkeypatch.setattr("lite_engine.profile._profile.measured_roof", lambda _: roof)
    graph = Graph("relu in integers")
    graph.inputs = [Value("x", DType.I8, (1, 3, 20, 20))]
    graph.outputs = [graph.add("Relu", graph.inputs, {}).output]
    made = profile(Predictor(graph, "reference"), {"x": np.ones((1, 3, 20, 20), np.int8)}, runs=1)
    assert [x.bound_by for x in made.layers] == [bound]


@pytest.mark.cpu
def test_clock_and_heat_around_the_runs(monkeypatch) -> None:
    """Read before and after where they are readable; a clock that fell is said."""
    told = iter([
        {"frequency_khz": 3_000_000, "max_frequency_khz": 3_000_000, "governor": "performance",
         "temperature_millicelsius": 50_000},
        {"frequency_khz": 2_000_000, "max_frequency_khz": 3_000_000, "governor": "performance",
         "temperature_millicelsius": 90_000},
    ])  # fmt: skip
    monkeypatch.setattr("lite_engine.devices.condition.read_here", lambda: next(told))
    graph = classifier()
    result = profile(Predictor(graph, host_target(), threads=1), image(graph), runs=2, roof=False)
    assert result.environment["frequency_khz"] == 3_000_000
    assert result.environment["frequency_khz_after"] == 2_000_000
    assert result.environment["temperature_millicelsius_after"] == 90_000
    said = " ".join(result.warnings)
    assert "throttling likely: 90 °C" in said
    assert "the clock is at 2.00 of 3.00 GHz (it dropped during the run: throttling)" in said


def test_the_interval_of_a_median_holds_it_in_95_of_100_cases() -> None:
    """Of n runs those between ranks l and h hold the median unless fewer than l or at least h of
    them lie below it: a binomial."""
    assert median_interval(np.arange(5.0)) is None
    for n in range(6, 50):
        apart = int(2 * median_interval(2.0 ** np.random.default_rng(n).permutation(n)))
        low, high = (apart & -apart).bit_length(), apart.bit_length() + 1  # 2^h - 2^l, ranks from 1
        held = sum(math.comb(n, k) for k in range(low, high)) / 2**n
        assert 0.94 < held < 0.99, n


def test_times_of_a_device_are_milliseconds() -> None:
    """Nanoseconds of the runner, its steps laid end to end."""
    steps = np.array([[1_000_000, 3_000_000], [2_000_000, 2_000_000]])
    execution = SimpleNamespace(
        measure=lambda ordered, runs, warmup: RunnerSamples(
            steps, np.array([4_500_000, 4_250_000]), 9_000_000, {"governor": "paper"}, ["hot"]
        ),
        times=lambda: [SimpleNamespace(variant=v) for v in "ab"],
        memory=lambda: {"arena": 64, "weights": 36},
    )
    device = SimpleNamespace(target=lambda: "arm", name="board", times_meaningful=True)
    made = measure_there(execution, [], 2, 0, device)
    assert made.first_ms == 9 and made.samples.plain.tolist() == [4.5, 4.25]
    assert made.samples.starts.tolist() == [[0, 1], [0, 2]]
    assert made.samples.ends.tolist() == [[1, 4], [2, 4]]
    assert made.samples.variants == ["a", "b"] and made.peak_bytes == 100
    assert made.conditions == {"cpu": "arm of board", "governor": "paper"}
    assert made.warnings == ["hot"]
    slower = np.linspace(1e6, 2e6, 9).astype(int)
    samples = RunnerSamples(np.ones((9, 2), int), slower, 9_000_000, {}, [])
    execution.measure = lambda ordered, runs, warmup: samples
    (said,) = measure_there(execution, [], 9, 0, device).warnings
    assert "not steady: 1.125 ms at first, 1.875 ms at the end" in said
    device.times_meaningful = False
    assert measure_there(execution, [], 9, 0, device).warnings == []


def test_what_a_profile_is_not_trusted_in() -> None:
    quiet = made_up([1.0, 2.0])
    assert warnings_of(quiet) == []
    said = "the machine is busy: one run in ten took at least 1.5 times the median"
    rounded = "; times are rounded to the digits that are certain"
    slow = made_up([1.0, 2.0], total_ms={"median": 3.1, "min": 3.0, "p90": 1.5 * 3.1})
    assert busy_with(quiet, 0.1) == "" and busy_with(slow, 0.1) == said + rounded
    assert busy_with(slow, 0.0) == said, "too few runs to know the digits: nothing is rounded"
    torn = made_up([1.0, 2.0], sum_ms=4.0, total_ms={"median": 4.0, "min": 4.0, "p90": 4.0})
    assert "medians of the layers add up to 75 % of a run" in busy_with(torn, 0.0)
    both = replace(slow, sum_ms=4.0, busy=busy_with(slow, 0.0))
    assert warnings_of(both) == [both.busy], "said once"


def test_a_busy_machine_rounds_its_totals() -> None:
    """31 runs from 4 to 7 ms: the 95 % interval of the median, ranks 10 to 20, is 1 ms wide."""
    assert told_apart_ms(np.linspace(4, 7, 31)) == 1.0
    wild = np.repeat([1, 5.7, 40], [14, 3, 14])  # 39 ms wide
    assert rounded(5.7, told_apart_ms(wild)) == "6", "not 10, which no run took"
    assert told_apart_ms(np.linspace(4, 4.3, 31)) == 0.1 and told_apart_ms(np.ones(3)) == 0
    assert [rounded(5.51, step) for step in (0, 0.01, 0.1, 1, 10)] == [
        "5.51", "5.51", "5.5", "6", "10",
    ]  # fmt: skip


def test_a_roof_is_the_best_of_its_measurements() -> None:
    one, two = Roof(5.0, 2.0, 9.0, "one"), Roof(4.0, 3.0, 8.0, "two", integer_gops=7.0)
    best = one.better(two)
    assert (best.gflops, best.gbytes_per_s, best.cache_gbytes_per_s) == (5.0, 3.0, 9.0)
    assert best.integer_gops == 7.0
    assert best.measured == 2 and best.better(two).measured == 3  # MEASURED ends it


@pytest.mark.parametrize("overrides", [{}, {"pw": "cpu"}], ids=["whole", "cut"])
@pytest.mark.parametrize("backend", ["cpu", "opencl"])
def test_what_lives_at_one_step_lies_apart(backend, overrides) -> None:
    """Arena and device buffers, also of several segments; the peak is what a count gives."""
    made = memory_map(make_plan(classifier(), backend, overrides=overrides))
    end = made["arena_bytes"] + made["device_bytes"]
    live = []
    for step in range(len(made["steps"])):
        here = [t for t in made["tensors"] if t["first"] <= step <= t["last"]]
        spans = sorted((t["offset"], t["offset"] + t["bytes"]) for t in here)
        assert all(a[1] <= b[0] for a, b in pairwise(spans)) and spans[-1][1] <= end
        live.append(sum(t["bytes"] for t in here))
    peak = made["peak"]
    assert peak["live_bytes"] == max(live) == sum(t["bytes"] for t in peak["tensors"])
    assert peak["name"] == made["steps"][live.index(max(live))]
