"""The whole list: numbers stay, names stay, nothing of the original is forgotten."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.importers import onnx as onnx_importer
from lite_engine.ir import Journal
from lite_engine.ops import specialise
from lite_engine.passes import PIPELINE, optimize_graph
from lite_engine.passes._core import P

zoo = pytest.importorskip("benchmarks.zoo", reason="the zoo is in the source tree only")

#: network → operators left, with residual inputs and activations fused
EXPECTED = {
    "mobilenet_v3_small": {"Conv": 54, "GlobalAveragePool": 10, "Mul": 9, "Reshape": 1},
    "squeezenet": {"Conv": 26, "MaxPool": 3, "Concat": 8, "GlobalAveragePool": 1, "Flatten": 1},
    "text_encoder": None,
    "ocr_detector": {"Conv": 55, "Resize": 6, "Concat": 1, "ConvTranspose": 2},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_networks_keep_their_numbers(bench, name):
    graph = onnx_importer.read_bytes(zoo.build(name).SerializeToString())
    journal = Journal()
    new = optimize_graph(graph, journal=journal)
    ops: dict[str, int] = {}
    for node in new.nodes:
        ops[node.op] = ops.get(node.op, 0) + 1
    assert EXPECTED[name] in (None, ops)
    assert len(journal.passes) == len(PIPELINE)
    assert journal.passes[-1]["after"]["nodes"] == len(new.nodes)
    assert [v.name for v in new.outputs] == [v.name for v in graph.outputs]
    rng = np.random.default_rng(0)
    feeds = {
        v.name: rng.integers(0, 4000, v.shape)
        if v.dtype.np.kind == "i"
        else rng.standard_normal(v.shape).astype(np.float32)
        for v in graph.inputs
    }
    for a, b in zip(bench.run(graph, feeds), bench.run(new, feeds)):
        assert np.linalg.norm(a - b) <= 1e-5 * np.linalg.norm(a)


def test_the_given_graph_is_not_touched(bench):
    graph = bench.graph(
        "input x: f32[1,2,4,4]\nconst w: f32[2,2,1,1] = rand\n"
        '"c": c = Conv(x, w)\n"y": y = Relu(c)\noutput y'
    )
    before = bench.shape_of(graph)
    optimize_graph(graph)
    assert bench.shape_of(graph) == before


def test_every_pass_has_a_name_of_its_kind():
    kinds = (
        "fold-",
        "fuse-",
        "drop-",
        "merge-",
        "recompose-",
        "decompose-",
        "hoist-",
        "layout-",
        "quantize-",
    )
    assert all(p.name.startswith(kinds) for p in PIPELINE)


def test_a_pattern_word_cannot_hide_the_match():
    with pytest.raises(ValueError, match="inner"):
        P("Relu", "x", name="inner")


OPEN_SIZES = """
    input x: f32[1,2,h,w]
    const w: f32[2,2,3,3] = rand
    "a": a = Conv(x, w) {strides=[2, 2], pads=[1, 1, 1, 1]}
    "b": b = Conv(a, w) {pads=[%s, 1, 1, 1]}
    "s": s = Add(b, a)
    "y": y = Relu(s)
    output y
"""


def test_open_sizes_that_must_be_equal_are_known_to_be(bench):
    graph = bench.graph(OPEN_SIZES % 1)
    final = optimize_graph(graph)
    assert [n.op for n in final.nodes] == ["Conv", "Conv"]
    assert final.nodes[1].output.shape == (1, 2, "(h+1)//2", "(w+1)//2")
    for size in ((7, 8), (8, 5)):
        fixed = [specialise(g, {"x": (1, 2, *size)}) for g in (graph, final)]
        x = np.random.default_rng(0).standard_normal((1, 2, *size)).astype(np.float32)
        want, got = (bench.run(g, {"x": x})[0] for g in fixed)
        np.testing.assert_allclose(want, got, atol=1e-5)


def test_open_sizes_that_may_differ_stay(bench):
    """One row of padding more: the sum broadcasts when the input has one row or two, else fails."""
    graph = bench.graph(OPEN_SIZES % 2)
    assert [n.op for n in optimize_graph(graph).nodes] == ["Conv", "Conv", "Add"]
