"""Constants and shape arithmetic fold."""

from __future__ import annotations

import pytest
from lite_engine.passes.fold_constants import fold_constants
from lite_engine.passes.fold_shapes import _compute, fold_shapes


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
    """0 copies, whether it was computed or put for a symbol. With `allowzero` a computed 0 is a 0,
    which a target that copies cannot say."""
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
    if rest:
        bench.rewrites(fold_shapes, text.format(rest, " {allowzero=1}"), expected)
        return
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


def test_the_first_rows_of_a_table_fit_their_tokens(bench):
    """Positions and a count of them, as exporters of text models write them."""
    _, new, _, _ = bench.apply(
        fold_shapes,
        """
        input x: f32[n,t,4]
        const table: f32[1,64,4] = rand
        const zero: i64[] = [0]
        const one: i64[] = [1]
        const first: i64[1] = [0]
        const axis: i64[1] = [1]
        "shape": s = Shape(x)
        "length": m = Gather(s, one)
        "lift": e = Unsqueeze(m, first)
        "rows": p = Slice(table, first, e, axis, axis)
        "y": y = Add(x, p)
        "count": z = Range(zero, m, one)
        output y
        output z
        """,
    )
    shapes = {n.name: n.output.shape for n in new.nodes}
    assert shapes["rows"] == (1, "t≤64", 4) and shapes["y"] == ("n", "t", 4)
    assert shapes["count"] == ("t",)
