"""Einsum as Transpose, MatMul, Mul and ReduceSum. Oracles: numpy.einsum, and onnxruntime where the
batch is open."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from lite_engine import Predictor, load, optimize
from lite_engine.errors import ShapeError
from lite_engine.ir import DType, Graph, Journal, Value
from lite_engine.ops import infer_node, infer_types
from lite_engine.passes import optimize_graph
from lite_engine.passes.decompose_einsum import decompose_einsum

onnx = pytest.importorskip("onnx", reason="pip install onnx")
onnxruntime = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
TensorProto, helper = onnx.TensorProto, onnx.helper

SIZES = dict(zip("bghijkd", (2, 3, 4, 5, 6, 8, 7)))


def _graph(equation: str, shapes: Sequence[tuple], dtype: DType = DType.F32) -> Graph:
    graph = Graph("g", [Value(f"x{i}", dtype, s) for i, s in enumerate(shapes)])
    node = graph.add("Einsum", graph.inputs, {"equation": equation}, outputs=["y"], name="e")
    graph.outputs = [node.output]
    infer_types(graph)
    return graph


def _sizes(term: str) -> tuple[int, ...]:
    """`A` in place of `a` is that axis with size 1; an ellipsis stands for b and g."""
    return tuple(SIZES.get(c, 1) for c in term.replace("...", "bg").replace("..", "g"))


# (equation, terms from which sizes are read when they are not the equation's)
CASES = [
    ("bghid,bghjd->bghij", None),  # scores of attention
    ("bghij,bghjd->bghid", None),  # its values
    ("bhid,bhjd->bijh", None),
    ("bijk,kd->bijd", None),  # a layer
    ("bihd,hdk->bik", None),  # a layer of two axes
    ("hdk,bihd->bik", None),
    ("ij,jk", None),
    ("ba,b", None),
    ("...id,...jd->...ij", None),
    ("...id,jd->ij...", None),
    ("...i,...i->...", ("bgi", "gi")),  # fewer axes under the ellipsis
    ("bghid,bghjd->bghij", ("bGhid", "bghjd")),  # one group for all
    ("bid,bjd->bij", ("Bid", "BjD")),
    ("i,j->ij", None),
    ("bi,bij->bij", None),
    ("bhij,bij->jb", None),  # h and i leave, one of them before
    ("i,i->", None),
    ("ij,kd->", None),
    ("bij->jb", None),
    ("bij->ijb", None),
    ("bij", None),
    ("bij->", None),
    ("...ij->...ji", None),
]


@pytest.mark.parametrize(("equation", "terms"), CASES)
def test_numpy_gives_the_same(bench, equation, terms):
    terms = terms or equation.replace(" ", "").partition("->")[0].split(",")
    old = _graph(equation, [_sizes(t) for t in terms])
    new, rng = old.copy(), np.random.default_rng(0)
    assert decompose_einsum(new, Journal()) == 1
    infer_types(new, strict=True)
    assert "Einsum" not in {n.op for n in new.nodes}
    assert new.outputs[0].shape == old.outputs[0].shape
    assert all(n.sources == ("e",) for n in new.nodes)
    feeds = {v.name: rng.standard_normal(v.shape).astype(np.float32) for v in old.inputs}
    wanted = np.einsum(equation, *(f.astype(np.float64) for f in feeds.values()))
    (got,) = bench.run(new, feeds)
    assert got.shape == wanted.shape and got.dtype == np.float32
    # sums of at most 1440 products of normal numbers: float32 keeps six digits of the largest
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5 * max(np.abs(wanted).max(), 1))


@pytest.mark.parametrize(
    ("equation", "moves"),
    [
        ("bhid,bhjd->bhij", 1),  # the second is brought into (…, K, N)
        ("bhij,bhjd->bhid", 0),
        ("bjd,bij->bid", 0),  # the operands change places
        ("bid,bjd->bji", 1),
    ],
)
def test_nothing_moves_that_need_not(equation, moves):
    graph = _graph(equation, [_sizes(t) for t in equation.partition("->")[0].split(",")])
    decompose_einsum(graph, Journal())
    assert [n.op for n in graph.nodes].count("Transpose") == moves
    assert "Reshape" not in {n.op for n in graph.nodes}


@pytest.mark.parametrize(
    ("equation", "shapes", "reason"),
    [
        ("ii->i", [(3, 3)], "a diagonal"),
        ("ij,jk->ik", [(3, None), (4, 5)], "is not known"),
        ("ij,jk->ik", [(0, 4), (4, 5)], "is 0"),
        ("ij,jk->ik", [("N", 4), ("M", 5)], "is not known whether"),
        ("hij,hkd->ijkd", [(3, "N", 4), (3, "M", 5)], "in one Reshape"),
    ],
)
def test_refusals(equation, shapes, reason):
    graph, journal = _graph(equation, shapes), Journal()
    assert decompose_einsum(graph, journal) == 0
    assert [n.op for n in graph.nodes] == ["Einsum"]
    assert reason in journal.entries[0].reason


def test_whole_numbers_stay():
    graph = _graph("ij,jk->ik", [(2, 3), (3, 4)], DType.I64)
    assert decompose_einsum(graph, Journal()) == 0


def test_an_open_batch_on_the_cpu(tmp_path):
    """Attention over windows whose count is open: every layer runs natively."""
    nodes = [
        helper.make_node("Einsum", ["q", "k"], ["s"], equation="bghid,bghjd->bghij"),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("Einsum", ["p", "k"], ["v"], equation="bghij,bghjd->bighd"),
        helper.make_node("Einsum", ["v", "w"], ["y"], equation="bighd,hdo->bigo"),
    ]
    rng = np.random.default_rng(1)
    w = rng.standard_normal((4, 7, 9)).astype(np.float32)
    ends = [(n, ["batch", 3, 4, s, 7]) for n, s in (("q", 5), ("k", 6))]
    graph = helper.make_graph(
        nodes,
        "attention",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in ends],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 5, 3, 9])],
        [onnx.numpy_helper.from_array(w, "w")],
    )
    path = tmp_path / "attention.onnx"
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path
    )
    model, theirs = load(path), onnxruntime.InferenceSession(path)
    ops = [n.op for n in optimize_graph(model).nodes]
    assert "Einsum" not in ops and ops.count("MatMul") + ops.count("Gemm") == 3
    predictor = Predictor(optimize(model, targets=["x86"]), backend="x86")
    for batch in (1, 3):
        feeds = {n: rng.standard_normal([batch, *s[1:]]).astype(np.float32) for n, s in ends}
        wanted = theirs.run(None, feeds)[0]
        np.testing.assert_allclose(predictor.run(feeds)["y"], wanted, atol=1e-4)
    plan = predictor.plan({name: (3, *shape[1:]) for name, shape in ends})
    assert {step.backend for step in plan.steps} == {"cpu"}


@pytest.mark.parametrize("equation", ["ij->ik", "ij->ii"])
def test_an_output_of_other_axes_is_one_error(equation):
    node = _graph(equation, [(2, 3)]).nodes[0]
    with pytest.raises(ShapeError, match="must occur in an input"):
        infer_node(node)
