"""Predictor: backends agree with the reference, inputs are checked, the choice is explained."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor, optimize, settings
from lite_engine.errors import ShapeError, TargetMismatchError, UsageError
from lite_engine.runtime import host_target

from tests.small_models import Builder, attention, classifier, image


def relative_l2(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


@pytest.mark.cpu
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("graph", [classifier(), attention()], ids=lambda g: g.name)
def test_native_agrees_with_the_reference(graph, threads) -> None:
    feeds = image(graph)
    native = Predictor(graph, host_target(), threads=threads).run(feeds)
    exact = Predictor(graph, "reference").run(feeds)
    for name, y in exact.items():
        assert relative_l2(native[name], y) < 1e-5  # float32 sums of at most a few hundred terms


@pytest.mark.cpu
def test_layers_can_be_tapped_by_their_names() -> None:
    """As the tables show them; a layer that was fused into another says where it is."""
    graph = classifier()
    predictor = Predictor(optimize(graph), "reference")
    names = {n.name: n.output.name for n in predictor.graph.nodes}
    layer, value = next((n, v) for n, v in names.items() if n != v)
    found = predictor.run(image(graph), taps=[layer, value])
    np.testing.assert_array_equal(found[layer], found[value])
    predictor.graph.nodes[0].sources = ["first", "relu of first"]
    with pytest.raises(ShapeError, match=f"part of {predictor.graph.nodes[0].name}"):
        predictor.run(image(graph), taps=["relu of first"])
    with pytest.raises(ShapeError, match="close: wide"):
        predictor.run(image(graph), taps=["wid"])


def test_every_value_can_be_tapped() -> None:
    graph = classifier()
    feeds = image(graph)
    exact = Predictor(graph, "reference")
    native = Predictor(graph, host_target())
    names = [v.name for n in native.graph.nodes for v in n.outputs]
    a, b = exact.run(feeds, taps=names), native.run(feeds, taps=names)
    for name in names:
        assert a[name].shape == b[name].shape
        assert relative_l2(b[name], a[name]) < 1e-5, name


@pytest.mark.cpu
def test_new_shapes_make_new_plans() -> None:
    graph = classifier("N")
    predictor = Predictor(graph, host_target())
    one = predictor.run(image(graph, 1))["prob"]
    many = predictor.run(image(graph, 5))["prob"]
    assert one.shape == (1, 10) and many.shape == (5, 10)
    assert predictor.execution({"x": (1, 3, 20, 20)}) is predictor.execution({"x": (1, 3, 20, 20)})


@pytest.mark.cpu
def test_a_layer_can_be_sent_elsewhere() -> None:
    graph = classifier()
    feeds = image(graph)
    mixed = Predictor(graph, host_target(), overrides={"pw": "reference", "dw": "reference"})
    exact = Predictor(graph, "reference").run(feeds)["prob"]
    assert relative_l2(mixed.run(feeds)["prob"], exact) < 1e-5
    assert {s.backend for s in mixed.plan().steps} == {"cpu", "reference"}
    for choice in ("overrides", "tuning", "faults"):
        with pytest.raises(UsageError, match="there is no layer 'pww'; did you mean pw"):
            Predictor(graph, host_target(), **{choice: {"pww": "reference"}})


@pytest.mark.parametrize("word", ["auto", "", None, 3])
def test_a_layer_is_not_sent_to_what_is_no_backend(word) -> None:
    """It would stay where it is."""
    with pytest.raises(UsageError, match=f"^layer pw: {word!r} is not one of cpu, opencl"):
        Predictor(classifier(), "reference", overrides={"pw": word})
    predictor = Predictor(classifier(), "reference")
    with pytest.raises(UsageError, match=r"^layer pw: "):
        predictor.send({"pw": word})
    assert predictor.run(image(classifier())).keys() == {"prob"}  # nothing has changed


@pytest.mark.opencl
@pytest.mark.parametrize("word", ["cpu", "x86", "arm"])
def test_any_cpu_target_sends_a_layer_to_the_cpu(word) -> None:
    """By the word that `backend` takes, too; it stayed on OpenCL."""
    graph = classifier()
    mixed = Predictor(graph, "opencl", overrides={"pw": word})
    exact = Predictor(graph, "reference").run(image(graph))["prob"]
    assert relative_l2(mixed.run(image(graph))["prob"], exact) < 1e-5
    assert {s.backend for s in mixed.plan().steps if s.node and s.node.name == "pw"} == {"cpu"}


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, "input x .* is missing"),
        ({"x": np.zeros((1, 3, 20, 20)), "y": np.zeros(1)}, "there is no input 'y'"),
        ({"x": np.zeros((1, 3, 20, 21), np.float32)}, "got shape 1×3×20×21$"),
        (
            {"x": np.zeros((2, 3, 20, 20), np.float32)},
            "got shape 2×3×20×20; if its first size is a batch, `lite edit --batch`",
        ),
        ({"x": np.zeros((1, 3, 20, 20))}, "got f64"),
        ({"x": np.array(["a"])}, "got <U1"),
    ],
)
def test_wrong_inputs_are_named(feeds, message) -> None:
    with pytest.raises(ShapeError, match=message):
        Predictor(classifier(), "reference").run(feeds)


def test_a_number_has_no_batch() -> None:
    b = Builder((), "number")
    with pytest.raises(ShapeError, match=r"is f32\[scalar\], got shape 2$"):
        Predictor(b.done(b.add("Neg", b.x)), "reference").run(x=np.zeros(2, np.float32))


def test_a_file_for_another_machine() -> None:
    other = "arm" if host_target() == "x86" else "x86"
    model = optimize(classifier(), targets=[other])
    with pytest.raises(TargetMismatchError, match=f"was converted for {other}.*lite convert"):
        Predictor(model)


def test_forced_backends() -> None:
    model = optimize(classifier(), targets=[host_target()])
    with pytest.raises(TargetMismatchError, match="opencl"):
        Predictor(model, "opencl")
    with pytest.raises(UsageError, match="not one of"):
        Predictor(model, "cuda")
    with settings.override(LITE_BACKEND="reference"):
        predictor = Predictor(model)
    assert predictor.backend == "reference"
    assert "LITE_BACKEND" in predictor.explain()
