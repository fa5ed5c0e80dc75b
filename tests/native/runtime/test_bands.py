"""Bands: steps that take turns over rows give what they give one after the other."""

from __future__ import annotations

import platform
from functools import cache

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.ir import Graph
from lite_engine.plan import lifetimes, make_plan

from tests.small_models import Builder, image

from ..tiny import isas, load

pytestmark = pytest.mark.cpu

#: A second-level cache in which bands pay, whatever this machine has.
LARGE = 2 << 20


def separable() -> Graph:
    """A stem and separable convolutions: strides, padding, a residual, passes that overlap."""
    b = Builder((1, 3, 163, 145), "separable")
    y = b.conv(b.x, 3, 33, 3, strides=[2, 2], activation="Relu", name="stem")
    y = b.conv(y, 33, 33, 3, group=33, name="dw")
    y = skip = b.conv(y, 33, 48, 1, activation="HardSwish", name="pw")
    y = b.add("Clip", b.add("Add", b.conv(y, 48, 48, 1), skip), b.scalar(0.0), b.scalar(4.0))
    y = b.conv(y, 48, 48, 5, group=48, strides=[2, 2], activation="Sigmoid", name="far")
    return b.done(b.conv(y, 48, 20, 1, name="last"))


def dense() -> Graph:
    """Winograd between pools: rows come in fours and windows end inside the image."""
    b = Builder((1, 16, 101, 70), "dense")
    y = b.conv(b.x, 16, 24, 3, activation="LeakyRelu", activation_params=[0.1], name="a")
    y = b.conv(y, 24, 40, 3, activation="Relu", name="b")
    y = b.add("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], name="pool")
    y = b.conv(y, 40, 33, 3, strides=[2, 2], name="half")
    y = b.conv(y, 33, 17, 3, name="c")
    return b.done(b.add("AveragePool", y, kernel_shape=[2, 2], strides=[3, 3], name="mean"))


def grouped() -> Graph:
    """Small groups between pointwise convolutions: several in a vector, and parts of two."""
    b = Builder((1, 16, 61, 57), "grouped")
    y = b.conv(b.x, 16, 48, 1, activation="Relu", name="a")
    y = b.conv(y, 48, 48, 3, group=12, activation="Relu", name="fours")
    y = b.conv(y, 48, 48, 1, name="b")
    y = b.conv(y, 48, 48, 3, group=2, strides=[2, 2], activation="HardSwish", name="wide")
    return b.done(b.conv(y, 48, 20, 1, name="last"))


@cache
def exact() -> dict[str, np.ndarray]:
    """`dense` in NumPy, two values inside its band too."""
    graph = dense()
    return Predictor(graph, "reference").run(image(graph), taps=["a", "pool"])


@pytest.fixture
def small(monkeypatch) -> None:
    """Bands for small tensors too."""
    monkeypatch.setattr("lite_engine.plan.bands._LARGE_BYTES", 0)


@pytest.mark.parametrize("graph", [separable(), dense(), grouped()], ids=lambda g: g.name)
def test_against_the_reference(small, graph) -> None:
    feeds = image(graph)
    wanted = exact() if graph.name == "dense" else Predictor(graph, "reference").run(feeds)
    plan = make_plan(graph, "cpu")
    marked = {s.name for s in plan.steps if s.band}
    assert len(marked) > 4
    inputs = [feeds[v.name] for v in graph.inputs]
    for isa in isas():
        for threads in (1, 2, 5):
            program = load(plan, threads=threads, max_isa=isa, l2_bytes=LARGE)
            taken = {s.name for s in program.steps() if s.variant.endswith("_band")}
            assert taken <= marked and len(taken) > 3
            for value, got in zip(graph.outputs, program.run(inputs), strict=True):
                want = wanted[value.name]
                scale = np.abs(want).max()
                np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 * scale, err_msg=isa)


def test_bf16_in_a_band_is_that_of_whole_tensors(monkeypatch) -> None:
    """Odd channels, too, which are copied before they are multiplied as pairs."""
    graph = separable()
    inputs = [image(graph)[v.name] for v in graph.inputs]
    for isa in isas():
        outputs = {}
        for least in (0, 1 << 40):
            monkeypatch.setattr("lite_engine.plan.bands._LARGE_BYTES", least)
            plan = make_plan(graph, "cpu", precision="bf16")
            for threads in (1, 3):
                program = load(plan, threads=threads, max_isa=isa, l2_bytes=LARGE)
                taken = [s for s in program.steps() if s.variant.endswith("_band")]
                assert (len(taken) > 1) == (least == 0)
                (outputs[least, threads],) = program.run(inputs)
        for found in outputs.values():
            np.testing.assert_array_equal(found, outputs[1 << 40, 1], err_msg=isa)


@pytest.mark.parametrize("graph", [separable(), dense()], ids=lambda g: g.name)
def test_who_computes_a_row_changes_nothing(small, graph) -> None:
    """More threads than processors: some come late, and others take the rows they have left."""
    plan = make_plan(graph, "cpu")
    feeds = image(graph)
    inputs = [feeds[v.name] for v in graph.inputs]
    (alone,) = load(plan, threads=1, l2_bytes=LARGE).run(inputs)
    program = load(plan, threads=7, l2_bytes=LARGE)
    for _ in range(30):
        (together,) = program.run(inputs)
        np.testing.assert_array_equal(together, alone)


@pytest.mark.skipif(platform.machine() == "aarch64", reason="small caches of x86")
def test_no_bands_where_the_cache_is_small(small) -> None:
    plan = make_plan(separable(), "cpu")
    steps = load(plan, threads=1, l2_bytes=512 << 10).steps()
    assert not any(s.variant.endswith("_band") for s in steps)


def test_what_no_cache_holds_is_in_a_band() -> None:
    """9 MB between the steps, on every machine whose second-level cache has 1 MiB."""
    b = Builder((1, 4, 272, 256))
    y = b.conv(b.x, 4, 32, 1, name="wide")
    graph = b.done(b.add("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2], name="pool"))
    feeds = image(graph)
    program = load(make_plan(graph, "cpu"), threads=2, l2_bytes=1 << 20)
    taken = [s.name for s in program.steps() if s.variant.endswith("_band")]
    assert taken == ["wide", "pool"]
    (want,) = Predictor(graph, "reference").run(feeds).values()
    (got,) = program.run(list(feeds.values()))
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 * np.abs(want).max())


def test_a_tap_inside_a_band_sees_the_whole_tensor(small) -> None:
    graph = dense()
    feeds = image(graph)
    plan = make_plan(graph, "cpu")
    program = load(plan, threads=2, l2_bytes=LARGE)
    free = program.run([feeds["x"]])
    for name in ("a", "pool"):
        program.tap(plan.tensors[plan.tensor_of[name]].name)
    tapped = program.run([feeds["x"]])
    np.testing.assert_allclose(tapped[0], free[0], rtol=0, atol=1e-5)
    for name, got in program.tapped().items():
        want = exact()[name].transpose(0, 2, 3, 1)
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-4 * np.abs(want).max())


def test_times_of_a_band_add_up(small) -> None:
    graph = dense()
    program = load(make_plan(graph, "cpu"), threads=1, l2_bytes=LARGE)
    program.run([image(graph)["x"]])
    times = program.step_times_ns()
    assert all(t >= 0 for t in times)
    assert sum(times) <= program.run_ns


def test_what_a_band_reads_is_not_overwritten(small) -> None:
    """The last step writes while the first one still reads."""
    plan = make_plan(separable(), "cpu")
    spans = lifetimes(plan)
    bands: dict[int, list] = {}
    for step in plan.steps:
        if step.band:
            bands.setdefault(step.band, []).append(step)
    assert bands
    for steps in bands.values():
        read = plan.root(steps[0].inputs[0]).index
        assert read not in spans or spans[read].last >= steps[-1].index


@pytest.mark.parametrize("other", ["MaxPool", "Reshape", "output", "batch"])
def test_tensors_that_others_see_stay_whole(small, other) -> None:
    """A second reader, one through a view, the caller; and rows of several images."""
    b = Builder((2 if other == "batch" else 1, 8, 20, 20))
    y = b.conv(b.x, 8, 8, 1, name="first")
    outputs = [b.conv(y, 8, 8, 1, name="second")]
    if other == "MaxPool":
        outputs.append(b.add("MaxPool", y, kernel_shape=[2, 2]))
    elif other == "Reshape":
        flat = b.add("Reshape", y, b.ints(1, 8, 400))
        outputs.append(b.add("ReduceMax", flat, b.ints(2)))
    elif other == "output":
        outputs.append(y)
    plan = make_plan(b.done(*outputs), "cpu")
    assert not any(s.band for s in plan.steps)


def test_only_what_is_larger_than_the_cache_is_worth_it() -> None:
    """Tensors of 1 MB between layers are, of half as much are not; nor are large weights."""
    for side, channels, worth in ((90, 32, True), (60, 32, False), (35, 256, False)):
        b = Builder((1, 8, side, side))
        y = b.conv(b.conv(b.x, 8, channels, 1), channels, channels, 3, name="second")
        plan = make_plan(b.done(b.add("GlobalAveragePool", y)), "cpu")
        assert (next(s for s in plan.steps if s.name == "second").band > 0) == worth
