"""What a comparison found, as data: each kind, its exit code and its numbers."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.compare import Side, compare
from lite_engine.compare.check import check_kernels
from lite_engine.ir import DType, Graph, Value
from lite_engine.runtime import host_target

from tests.small_models import Builder, classifier, image

pytestmark = pytest.mark.cpu


def ties() -> Graph:
    """Means of 1024 numbers, within rounding of half a step, then rounded to int8: a mean in
    another order becomes another integer."""
    b = Builder((1, 64, 32, 32), "ties")
    y = b.add("GlobalAveragePool", b.x, name="mean")
    scale, zero = b.scalar(0.1), b.graph.constant(np.array(0, np.int8))
    y = b.add("QuantizeLinear", y, scale, zero, name="round")
    return b.done(b.add("DequantizeLinear", y, scale, zero, name="back"))


def at_half_steps() -> dict[str, np.ndarray]:
    """Inputs whose means are an odd number of half steps of 0.1, up to float32's rounding."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((1, 64, 32, 32))
    wanted = (2 * rng.integers(-4, 4, (1, 64, 1, 1)) + 1) * 0.05
    return {"x": (x + wanted - x.mean(axis=(2, 3), keepdims=True)).astype(np.float32)}


def both(graph: Graph, **faults: str) -> tuple[Side, Side]:
    model = optimize(graph)
    return (
        Side(Predictor(model, "reference")),
        Side(Predictor(model, host_target(), threads=1, faults=faults)),
    )


def test_agreement() -> None:
    graph = classifier()
    result = compare(*both(graph), image(graph))
    found = result.finding
    assert (found.kind, found.exit_code, found.layer, found.side) == ("agree", 0, "", "")
    assert found.layers == len({x.name for x in result.layers})
    assert found.largest.error == max(x.rel_l2 for x in result.layers)


@pytest.mark.parametrize("isolated", [True, False])
def test_a_wrong_layer(isolated) -> None:
    graph = classifier()
    names = [n.name for n in both(graph)[1].graph.nodes]
    result = compare(*both(graph, **{names[1]: "swap_channels"}), image(graph), isolated=isolated)
    found = result.finding
    row = next(x for x in result.layers if x.name == names[1])
    assert found.kind == ("layer_fails" if isolated else "layer_differs") and found.exit_code == 1
    assert (found.layer, found.op, found.side) == (row.name, row.op, "candidate")
    assert found.error == (row.isolated["rel_l2"] if isolated else row.rel_l2)
    assert found.tolerance == row.tolerance and found.error > row.tolerance
    assert found.after == len(names) - 2
    states = [x.state for x in result.layers]
    assert states[:2] == ["within", "failing" if isolated else "differing"]
    assert set(states[2:]) == {"propagated" if isolated else "differing"}


def test_outputs_that_differ_though_no_layer_is_wrong() -> None:
    """Rounded to integers, a difference in the last bit becomes a whole step: that is the headline,
    neither agreement nor a failing layer."""
    a, b = both(ties())
    result = compare(a, b, at_half_steps())
    found = result.finding
    assert all(x.within for x in result.layers)
    assert (found.kind, found.cause, found.exit_code) == ("outputs_differ", "steps", 3)
    assert not result.agrees and result.first_divergence is None
    assert result.differing_outputs == [found.output] == list(result.outputs)
    assert found.error == result.outputs[found.output]["rel_l2"] > found.tolerance
    assert result.verdict.startswith(f"no layer fails on its own, but output {found.output} differ")
    assert "a difference in the last bit becomes a whole step" in result.verdict


def test_kernels_are_right_where_only_outputs_differ() -> None:
    """LITE_CHECK stops at a wrong kernel, not at errors that right kernels add up to."""
    check_kernels(both(ties())[1].predictor, at_half_steps())


def test_a_given_tolerance_holds_for_outputs_too() -> None:
    result = compare(*both(ties()), at_half_steps(), tolerance=1.0)
    assert result.agrees and result.finding.exit_code == 0


def test_an_output_without_counterpart() -> None:
    def of(shape: tuple[int, ...]) -> Side:
        graph = Graph("g")
        graph.inputs = [Value("x", DType.F32, (1, 2, 4, 4))]
        y = graph.add("Abs", graph.inputs, {}, name="abs").output
        graph.outputs = [y]
        if shape:
            graph.outputs.append(graph.add("GlobalAveragePool", [y], {}, name="mean").output)
        return Side(Predictor(optimize(graph), "reference"), "two" if shape else "one")

    feed = {"x": np.ones((1, 2, 4, 4), np.float32)}
    found = compare(of(()), of((1, 2, 1, 1)), feed).finding
    assert (found.kind, found.exit_code) == ("outputs_unmatched", 3)
