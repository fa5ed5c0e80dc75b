"""Folding of constants and shapes, removal of nodes that do nothing."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.ir import DType, Graph, Journal, Value
from lite_engine.ops import infer_types
from lite_engine.passes.drop_identity import drop_identity
from lite_engine.passes.fold_constants import fold_constants
from lite_engine.passes.fold_shapes import _compute, fold_shapes
from lite_engine.passes.fuse_conv_affine import fuse_conv_bias


def test_constants_fold(bench):
    new = bench.rewrites(
        fold_constants,
        """
        input x: f32[2,3]
        const a: f32[3] = [1, 2, 3]
        const b: f32[3] = [10, 20, 30]
        "sum": s = Add(a, b)
        "y": y = Mul(x, s)
        output y
        """,
        """
        input x: f32[2,3]
        const s: f32[3] = rand
        "y": y = Mul(x, s)
        output y
        """,
    )
    assert new.nodes[0].inputs[1].const.tolist() == [11, 22, 33]


def test_symbolic_batch_becomes_copy(bench):
    _, new, _, _ = bench.apply(
        fold_shapes,
        """
        input x: f32[batch,12,5]
        const zero: i64[] = [0]
        const first: i64[1] = [0]
        const rest: i64[3] = [3, 4, 5]
        "shape": s = Shape(x)
        "pick": b = Gather(s, zero)
        "lift": u = Unsqueeze(b, first)
        "cat": t = Concat(u, rest) {axis=0}
        "y": y = Reshape(x, t)
        output y
        """,
    )
    assert [n.op for n in new.nodes] == ["Reshape"]
    assert new.nodes[0].inputs[1].const.tolist() == [0, 3, 4, 5]


def test_paddle_spelling_of_a_flatten(bench):
    """Shape as i32, sliced, squeezed to a scalar, cast back, lifted, joined with a number."""
    _, new, _, _ = bench.apply(
        fold_shapes,
        """
        input x: f32[N,20,1,1]
        const lo: i64[1] = [0]
        const hi: i64[1] = [1]
        const one: i64[1] = [-1]
        const c: i64[1] = [20]
        "shape": s = Shape(x)
        "cast": i = Cast(s) {to={"dtype": "i32"}}
        "slice": p = Slice(i, lo, hi, lo)
        "squeeze": q = Squeeze(p, lo)
        "back": l = Cast(q) {to={"dtype": "i64"}}
        "lift": u = Reshape(l, one)
        "cat": t = Concat(u, c) {axis=0}
        "y": y = Reshape(x, t)
        output y
        """,
    )
    assert [n.op for n in new.nodes] == ["Reshape"]
    assert new.nodes[0].inputs[1].const.tolist() == [0, 20]
    assert new.outputs[0].shape == ("N", 20)


def test_arithmetic_on_sizes(bench):
    _, new, _, _ = bench.apply(
        fold_shapes,
        """
        input x: f32[N,6,4]
        const one: i64[1] = [1]
        const two: i64[1] = [2]
        const three: i64[1] = [3]
        "shape": s = Shape(x)
        "n": n = Slice(s, one, two)
        "d": d = Div(n, three)
        "m": m = Mul(d, two)
        "cat": t = Concat(m, three, one) {axis=0}
        "e": y = Expand(x, t)
        output y
        """,
    )
    assert new.nodes[0].op == "Expand" and new.nodes[0].inputs[1].const.tolist() == [4, 3, 1]


@pytest.mark.parametrize(
    ("op", "p", "q", "known"),
    [
        ("Add", "N", 0, "N"), ("Add", 0, "N", "N"), ("Sub", "N", 0, "N"), ("Sub", 0, "N", None),
        ("Mul", "N", 1, "N"), ("Mul", 1, "N", "N"), ("Div", "N", 1, "N"), ("Div", 1, "N", None),
        ("Mul", "N", 0, None), ("Add", "N", 1, "N+1"), ("Add", -1, "N", None), ("Sub", 1, 1, 0),
        ("Sub", "N", 1, None),
        ("Sub", "N", "N", 0), ("Mul", 12, "N", "12*(N)"), ("Div", "12*(N)", 4, "3*(N)"),
        ("Div", "N", 2, "N//2"), ("Div", "N", -2, None), ("Mul", "N", "M", None),
        ("Equal", "N", -1, 0), ("Equal", "N", "N", 1), ("Equal", "N", 1, None),
        ("Equal", None, None, None), ("Equal", 3, 3, 1), ("Div", -7, 2, -3), ("Div", 7, 0, None),
    ],
)  # fmt: skip
def test_what_is_known_of_a_result(op, p, q, known):
    assert _compute(op, p, q) == known


def test_part_of_a_shape(bench):
    _, new, _, _ = bench.apply(
        fold_shapes,
        """
        input x: f32[N,6,4]
        "tail": t = Shape(x) {start=-2, end=3}
        "y": y = Expand(x, t)
        output y
        """,
    )
    assert new.nodes[0].inputs[1].const.tolist() == [6, 4]


@pytest.mark.parametrize("rest", [12, 0])
def test_zeros_of_a_computed_target(bench, rest):
    """0 copies, whether it was computed or put for a symbol."""
    text = """
        input x: f32[N,12]
        const first: i64[1] = [0]
        const one: i64[1] = [1]
        const rest: i64[1] = [{}]
        "shape": s = Shape(x)
        "n": n = Slice(s, first, one)
        "cat": t = Concat(n, rest) {{axis=0}}
        "y": y = Reshape(x, t){}
        output y
    """
    expected = """
        input x: f32[N,12]
        const t: i64[2] = [0, 12]
        "y": y = Reshape(x, t)
        output y
    """
    bench.rewrites(fold_shapes, text.format(rest, ""), expected)
    _, new, _, _ = bench.apply(fold_shapes, text.format(rest, " {allowzero=1}"))
    assert [n.op for n in new.nodes] == ["Shape", "Slice", "Concat", "Reshape"]


def test_one_size_stays_a_scalar(bench):
    """What torchvision's windows are padded with: 7 - height % 7, which no open size hides."""
    _, new, _, _ = bench.apply(
        fold_shapes,
        """
        input x: f32[1,3,58,56]
        input z: f32[1]
        const at: i64[] = [2]
        const seven: i64[] = [7]
        const first: i64[1] = [0]
        "shape": s = Shape(x)
        "height": h = Gather(s, at)
        "rest": r = Mod(h, seven) {fmod=0}
        "lift": u = Unsqueeze(r, first)
        "e": y = Expand(z, u)
        output y
        """,
    )
    assert [n.op for n in new.nodes] == ["Expand"]
    assert new.nodes[0].inputs[1].const.tolist() == [2]


def test_what_folds_tells_the_shape_of_what_follows(bench):
    """A computed target fixes a Reshape, whose sizes are asked again: one pass folds both."""
    new = bench.rewrites(
        fold_constants,
        """
        input x: f32[2,3,4]
        const at: i64[1] = [0]
        const rest: i64[1] = [12]
        "shape": s = Shape(x)
        "n": n = Gather(s, at)
        "to": t = Concat(n, rest) {axis=0}
        "flat": f = Reshape(x, t)
        "again": a = Shape(f)
        "wide": w = Gather(a, at)
        "to2": u = Concat(rest, w) {axis=0}
        "y": y = Reshape(f, u)
        output y
        """,
        """
        input x: f32[2,3,4]
        const t: i64[2] = [2, 12]
        const u: i64[2] = [12, 2]
        "flat": f = Reshape(x, t)
        "y": y = Reshape(f, u)
        output y
        """,
    )
    assert new.outputs[0].shape == (12, 2)


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
        drop_identity, 'input x: f32[2]\n"i": y = Identity(x)\noutput y', "joins an input"
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
