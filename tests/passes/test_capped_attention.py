"""Attention whose scores pass through a soft cap, as in Gemma 2. Oracle: the graph as it was, by
the references, and for the kernels onnxruntime."""

from __future__ import annotations

import pytest
from lite_engine import Predictor
from lite_engine.exporters.onnx import write_bytes
from lite_engine.ir import Graph, Journal, Value
from lite_engine.passes.fuse_attention import fuse_attention

from .conftest import feeds_for, run
from .test_fuse_attention import H, L, S, Writer, agree, fused, onnxruntime, separate

CAP = 2.5


def scores_of(w: Writer) -> Value:
    return w("MatMul", w["q"], w("Transpose", w["k"], perm=[0, 1, 3, 2]))


def capped(w: Writer, scores: Value) -> Value:
    return w("Mul", w("Tanh", w("Div", scores, CAP)), CAP)


def gemma() -> Graph:
    w = separate()
    scores = w("Add", capped(w, w("Mul", scores_of(w), 0.7)), w.normal(L, S))
    return w.done(w("MatMul", w("Softmax", scores), w["v"]))


def without_bias() -> Graph:
    w = separate()
    return w.done(w("MatMul", w("Softmax", capped(w, scores_of(w))), w["v"]))


def scale_of_each_head() -> Graph:
    w = separate()
    scores = w("Mul", scores_of(w), w.normal(H, 1, 1))
    return w.done(w("MatMul", w("Softmax", capped(w, scores)), w["v"]))


def scaled_sum() -> Graph:
    """What is multiplied behind the bias scales both."""
    w = separate()
    scores = w("Mul", w("Add", capped(w, scores_of(w)), w.normal(L, S)), 0.5)
    return w.done(w("MatMul", w("Softmax", scores), w["v"]))


@pytest.mark.cpu
@pytest.mark.opencl
@pytest.mark.parametrize("spelling", [gemma, without_bias, scale_of_each_head, scaled_sum])
def test_a_cap_becomes_an_attribute(spelling) -> None:
    graph = spelling()
    feeds = feeds_for(graph)
    new, want = fused(graph), run(graph, feeds)
    agree(run(new, feeds), want)
    (node,) = [n for n in new.nodes if n.op == "Attention"]
    assert node.attrs["softcap"] == pytest.approx(CAP * (0.5 if spelling is scaled_sum else 1))
    given = onnxruntime.InferenceSession(write_bytes(graph)).run(None, feeds)
    for backend in ("x86", "opencl"):
        agree(list(Predictor(new, backend).run(feeds).values()), given)


def bias_inside() -> Graph:
    w = separate()
    scores = capped(w, w("Add", scores_of(w), w.normal(L, S)))
    return w.done(w("MatMul", w("Softmax", scores), w["v"]))


def two_caps() -> Graph:
    w = separate()
    return w.done(w("MatMul", w("Softmax", capped(w, capped(w, scores_of(w)))), w["v"]))


def turned_around() -> Graph:
    w = separate()
    scores = w("Mul", w("Tanh", scores_of(w)), -2.0)
    return w.done(w("MatMul", w("Softmax", scores), w["v"]))


def each_head_behind() -> Graph:
    w = separate()
    scores = w("Mul", capped(w, scores_of(w)), w.normal(H, 1, 1))
    return w.done(w("MatMul", w("Softmax", scores), w["v"]))


BETWEEN = "stands between the product and the softmax"


@pytest.mark.parametrize(
    "other, reason",
    [(bias_inside, BETWEEN), (two_caps, BETWEEN), (turned_around, BETWEEN),
     (each_head_behind, "the scores are scaled by more than one number")],
)  # fmt: skip
def test_other_tangents_stay(other, reason: str) -> None:
    journal = Journal()
    assert fuse_attention(other(), journal) == 0
    assert reason in str(journal)
