"""Layers with branches are cut out of a model: what these read from around them is an input."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import edit
from lite_engine.ir import DType, Graph, Value
from lite_engine.ops import infer_types

from .test_edit import close, run


def branching() -> Graph:
    """An If and a Loop, whose graphs read a value of the graph around them."""
    graph = Graph("branching")
    graph.inputs = [Value("x", DType.F32, (1, 4))]
    x = graph.add("Relu", graph.inputs, name="relu").output
    total = graph.add("ReduceSum", [x], {"keepdims": 0}, name="sum").output
    high = graph.add("Greater", [total, graph.constant(np.float32(1))], name="high").output
    then, other, body = Graph("then"), Graph("other"), Graph("body")
    then.outputs = [then.add("Mul", [x, then.constant(np.float32(2))], name="twice").output]
    other.outputs = [other.add("Neg", [x], name="neg").output]
    attrs = {"then_branch": then, "else_branch": other}
    chosen = graph.add("If", [high], attrs, name="choice").output
    body.inputs = [Value("i", DType.I64, ()), Value("on", DType.BOOL, ()),
                   Value("before", DType.F32, (1, 4))]  # fmt: skip
    body.outputs = [body.add("Identity", [body.inputs[1]], name="still").output,
                    body.add("Add", [body.inputs[2], x], name="more").output]  # fmt: skip
    times = graph.constant(np.int64(3), "times")
    looped = graph.add("Loop", [times, None, chosen], {"body": body}, name="loop").output
    graph.outputs = [graph.add("Exp", [looped], name="exp").output]
    infer_types(graph)
    return graph


@pytest.mark.parametrize(
    ("layers", "inputs", "outputs"),
    [
        (["choice"], {"high", "relu"}, ["choice"]),
        (["loop", "exp"], {"choice", "relu"}, ["exp"]),
        (["relu", "sum"], {"x"}, ["relu", "sum"]),
    ],
)
def test_layers_with_branches_are_cut_out(layers, inputs, outputs) -> None:
    whole = branching()
    whole.outputs = [v for n in whole.nodes for v in n.outputs]
    feeds = {"x": np.array([[0.1, -0.2, 0.3, 0.9]], np.float32)}
    known = {**feeds, **run(whole, feeds)}
    part = edit.extract_layers(branching(), layers)
    assert {v.name for v in part.inputs} == inputs
    assert [v.name for v in part.outputs] == outputs
    made = run(part, {name: known[name] for name in inputs})
    assert all(close(made[name], known[name]) for name in outputs)


@pytest.mark.parametrize(
    ("inputs", "outputs", "kept"),
    [
        ([], [], {"preprocess", "labels"}),
        (["sub"], [], {"labels"}),
        ([], ["features"], {"preprocess"}),
        ([], ["logits"], {"preprocess", "labels"}),
    ],
)
def test_a_part_keeps_what_is_still_true(inputs, outputs, kept) -> None:
    """Pictures are prepared for the model's own input; labels name what has the answers' shape."""
    graph = Graph("labelled", metadata={"preprocess": {"mean": [1.0]}, "labels": ["a", "b"]})
    graph.inputs = [Value("x", DType.F32, (1, 4))]
    one = graph.constant(np.ones(4, np.float32))
    sub = graph.add("Sub", [graph.inputs[0], one], name="sub", outputs=["sub"]).output
    y = graph.add("Relu", [sub], name="features", outputs=["features"]).output
    w = graph.constant(np.ones((4, 2), np.float32))
    y = graph.add("MatMul", [y, w], name="logits", outputs=["logits"]).output
    graph.outputs = [graph.add("Softmax", [y], name="prob", outputs=["prob"]).output]
    infer_types(graph)
    assert set(edit.extract(graph, inputs, outputs).metadata) == kept
    assert set(graph.metadata) == {"preprocess", "labels"}
