"""Attention in the spellings of exporters. Oracle: the graph as it was, by the references."""

from __future__ import annotations

import math

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.exporters.onnx import write_bytes
from lite_engine.ir import DType, Graph, Journal, Value, verify
from lite_engine.ops import infer_types
from lite_engine.ops.expand import expand_missing
from lite_engine.passes import optimize_graph
from lite_engine.passes.fuse_attention import fuse_attention

from .conftest import feeds_for, run

onnx = pytest.importorskip("onnx", reason="pip install onnx")
onnxruntime = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")

B, H, L, S, D = 2, 4, 6, 9, 8


class Writer:
    """A graph under construction, typed as it grows."""

    def __init__(self, **shapes: tuple[int, ...]) -> None:
        self.graph = Graph("g", [Value(k, DType.F32, s) for k, s in shapes.items()])
        self.rng = np.random.default_rng(0)

    def __getitem__(self, name: str) -> Value:
        return next(v for v in self.graph.inputs if v.name == name)

    def __call__(self, op: str, *inputs: Value | float | list | np.ndarray, **attrs) -> Value:
        node = self.graph.add(op, [self._value(v) for v in inputs], attrs)
        infer_types(self.graph)
        return node.output

    def _value(self, x: Value | float | list | np.ndarray) -> Value:
        if isinstance(x, Value):
            return x
        dtype = np.int64 if isinstance(x, list) else getattr(x, "dtype", np.float32)
        return self.graph.constant(np.asarray(x, dtype))

    def heads(self, x: Value, heads: int, perm: tuple[int, ...] = (0, 2, 1, 3)) -> Value:
        batch, length, width = x.shape
        split = self("Reshape", x, [batch, length, heads, width // heads])
        return self("Transpose", split, perm=list(perm))

    def joined(self, y: Value) -> Value:
        batch, heads, length, size = y.shape
        turned = self("Transpose", y, perm=[0, 2, 1, 3])
        return self("Reshape", turned, [batch, length, heads * size])

    def normal(self, *shape: int) -> np.ndarray:
        return self.rng.standard_normal(shape).astype(np.float32)

    def done(self, *outputs: Value) -> Graph:
        self.graph.outputs = list(outputs)
        verify(self.graph)
        return self.graph


def packed() -> Writer:
    return Writer(q=(B, L, H * D), k=(B, S, H * D), v=(B, S, H * D))


def separate(rank: int = 4) -> Writer:
    lead = {3: (H,), 4: (B, H), 5: (B, 3, H)}[rank]
    return Writer(q=(*lead, L, D), k=(*lead, S, D), v=(*lead, S, D))


def textbook() -> Graph:
    w = packed()
    scores = w("MatMul", w.heads(w["q"], H), w.heads(w["k"], H, (0, 2, 3, 1)))
    scores = w("Div", scores, math.sqrt(D))
    return w.done(w.joined(w("MatMul", w("Softmax", scores), w.heads(w["v"], H))))


def torch_sdpa() -> Graph:
    """The root of the scale on each side, keys turned without their batch, rows that see nothing
    kept at 0, and a mask that is computed."""
    w = packed()
    w.graph.inputs.append(Value("mask", DType.F32, (B, 1, L, S)))
    root = D**-0.25
    keys = w("Reshape", w.heads(w["k"], H), [B * H, S, D])
    keys = w("Reshape", w("Transpose", keys, perm=[0, 2, 1]), [B, H, D, S])
    queries = w("Transpose", w("Mul", w("Reshape", w["q"], [B, L, H, D]), root), perm=[0, 2, 1, 3])
    scores = w("Add", w("MatMul", queries, w("Mul", keys, root)), w["mask"])
    chance = w("Softmax", scores, axis=3)
    chance = w("Where", w("IsNaN", chance), 0.0, chance)
    return w.done(w.joined(w("MatMul", chance, w.heads(w["v"], H))))


def windows() -> Graph:
    """Swin: relative bias for each head, a mask for each window."""
    w = Writer(q=(6, H, L, D), k=(6, H, L, D), v=(6, H, L, D))
    scores = w("MatMul", w("Mul", w["q"], 0.5), w("Transpose", w["k"], perm=[0, 1, 3, 2]))
    scores = w("Add", scores, w.normal(1, H, L, L))
    scores = w("Reshape", scores, [2, 3, H, L, L])
    scores = w("Add", scores, w.normal(1, 3, 1, L, L))
    chance = w("Softmax", w("Reshape", scores, [6, H, L, L]))
    return w.done(w("MatMul", chance, w["v"]))


def scale_of_each_head() -> Graph:
    w = separate()
    scores = w("MatMul", w["q"], w("Transpose", w["k"], perm=[0, 1, 3, 2]))
    scores = w("Add", w("Mul", scores, w.normal(H, 1, 1)), w.normal(H, L, S))
    return w.done(w("MatMul", w("Softmax", scores), w["v"]))


def scaled_sum() -> Graph:
    """The scale is taken of scores and bias."""
    w = separate()
    scores = w("MatMul", w["q"], w("Transpose", w["k"], perm=[0, 1, 3, 2]))
    scores = w("Mul", w("Add", scores, w.normal(1, S)), 0.3)
    return w.done(w("MatMul", w("Softmax", scores), w["v"]))


def grouped() -> Graph:
    """Two heads of keys for four of queries."""
    w = Writer(q=(B, H, L, D), k=(B, 2, S, D), v=(B, 2, S, D))

    def repeated(x: Value) -> Value:
        each = w("Expand", w("Unsqueeze", x, [2]), [B, 2, H // 2, S, D])
        return w("Reshape", each, [B, H, S, D])

    keys = w("Transpose", repeated(w["k"]), perm=[0, 1, 3, 2])
    chance = w("Softmax", w("MatMul", w["q"], keys))
    return w.done(w("MatMul", chance, repeated(w["v"])))


def causal() -> Graph:
    w = separate()
    hidden = np.triu(np.ones((L, S), bool), 1)
    scores = w("MatMul", w["q"], w("Transpose", w["k"], perm=[0, 1, 3, 2]))
    scores = w("Where", hidden, -np.inf, scores)
    return w.done(w("MatMul", w("Softmax", scores), w["v"]))


def heads_as_batch() -> Graph:
    w = separate(3)
    chance = w("Softmax", w("MatMul", w["q"], w("Transpose", w["k"], perm=[0, 2, 1])))
    return w.done(w("MatMul", chance, w["v"]))


def groups_of_windows() -> Graph:
    w = separate(5)
    scores = w("MatMul", w["q"], w("Transpose", w["k"], perm=[0, 1, 2, 4, 3]))
    chance = w("Softmax", w("Add", scores, w.normal(H, L, S)))
    return w.done(w("MatMul", chance, w["v"]))


def lengths_first() -> Graph:
    """A batch of one behind the length: onnxruntime's optimizer joins transposes to this."""
    w = Writer(q=(L, 1, H * D), k=(S, 1, H * D), v=(S, 1, H * D))

    def turned(name: str, perm: list[int]) -> Value:
        length = w[name].shape[0]
        return w("Transpose", w("Reshape", w[name], [length, 1, H, D]), perm=perm)

    scores = w("MatMul", turned("q", [1, 2, 0, 3]), turned("k", [1, 2, 3, 0]))
    y = w("MatMul", w("Softmax", scores), turned("v", [1, 2, 0, 3]))
    return w.done(w("Reshape", w("Transpose", y, perm=[2, 0, 1, 3]), [L, H * D]))


def positions_of_maps() -> Graph:
    """MViTv2: queries are pixels of a map of 2 x 3, keys of one of 3 x 3; what is added for the
    difference of their rows and of their columns is computed."""
    w = separate()
    down, along = (Value(n, DType.F32, (B, H, 2, 3, *s)) for n, s in (("h", (3, 1)), ("w", (1, 3))))
    w.graph.inputs += [down, along]
    scores = w("MatMul", w("Mul", w["q"], 0.3), w("Transpose", w["k"], perm=[0, 1, 3, 2]))
    scores = w("Add", w("Add", w("Reshape", scores, [B, H, 2, 3, 3, 3]), down), along)
    return w.done(w("MatMul", w("Softmax", w("Reshape", scores, [B, H, L, S])), w["v"]))


def positions_in_a_batch() -> Graph:
    """Segment Anything: the same where the heads are the batch, in one sum, beside a constant."""
    w = separate(3)
    w.graph.inputs.append(Value("along", DType.F32, (H, 2, 3, 1, 3)))
    scores = w("MatMul", w["q"], w("Transpose", w["k"], perm=[0, 2, 1]))
    scores = w("Reshape", w("Add", scores, w.normal(L, S)), [H, 2, 3, 3, 3])
    scores = w("Add", w("Add", w.normal(H, 2, 3, 3, 1), w["along"]), scores)
    return w.done(w("MatMul", w("Softmax", w("Reshape", scores, [H, L, S])), w["v"]))


def learned() -> Graph:
    """DETR's first decoder layer."""
    w = separate()
    scores = w("MatMul", w.normal(B, H, L, D), w("Transpose", w["k"], perm=[0, 1, 3, 2]))
    return w.done(w("MatMul", w("Softmax", w("Add", w.normal(L, S), scores)), w["v"]))


SPELLINGS = [
    learned, textbook, torch_sdpa, windows, scale_of_each_head, scaled_sum, grouped, causal,
    heads_as_batch, groups_of_windows, lengths_first, positions_of_maps, positions_in_a_batch,
]  # fmt: skip


def fused(graph: Graph) -> Graph:
    new, journal = graph.copy(), Journal()
    assert fuse_attention(new, journal) == 1, str(journal)
    infer_types(new)
    verify(new)
    assert {"Softmax", "MatMul"}.isdisjoint(n.op for n in new.nodes)
    return new


def agree(found: list[np.ndarray], expected: list[np.ndarray]) -> None:
    for a, b in zip(found, expected, strict=True):
        assert a.shape == b.shape and a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)  # sums in another order


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_spelling_becomes_an_attention_with_its_numbers(spelling):
    graph = spelling()
    feeds = feeds_for(graph)
    new = fused(graph)
    agree(run(new, feeds), run(graph, feeds))
    (node,) = [n for n in new.nodes if n.op == "Attention"]
    computing = {n.name for n in graph.nodes if n.op in ("MatMul", "Softmax", "Mul", "Div")}
    assert computing <= set(node.sources)


@pytest.mark.parametrize("spelling", [textbook, torch_sdpa])
def test_heads_stay_packed_where_they_were(spelling):
    """No transposition of queries, keys, values or the result is left."""
    new = optimize_graph(spelling())
    (node,) = [n for n in new.nodes if n.op == "Attention"]
    assert "Transpose" not in [n.op for n in new.nodes]
    assert node.attrs["q_num_heads"] == node.attrs["kv_num_heads"] == H
    assert node.attrs["scale"] == pytest.approx(D**-0.5)


def masked(bias: np.ndarray, keys: int) -> Graph:
    w = Writer(q=(B, H, L, D), k=(B, H, keys, D), v=(B, H, keys, D))
    scores = w("MatMul", w["q"], w("Transpose", w["k"], perm=[0, 1, 3, 2]))
    chance = w("Softmax", w("Add", scores, bias.astype(np.float32)))
    return w.done(w("MatMul", chance, w["v"]))


LATER = np.triu(np.ones((L, L), bool), 1)
LOWEST = np.finfo(np.float32).min


@pytest.mark.parametrize("hide", [-np.inf, LOWEST, -1e9])
def test_a_constant_mask_that_hides_later_keys_becomes_an_attribute(hide):
    for keys in (L, L - 2, L + 3):
        later = np.arange(keys) > np.arange(L)[:, None]
        graph = masked(np.where(later, hide, 0)[None, None], keys)
        new = fused(graph)
        (node,) = [n for n in new.nodes if n.op == "Attention"]
        assert node.attrs["is_causal"] == 1 and node.input(3) is None
        feeds = feeds_for(graph)
        agree(run(new, feeds), run(graph, feeds))


@pytest.mark.parametrize(
    "bias",
    [
        np.where(LATER, LOWEST, 0) + np.eye(L),  # adds to what it shows
        np.where(np.triu(LATER, 2), LOWEST, 0),  # one key more
        np.where(LATER, -10.0, 0),  # hides too little
        np.stack([np.where(LATER, LOWEST, 0), np.zeros((L, L)), *np.zeros((2, L, L))]),  # one head
    ],
)  # fmt: skip
def test_another_mask_stays(bias):
    graph = masked(bias, L)
    new = fused(graph)
    (node,) = [n for n in new.nodes if n.op == "Attention"]
    assert not node.attrs.get("is_causal") and node.input(3) is not None
    feeds = feeds_for(graph)
    agree(run(new, feeds), run(graph, feeds))


def test_keys_of_a_group_are_not_repeated():
    new = optimize_graph(grouped())
    (node,) = [n for n in new.nodes if n.op == "Attention"]
    assert node.input(1).shape == (B, 2, S, D) and "Expand" not in [n.op for n in new.nodes]


def test_a_batch_of_one_behind_the_length_is_packed():
    new = optimize_graph(lengths_first())
    (node,) = [n for n in new.nodes if n.op == "Attention"]
    assert node.attrs["q_num_heads"] == H and "Transpose" not in [n.op for n in new.nodes]


@pytest.mark.cpu
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("threads", [1, 3])
def test_the_native_kernel_gives_the_same(spelling, threads):
    graph = spelling()
    feeds = feeds_for(graph)
    predictor = Predictor(optimize_graph(graph), "x86", threads=threads)
    assert "f32_attention" in {s.kernel for s in predictor.plan().steps}
    agree(list(predictor.run(feeds).values()), run(graph, feeds))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_it_is_written_out_where_a_backend_has_no_kernel(spelling):
    graph = spelling()
    new, feeds = fused(graph), feeds_for(graph)
    expand_missing(new, lambda *_: False)
    infer_types(new)
    verify(new)
    assert "Attention" not in [n.op for n in new.nodes]
    agree(run(new, feeds), run(graph, feeds))


@pytest.mark.parametrize("opset", [None, 23])
@pytest.mark.parametrize("spelling", [textbook, windows])
def test_another_engine_runs_it_as_onnx(spelling, opset):
    """Written out below opset 23, one operator from there on."""
    graph = spelling()
    feeds = feeds_for(graph)
    data = write_bytes(optimize_graph(graph), opset=opset)
    ops = {n.op_type for n in onnx.load_from_string(data).graph.node}
    assert ("Attention" in ops) == (opset == 23)
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    agree(session.run(None, feeds), run(graph, feeds))


def test_rows_that_see_nothing_stay_zero_when_it_is_written_out():
    w = separate()
    w.graph.inputs.append(Value("seen", DType.BOOL, (L, S)))
    attrs = {"is_causal": 1, "softcap": 3.0, "scale": 0.2}
    graph = w.done(w("Attention", w["q"], w["k"], w["v"], w["seen"], **attrs))
    feeds = feeds_for(graph)
    feeds["seen"][:2] = False
    want = run(graph, feeds)
    assert not want[0][:, :, :2].any() and want[0][:, :, 3:].any()
    expand_missing(graph, lambda *_: False)
    agree(run(graph, feeds), want)


def test_scores_that_someone_else_reads_stay():
    w = separate()
    chance = w("Softmax", w("MatMul", w["q"], w("Transpose", w["k"], perm=[0, 1, 3, 2])))
    graph = w.done(w("MatMul", chance, w["v"]), chance)
    journal = Journal()
    assert fuse_attention(graph, journal) == 0
    assert "is an output of the model" in str(journal)


def test_values_before_the_softmax_that_are_no_scores_stay():
    w = separate()
    scores = w("MatMul", w["q"], w("Transpose", w["k"], perm=[0, 1, 3, 2]))
    graph = w.done(w("MatMul", w("Softmax", w("Relu", scores)), w["v"]))
    journal = Journal()
    assert fuse_attention(graph, journal) == 0
    assert "Relu stands between the product and the softmax" in str(journal)


def test_a_softmax_over_queries_is_no_attention():
    w = separate()
    scores = w("MatMul", w["q"], w("Transpose", w["k"], perm=[0, 1, 3, 2]))
    graph = w.done(w("MatMul", w("Softmax", scores, axis=2), w["v"]))
    assert fuse_attention(graph, Journal()) == 0


def test_channels_that_attend_to_each_other_stay_products():
    """XCiT: few scores of long queries."""
    w = Writer(q=(1, 2, 6, 200), k=(1, 2, 6, 200), v=(1, 2, 6, 200))
    chance = w("Softmax", w("MatMul", w["q"], w("Transpose", w["k"], perm=[0, 1, 3, 2])))
    graph, journal = w.done(w("MatMul", chance, w["v"])), Journal()
    assert fuse_attention(graph, journal) == 0
    assert "there are few scores for wide queries" in str(journal)


@pytest.mark.parametrize("size", [64, 256])
def test_few_tokens_are_an_attention_whatever_the_width_of_their_heads(size):
    w = Writer(q=(1, 4, 2 * size), k=(1, 4, 2 * size), v=(1, 4, 2 * size))
    scores = w("MatMul", w.heads(w["q"], 2), w.heads(w["k"], 2, (0, 2, 3, 1)))
    graph = w.done(w.joined(w("MatMul", w("Softmax", scores), w.heads(w["v"], 2))))
    feeds = feeds_for(graph)
    agree(run(fused(graph), feeds), run(graph, feeds))


def test_few_tokens_with_turned_positions_are_an_attention():
    """Rotary embeddings lie between the heads' order and the product."""
    w = Writer(q=(1, 2, 4, 64), k=(1, 2, 4, 64), v=(1, 2, 4, 64))
    queries = w("Add", w("Mul", w["q"], w.normal(4, 64)), w("Neg", w["q"]))
    scores = w("MatMul", queries, w("Transpose", w["k"], perm=[0, 1, 3, 2]))
    fused(w.done(w("MatMul", w("Softmax", scores), w["v"])))


@pytest.mark.parametrize("added", [(B, H, 2, 3, 1, 3), (1, H, 2, 3, 3, 3)])
def test_positions_that_do_not_fill_the_maps_stay_additions(added):
    w = separate()
    w.graph.inputs.append(Value("added", DType.F32, added))
    scores = w("MatMul", w["q"], w("Transpose", w["k"], perm=[0, 1, 3, 2]))
    scores = w("Add", w("Reshape", scores, [B, H, 2, 3, 3, 3]), w["added"])
    graph = w.done(w("MatMul", w("Softmax", w("Reshape", scores, [B, H, L, S])), w["v"]))
    assert fuse_attention(graph, Journal()) == 0
    verify(graph)
