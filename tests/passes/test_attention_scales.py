"""What attention scores are multiplied by, and rows that see no key. Oracle: the graph before, by
the references."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.ir import Graph, Journal, verify
from lite_engine.passes import optimize_graph
from lite_engine.passes.fuse_attention import fuse_attention

from .conftest import feeds_for, run
from .test_fuse_attention import B, D, H, L, S, Writer, agree, fused, separate


def beside_batches(factor: np.ndarray) -> Graph:
    """Heads lie beside the batches in products, and by themselves where they are scaled."""
    w = Writer(q=(B * H, L, D), k=(B * H, S, D), v=(B * H, S, D))
    scores = w("MatMul", w["q"], w("Transpose", w["k"], perm=[0, 2, 1]))
    scores = w("Mul", w("Reshape", scores, [B, H, L, S]), factor)
    chance = w("Softmax", w("Reshape", scores, [B * H, L, S]))
    return w.done(w("MatMul", chance, w["v"]))


def test_a_scale_of_each_head_is_repeated_for_batches_beside_it():
    factor = np.linspace(0.5, 2, H, dtype=np.float32).reshape(H, 1, 1)
    graph = beside_batches(factor)
    feeds = feeds_for(graph)
    agree(run(fused(graph), feeds), run(graph, feeds))


def test_a_scale_of_each_head_and_batch_stays_where_products_have_them_apart():
    w = separate()
    scores = w("MatMul", w["q"], w("Transpose", w["k"], perm=[0, 1, 3, 2]))
    scores = w("Mul", w("Reshape", scores, [B * H, L, S]), w.normal(B * H, 1, 1))
    graph = w.done(w("MatMul", w("Softmax", w("Reshape", scores, [B, H, L, S])), w["v"]))
    journal = Journal()
    assert fuse_attention(graph, journal) == 0
    assert "the scores are scaled by more than one number" in str(journal)
    verify(graph)


@pytest.mark.parametrize("shape", [(1,), (1, 1)])
def test_a_limit_of_scores_whose_number_has_axes_stays(shape):
    """tanh(scores / limit) · limit, as Gemma 2 has it, of a limit that is no scalar."""
    w = separate()
    limit = np.full(shape, 5, np.float32)
    scores = w("MatMul", w["q"], w("Transpose", w["k"], perm=[0, 1, 3, 2]))
    scores = w("Mul", w("Tanh", w("Div", scores, limit)), limit)
    graph = w.done(w("MatMul", w("Softmax", scores), w["v"]))
    feeds = feeds_for(graph)
    agree(run(optimize_graph(graph), feeds), run(graph, feeds))


def test_scores_scaled_twice_by_numbers_that_have_axes_stay():
    """Behind a scale of each head, the second is refused, whatever the rank of its number."""
    w = separate()
    scores = w("MatMul", w["q"], w("Transpose", w["k"], perm=[0, 1, 3, 2]))
    scores = w("Mul", w("Mul", scores, np.full((1,), 0.5, np.float32)), w.normal(H, 1, 1))
    graph = w.done(w("MatMul", w("Softmax", scores), w["v"]))
    assert fuse_attention(graph, Journal()) == 0


@pytest.mark.parametrize("later", [True, False])
def test_a_row_whose_keys_are_all_hidden_sees_each_of_them_alike(later):
    """Where(mask, scores, -1e9) forgets the scores, and what hid them before."""
    w = separate()
    mask = np.arange(H).reshape(H, 1, 1) > 0
    scores = w("MatMul", w["q"], w("Mul", w("Transpose", w["k"], perm=[0, 1, 3, 2]), 40.0))
    if later:
        hidden = np.arange(S) > np.arange(L)[:, None]
        scores = w("Add", scores, np.where(hidden, np.float32(-1e9), np.float32(0)))
    graph = w.done(w("MatMul", w("Softmax", w("Where", mask, scores, -1e9)), w["v"]))
    feeds = feeds_for(graph)
    (found,) = run(optimize_graph(graph), feeds)
    agree([found], run(graph, feeds))
    mean = feeds["v"].mean(axis=2, keepdims=True)[:, :1]
    np.testing.assert_allclose(found[:, :1], np.broadcast_to(mean, found[:, :1].shape), rtol=1e-4)
