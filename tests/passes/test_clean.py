"""Folding of constants and shapes, removal of nodes that do nothing."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.passes.drop_identity import drop_identity
from lite_engine.passes.fold_constants import fold_constants
from lite_engine.passes.fold_shapes import fold_shapes


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
