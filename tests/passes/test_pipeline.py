"""The whole list: numbers stay, names stay, nothing of the original is forgotten."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.importers import onnx as onnx_importer
from lite_engine.ir import Journal
from lite_engine.ops import specialise
from lite_engine.passes import PIPELINE, SPECIALISED, optimize_graph
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


def test_fixed_shapes_allow_more(bench):
    """Sizes that are symbols hide that two tensors have the same shape."""
    text = """
        input x: f32[1,2,h,w]
        const w: f32[2,2,3,3] = rand
        "a": a = Conv(x, w) {strides=[2, 2], pads=[1, 1, 1, 1]}
        "b": b = Conv(a, w) {pads=[1, 1, 1, 1]}
        "s": s = Add(b, a)
        "y": y = Relu(s)
        output y
    """
    open_sizes = optimize_graph(bench.graph(text))
    assert [n.op for n in open_sizes.nodes] == ["Conv", "Conv", "Add"]
    fixed = specialise(open_sizes, {"x": (1, 2, 8, 8)})
    final = optimize_graph(fixed, passes=SPECIALISED)
    assert [n.op for n in final.nodes] == ["Conv", "Conv"]
    assert final.nodes[1].attrs["activation"] == "Relu" and final.nodes[1].input(3) is not None
    feeds = {"x": np.random.default_rng(0).standard_normal((1, 2, 8, 8)).astype(np.float32)}
    np.testing.assert_allclose(bench.run(fixed, feeds)[0], bench.run(final, feeds)[0], atol=1e-5)
