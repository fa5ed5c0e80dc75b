"""Attention operators as exporters write them. Oracle: the graph as it was, by the references."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.ir import Graph, Journal, Node, Value, verify
from lite_engine.ops import infer_types
from lite_engine.passes import optimize_graph
from lite_engine.passes.layout_pack_attention import layout_pack_attention

from .conftest import feeds_for, run
from .test_fuse_attention import B, D, H, L, S, Writer, agree

#: Heads of keys, each of which two heads of queries read.
SHARED = H // 2
LATER = np.triu(np.ones((L, L), bool), 1)
BIAS = np.linspace(-2, 2, L * S, dtype=np.float32).reshape(L, S)


def packed(mask: np.ndarray | None = None, keys: int = S, **attrs: object) -> Graph:
    w = Writer(q=(B, L, H * D), k=(B, keys, H * D), v=(B, keys, H * D))
    heads = [w.heads(w[name], H) for name in "qkv"]
    given = [] if mask is None else [mask]
    return w.done(w.joined(w("Attention", *heads, *given, **attrs)))


def scaled() -> Graph:
    w = Writer(q=(B, L, H * D), k=(B, S, H * D), v=(B, S, H * D))
    queries = w("Mul", w.heads(w["q"], H), np.float32(0.3))
    heads = [w.heads(w[name], H) for name in "kv"]
    return w.done(w.joined(w("Attention", queries, *heads, softcap=2.0)))


def grouped() -> Graph:
    w = Writer(q=(B, H, L, D), k=(B, SHARED, S, D), v=(B, SHARED, S, D))

    def repeated(x: Value) -> Value:
        single = w("Unsqueeze", x, [2])
        whole = w("Expand", single, [B, SHARED, H // SHARED, S, D])
        return w("Reshape", whole, [B, H, S, D])

    return w.done(w("Attention", w["q"], repeated(w["k"]), repeated(w["v"])))


def attention_in(graph: Graph) -> Node:
    (node,) = [n for n in graph.nodes if n.op == "Attention"]
    return node


GRAPHS = {
    "plain": packed(), "scale": packed(scale=0.2), "cap": packed(softcap=1.5), "scaled": scaled(),
    "causal": packed(is_causal=1), "mask": packed(BIAS), "bool": packed(~LATER, L),
    "lowest": packed(np.where(LATER, np.finfo(np.float32).min, np.float32(0)), L),
    "grouped": grouped(),
}  # fmt: skip


@pytest.mark.parametrize("name", GRAPHS)
def test_the_numbers_stay(name):
    graph = GRAPHS[name]
    new, journal = graph.copy(), Journal()
    assert layout_pack_attention(new, journal) == 1
    infer_types(new)
    verify(new)
    feeds = feeds_for(graph)
    agree(run(new, feeds), run(graph, feeds))


@pytest.mark.cpu
@pytest.mark.parametrize("name", GRAPHS)
def test_the_native_kernel_gives_the_same(name):
    graph = GRAPHS[name]
    feeds = feeds_for(graph)
    predictor = Predictor(optimize_graph(graph), "x86")
    agree(list(predictor.run(feeds).values()), run(graph, feeds))


@pytest.mark.parametrize("name", [n for n in GRAPHS if n != "grouped"])
def test_no_transposes_are_left(name):
    new = optimize_graph(GRAPHS[name])
    assert attention_in(new).attrs["q_num_heads"] == H
    assert {"Transpose", "Mul"}.isdisjoint(n.op for n in new.nodes)


@pytest.mark.parametrize("name", ["bool", "lowest"])
def test_a_mask_that_hides_later_keys_becomes_an_attribute(name):
    node = attention_in(optimize_graph(GRAPHS[name]))
    assert node.attrs["is_causal"] == 1 and node.input(3) is None


def test_keys_of_a_group_are_not_repeated():
    new = optimize_graph(GRAPHS["grouped"])
    assert attention_in(new).input(1).shape == (B, SHARED, S, D)
    assert "Expand" not in [n.op for n in new.nodes]


def test_attention_that_gives_its_keys_stays():
    w = Writer(q=(B, L, H * D), k=(B, S, H * D), v=(B, S, H * D))
    heads = [w.heads(w[name], H) for name in "qkv"]
    node = Node("Attention", heads, [Value(name) for name in ("y", "keys", "values")], name="node")
    w.graph.nodes.append(node)
    infer_types(w.graph)
    graph = w.done(w.joined(node.outputs[0]), node.outputs[1])
    assert layout_pack_attention(graph, Journal()) == 0


@pytest.mark.parametrize("batch", [1, B])
def test_keys_of_a_group_stay_packed(batch: int) -> None:
    """Llama: a batch of 1 is one more axis that could be left out."""
    w = Writer(q=(batch, L, H * D), k=(batch, S, SHARED * D), v=(batch, S, SHARED * D))

    def repeated(x: Value) -> Value:
        single = w("Unsqueeze", w.heads(x, SHARED), [2])
        each = w("Expand", single, [batch, SHARED, H // SHARED, S, D])
        return w("Reshape", each, [batch, H, S, D])

    keys = w("Transpose", repeated(w["k"]), perm=[0, 1, 3, 2])
    chance = w("Softmax", w("MatMul", w.heads(w["q"], H), keys))
    graph = w.done(w.joined(w("MatMul", chance, repeated(w["v"]))))
    new, feeds = optimize_graph(graph), feeds_for(graph)
    (node,) = [n for n in new.nodes if n.op == "Attention"]
    assert (node.attrs["q_num_heads"], node.attrs["kv_num_heads"]) == (H, SHARED)
    assert {"Transpose", "Expand"}.isdisjoint(n.op for n in new.nodes)
    agree(run(new, feeds), run(graph, feeds))


def test_a_scale_of_each_head_stays_packed() -> None:
    """Swin V2, whose queries are normalised and multiplied by a number for each head."""
    w = Writer(q=(B, L, H * D), k=(B, S, H * D), v=(B, S, H * D))
    queries, keys, values = (w.heads(w[name], H) for name in "qkv")
    scores = w("MatMul", queries, w("Transpose", keys, perm=[0, 1, 3, 2]))
    scores = w("Mul", scores, w.normal(H, 1, 1))
    graph = w.done(w.joined(w("MatMul", w("Softmax", scores), values)))
    new, feeds = optimize_graph(graph), feeds_for(graph)
    (node,) = [n for n in new.nodes if n.op == "Attention"]
    assert node.attrs["q_num_heads"] == H and "Transpose" not in {n.op for n in new.nodes}
    agree(run(new, feeds), run(graph, feeds))


def heads_as_batch(split: tuple[int, int]) -> Graph:
    """DeBERTa V2: heads are a batch to both products and an axis to the softmax between them."""
    w = Writer(q=(1, L, H * D), k=(1, S, H * D), v=(1, S, H * D))
    queries, keys, values = (
        w("Reshape", w.heads(w[name], H), [H, n, D]) for name, n in zip("qkv", (L, S, S))
    )
    scores = w("MatMul", queries, w("Transpose", keys, perm=[0, 2, 1]))
    scores = w("Add", w("Reshape", scores, [1, H, L, S]), BIAS)
    chance = w("Reshape", w("Softmax", scores), [H, L, S])
    made = w("Reshape", w("MatMul", chance, values), [*split, L, D])
    return w.done(w.joined(made))


@pytest.mark.parametrize("split", [(1, H), (2, H // 2)])
def test_heads_that_are_a_batch(split: tuple[int, int]) -> None:
    graph = heads_as_batch(split)
    new, feeds = optimize_graph(graph), feeds_for(graph)
    ops = [n.op for n in new.nodes]
    assert ops.count("Attention") == 1 and ("Transpose" in ops) == (split != (1, H))
    agree(run(new, feeds), run(graph, feeds))
