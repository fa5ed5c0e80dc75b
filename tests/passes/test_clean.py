"""Folding of constants and shapes, removal of nodes that do nothing."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.ir import DType, Graph, Journal, Value
from lite_engine.ops import infer_types
from lite_engine.passes.drop_identity import drop_identity
from lite_engine.passes.fold_shapes import fold_shapes
from lite_engine.passes.fuse_conv_affine import fuse_conv_bias

#: Nodes that look as if they changed nothing, and do.
NO_IDENTITIES = {
    "fewer axes": "Reshape(a, zeros)",
    "read backwards": "Slice(a, last, first, axis, back)",
    "another scale": 'Resize(a, _, scales) {mode="linear"}',
    "cut out": 'Resize(a, box, ones) {coordinate_transformation_mode="tf_crop_and_resize"}',
    "padded": "MaxPool(a) {kernel_shape=[1, 1], pads=[1, 0, 0, 0]}",
}


@pytest.mark.parametrize("case", NO_IDENTITIES)
def test_what_only_looks_like_an_identity_stays(bench, case):
    bench.ignores(
        drop_identity,
        f"""
        input x: f32[1,2,5,1]
        const zeros: i64[3] = [0, 0, 0]
        const last: i64[1] = [4]
        const first: i64[1] = [-9]
        const axis: i64[1] = [2]
        const back: i64[1] = [-1]
        const scales: f32[4] = [1, 1, 1.1, 1]
        const ones: f32[4] = [1, 1, 1, 1]
        const box: f32[8] = [0, 0, 0.5, 0, 1, 1, 1, 1]
        "a": a = Relu(x)
        "i": i = {NO_IDENTITIES[case]}
        "y": y = Neg(i)
        output y
        """,
    )


def _either(*branches):
    """An If over the values `c` = Conv(x) and `y` = c + k whose branches hand out some of them."""
    graph = Graph("g", [Value("x", DType.F32, (1, 1, 2, 2)), Value("first", DType.BOOL, ())])
    weight = graph.constant(np.ones((1, 1, 1, 1), np.float32))
    c = graph.add("Conv", [graph.inputs[0], weight], name="c").output
    y = graph.add("Add", [c, graph.constant(np.full((1, 1, 1, 1), 3, np.float32))], name="y").output
    parts = [Graph(name, outputs=[{"c": c, "y": y}[name]]) for name in branches]
    attrs = dict(zip(("then_branch", "else_branch"), parts, strict=True))
    graph.outputs = [graph.add("If", [graph.inputs[1]], attrs, name="z").output]
    return graph


def test_what_a_branch_hands_out_is_read():
    """No reader list names it."""
    graph = _either("y", "c")
    assert graph.remove_unread() == 0
    infer_types(graph)
    journal = Journal()
    assert fuse_conv_bias(graph, journal) == 0
    assert "output of the model" in journal.entries[0].reason
    graph.outputs = [graph.inputs[0]]
    assert graph.remove_unread() == 3 and not graph.nodes


IDENTITIES = [
    "Identity(a)",
    "Dropout(a)",
    "Transpose(a) {perm=[0, 1]}",
    "Mul(a, one)",
    "Add(zero, a)",
    "Sub(a, zero)",
    "Div(a, one)",
    "Reshape(a, shape)",
]


@pytest.mark.parametrize("call", IDENTITIES)
def test_identity_goes(bench, call):
    consts = "const one: f32[] = [1]\nconst zero: f32[1] = [0]\nconst shape: i64[2] = [2, 3]\n"
    ins = "input x: f32[2,3]\n"
    text = ins + consts + f'"a": a = Relu(x)\n"i": i = {call}\n"y": y = Neg(i)\noutput y'
    bench.rewrites(drop_identity, text, ins + '"a": a = Relu(x)\n"y": y = Neg(a)\noutput y')


def test_identity_that_is_the_output_keeps_its_name(bench):
    new = bench.rewrites(
        drop_identity,
        'input x: f32[2]\n"a": a = Relu(x)\n"i": y = Identity(a)\noutput y',
        'input x: f32[2]\n"a": y = Relu(x)\noutput y',
    )
    assert new.nodes[0].sources == ("a", "i")


def test_identity_between_input_and_output_stays(bench):
    bench.refuses(
        drop_identity, 'input x: f32[2]\n"i": y = Identity(x)\noutput y', "connects an input"
    )


def test_addition_that_widens_the_rank_stays(bench):
    bench.ignores(
        drop_identity,
        'input x: f32[3]\nconst z: f32[1,1] = [0]\n"y": y = Add(x, z)\noutput y',
    )


def test_mean_of_tiny_number_is_not_neutral(bench):
    """1.00001 is close to 1 but changes the numbers."""
    text = (
        'input x: f32[2]\nconst k: f32[] = [1.00001]\n"y": y = Mul(x, k)\n"z": z = Neg(y)\noutput z'
    )
    bench.ignores(drop_identity, text)
    assert np.float32(1.00001) != 1


#: torchvision's ViT: (n, -1, -1), where -1 keeps a size; behind the Expand all sizes are known.
TOKENS = """
    input x: f32[batch,4,6]
    const token: f32[1,1,6] = rand
    const zero: i64[] = [0]
    const one: i64[] = [1]
    const first: i64[1] = [0]
    const keep: i64[2] = [-1, -1]
    const none: i64[3] = [-1, -1, -1]
    const ones: i64[3] = [1, 1, 1]
    const heads: i64[] = [2]
    const rest: i64[1] = [3]
    const five: i64[1] = [5]
    "shape": s = Shape(x)
    "batch": n = Gather(s, zero)
    "lift": u = Unsqueeze(n, first)
    "cat": t = Concat(u, keep) {axis=0}
    "is": e = Equal(t, none)
    "where": w = Where(e, ones, t)
    "tokens": c = Expand(token, w)
    "all": a = Concat(c, x) {axis=1}
    "turn": q = Transpose(a) {perm=[1, 0, 2]}
"""


def test_a_token_for_each_of_an_open_batch(bench):
    """Shapes computed from what an Expand gives fold in the same pass."""
    heads = (
        TOKENS
        + """
    "again": s2 = Shape(q)
    "pick": n2 = Gather(s2, one)
    "times": m = Mul(n2, heads)
    "high": h = Unsqueeze(m, first)
    "to": v = Concat(five, h, rest) {axis=0}
    "y": y = Reshape(q, v)
    output y
    """
    )
    folded = (
        TOKENS.replace("e = Equal(t, none)", "e2 = Equal(t, none)")
        + """
    const v: i64[3] = [5, -1, 3]
    "y": y = Reshape(q, v)
    output y
    """
    )
    folded = folded.replace('    "is": e2 = Equal(t, none)\n', "").replace(
        "const none: i64[3] = [-1, -1, -1]", "const e: bool[3] = [0, 1, 1]"
    )
    new = bench.rewrites(fold_shapes, heads, folded)
    assert new.outputs[0].shape == (5, "2*(batch)", 3)


def test_halves_of_a_shuffled_map(bench):
    """torchvision's ShuffleNet: chunk() as sizes; each Slice tells the next one's channels."""
    sizes = """
    "shape{0}": s{0} = Shape({1})
    "channels{0}": c{0} = Gather(s{0}, one)
    "more{0}": m{0} = Add(c{0}, one)
    "half{0}": h{0} = Div(m{0}, two)
    "left{0}": l{0} = Slice({1}, zero, h{0}, one)
    """
    text = """
    input x: f32[batch,8,3]
    const zero: i64[1] = [0]
    const one: i64[1] = [1]
    const two: i64[1] = [2]
    {}
    output l2
    """
    new = bench.apply(fold_shapes, text.format(sizes.format(1, "x") + sizes.format(2, "l1")))[1]
    assert [n.op for n in new.nodes] == ["Slice", "Slice"]
    assert new.outputs[0].shape == ("batch", 2, 3)


@pytest.mark.parametrize("inputs", ["x, zero, yes", "x, some, no", "x, some", "x"])
def test_dropout_that_drops_nothing(bench, inputs):
    """PyTorch's stochastic depth of rate 0 is exported in training mode."""
    bench.rewrites(
        drop_identity,
        f"""
        input x: f32[2,3]
        const zero: f32[] = [0]
        const some: f32[] = [0.5]
        const yes: bool[] = [1]
        const no: bool[] = [0]
        "drop": d = Dropout({inputs})
        "y": y = Relu(d)
        output y
        """,
        """
        input x: f32[2,3]
        "y": y = Relu(x)
        output y
        """,
    )


def test_dropout_in_training_stays(bench):
    bench.ignores(
        drop_identity,
        """
        input x: f32[2,3]
        const some: f32[] = [0.5]
        const yes: bool[] = [1]
        "drop": y = Dropout(x, some, yes)
        output y
        """,
    )


def test_equal_open_sizes_are_equal(bench):
    """A Reshape between equal sizes goes, one between unknown ones stays."""
    text = """
        input x: f32[{0},4]
        const to: i64[2] = [-1, 4]
        "same": s = Reshape(x, to)
        "y": y = Relu(s)
        output y
    """
    new = bench.apply(drop_identity, text.format("N"))[1]
    assert [n.op for n in new.nodes] == ["Relu"]
    bench.ignores(drop_identity, text.format("?"))


@pytest.mark.parametrize(
    "node",
    ["Mul(s, s)", "Mul(s, one)", "Equal(s, s)", "Where(b, s, s)", "Slice(t, none, none)"],
)
def test_shapes_without_numbers(bench, node):
    """A part of a shape may be empty, and so may the limits of a Slice."""
    graph = bench.graph(
        f"""
        input z: f32[N,3]
        const one: i64[1] = [1]
        const none: i64[0] = []
        const b: bool[1] = [1]
        "shape": s = Shape(z) {{start=2, end=2}}
        "two": t = Shape(z)
        "node": y = {node}
        "twice": d = Identity(y)
        output d
        """
    )
    fold_shapes(graph, Journal())
    assert graph.nodes
