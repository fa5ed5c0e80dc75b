"""Values with their channels first, times turned probabilities. Oracle: the graph as it was, by the
references, and for the kernels onnxruntime."""

from __future__ import annotations

import pytest
from lite_engine import Predictor
from lite_engine.exporters.onnx import write_bytes
from lite_engine.ir import Graph
from lite_engine.passes import optimize_graph

from .conftest import feeds_for, run
from .test_fuse_attention import D, H, L, Writer, agree, onnxruntime

SWAPPED = [0, 1, 3, 2]


def channels_first(axis: int = -1, perm: list[int] = SWAPPED) -> Graph:
    """YOLO11: queries, keys and values of a map. The batch is as large as there are heads."""
    w = Writer(q=(H, H, D, L), k=(H, H, D, L), v=(H, H, 2 * D, L))
    scores = w("Mul", w("MatMul", w("Transpose", w["q"], perm=SWAPPED), w["k"]), 0.3)
    chance = w("Transpose", w("Softmax", scores, axis=axis), perm=perm)
    return w.done(w("MatMul", w["v"], chance))


def one_head() -> Graph:
    """SHViT."""
    w = Writer(q=(1, D, L), k=(1, D, L), v=(1, 3 * D, L))
    scores = w("MatMul", w("Transpose", w["q"], perm=[0, 2, 1]), w["k"])
    chance = w("Transpose", w("Softmax", scores), perm=[0, 2, 1])
    return w.done(w("MatMul", w["v"], chance))


@pytest.mark.cpu
@pytest.mark.opencl
@pytest.mark.parametrize("spelling", [channels_first, one_head])
def test_it_is_an_attention(spelling) -> None:
    graph = spelling()
    feeds = feeds_for(graph)
    new, want = optimize_graph(graph), run(graph, feeds)
    assert [n.op for n in new.nodes].count("Attention") == 1
    agree(run(new, feeds), want)
    given = onnxruntime.InferenceSession(write_bytes(graph)).run(None, feeds)
    for backend in ("x86", "opencl"):
        agree(list(Predictor(new, backend).run(feeds).values()), given)


@pytest.mark.parametrize(
    "graph",
    [channels_first(axis=2), channels_first(perm=[0, 1, 2, 3]), channels_first(perm=[1, 0, 3, 2])],
    ids=["softmax over queries", "not turned", "other heads"],
)
def test_other_products_stay(graph: Graph) -> None:
    feeds, new = feeds_for(graph), optimize_graph(graph)
    assert "Attention" not in {n.op for n in new.nodes}
    agree(run(new, feeds), run(graph, feeds))
