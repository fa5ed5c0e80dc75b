"""Parts of one value and how they are joined again: splits, cyclic shifts, dense joins."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.ir import Graph
from lite_engine.passes import optimize_graph
from lite_engine.passes.merge_moves import merge_moves
from lite_engine.passes.recompose_splits import recompose_splits
from lite_engine.plan import make_plan
from lite_engine.runtime import Execution

from tests.passes.conftest import feeds_for, run
from tests.small_models import Builder

PACKED = "input x: f32[2,5,36]\nconst s: i64[5] = [2, 5, 3, 4, 3]\n"
PARTS = (
    "const i0: i64[] = 0\nconst i1: i64[] = 1\nconst i2: i64[] = 2\n"
    '"r": r = Reshape(x, s)\n"q": q = Gather(r, i0) {axis=2}\n"k": k = Gather(r, i1) {axis=2}\n'
    '"v": v = Gather(r, i2) {axis=-3}\noutput q\noutput k\noutput v'
)


def same(bench, step, text: str) -> Graph:
    """The graph after the pass, which must compute what it did."""
    old, new, _, count = bench.apply(step, text)
    assert count > 0
    feeds = feeds_for(old)
    for a, b in zip(run(old, feeds), run(new, feeds), strict=True):
        np.testing.assert_array_equal(a, b)
    return new


def ops(graph: Graph) -> list[str]:
    return [n.op for n in graph.nodes]


def test_parts_of_a_product_become_one_split(bench) -> None:
    after = same(bench, recompose_splits, PACKED + PARTS)
    assert ops(after) == ["Reshape", "Split", "Reshape", "Reshape", "Reshape"]


@pytest.mark.parametrize(
    "changed",
    [
        ("{axis=-3}", "{axis=3}"),  # another axis
        ("const i2: i64[] = 2", "const i2: i64[] = 1"),  # a part twice
        ("const i2: i64[] = 2", "const i2: i64[1] = [2]"),  # keeps the axis
        ("[2, 5, 3, 4, 3]", "[1, 5, 6, 4, 3]"),  # parts are not side by side in rows of x
    ],
)
def test_other_selections_stay(bench, changed: tuple[str, str]) -> None:
    text = (PACKED + PARTS).replace(*changed)
    bench.ignores(recompose_splits, text)


SLICES = (
    "input x: f32[3,10]\nconst a: i64[1] = [0]\nconst b: i64[1] = [4]\nconst e: i64[1] = [99]\n"
    "const axis: i64[1] = [-1]\n"
)


def test_slices_that_are_all_of_the_last_axis_become_one_split(bench) -> None:
    text = (
        SLICES + '"q": q = Slice(x, b, e, axis)\n"k": k = Slice(x, a, b, axis)\noutput q\noutput k'
    )
    # the graph's inputs are no results; a slice of a layer's result is what is looked for
    text = text.replace("Slice(x", "Slice(h").replace('"q": q', '"h": h = Relu(x)\n"q": q', 1)
    assert ops(same(bench, recompose_splits, text)) == ["Relu", "Split", "Identity", "Identity"]


UNBOUND = (
    "input x: f32[5,24]\nconst i0: i64[1] = [0]\nconst i1: i64[1] = [1]\nconst i3: i64[1] = [3]\n"
    "const axis: i64[1] = [2]\nconst s: i64[5] = [1, 5, 3, 2, 4]\n"
    '"r": r = Reshape(x, s)\n"k": k = Slice(r, i1, i3, axis)\n"q": q = Slice(r, i0, i1, axis)\n'
    "output q\noutput k"
)


def test_slices_of_an_axis_that_was_a_part_of_the_last_become_one_split(bench) -> None:
    after = same(bench, recompose_splits, UNBOUND)
    assert ops(after) == ["Reshape", "Reshape", "Split", "Reshape", "Reshape"]


@pytest.mark.parametrize(
    "changed",
    [
        ("x: f32[5,24]", "x: f32[5,3,8]"),  # parts are not side by side in rows of x
        ("i3: i64[1] = [3]", "i3: i64[1] = [2]"),  # a gap
        ("Slice(r, i0, i1, axis)", "Slice(r, i0, i1, i1)"),  # another axis
    ],
)
def test_other_slices_stay(bench, changed: tuple[str, str]) -> None:
    bench.ignores(recompose_splits, UNBOUND.replace(*changed))


def test_slices_with_a_gap_stay(bench) -> None:
    text = SLICES.replace("e: i64[1] = [99]", "e: i64[1] = [9]")
    text += '"h": h = Relu(x)\n"q": q = Slice(h, b, e, axis)\n"k": k = Slice(h, a, b, axis)\n'
    bench.ignores(recompose_splits, text + "output q\noutput k")


def shifted(width: int) -> str:
    """A cyclic shift along two axes, then windows of 2 x 2: how Swin's layers begin."""
    return (
        f"input x: f32[1,4,6,{width}]\nconst a: i64[1] = [0]\nconst c: i64[1] = [1]\n"
        "const e: i64[1] = [999]\nconst one: i64[1] = [1]\nconst two: i64[1] = [2]\n"
        f"const s: i64[6] = [1, 2, 2, 3, 2, {width}]\nconst f: i64[2] = [24, {width}]\n"
        '"h": h = Relu(x)\n"p": p = Slice(h, c, e, one)\n"q": q = Slice(h, a, c, one)\n'
        '"j": j = Concat(p, q) {axis=1}\n"t": t = Slice(j, c, e, two)\n'
        '"u": u = Slice(j, a, c, two)\n"k": k = Concat(t, u) {axis=2}\n"r": r = Reshape(k, s)\n'
        '"w": w = Transpose(r) {perm=[0, 1, 3, 2, 4, 5]}\n"y": y = Reshape(w, f)\noutput y'
    )


def test_a_cyclic_shift_and_its_windows_are_one_gather(bench) -> None:
    assert ops(same(bench, merge_moves, shifted(8))) == ["Relu", "Reshape", "Gather", "Reshape"]


def test_short_rows_are_copied_as_they_are(bench) -> None:
    bench.ignores(merge_moves, shifted(3))


def test_a_part_that_somebody_else_reads_stays(bench) -> None:
    after = same(bench, merge_moves, shifted(8) + '\n"z": z = Neg(j)\noutput z')
    assert ops(after).count("Gather") == 2  # each axis by itself


def test_rows_of_channels_last_stay() -> None:
    """Rows of a convolution's row-major result would undo the order that it lies in."""
    b = Builder((1, 8, 8, 16))
    y = b.conv(b.x, 8, 8, 1)
    parts = [b.add("Slice", y, b.ints(s), b.ints(e), b.ints(2)) for s, e in ((3, 99), (0, 3))]
    graph = b.done(b.add("Concat", *parts, axis=2))
    assert "Gather" not in ops(optimize_graph(graph))


def dense(layers: int = 4) -> Graph:
    """Each layer reads what all before it made (Huang et al., 2017)."""
    b = Builder((1, 8, 5, 5), "dense")
    parts = [b.conv(b.x, 8, 8, 1, name="first")]
    for i in range(layers):
        y = b.add("Concat", *parts, axis=1, name=f"join{i}") if i else parts[0]
        parts.append(b.conv(y, 8 * (i + 1), 8, 3, name=f"layer{i}"))
    return b.done(b.add("GlobalAveragePool", b.add("Concat", *parts, axis=1, name="whole")))


def test_a_join_goes_on_where_another_ends() -> None:
    graph = dense()
    after = optimize_graph(graph)
    joins = [n for n in after.nodes if n.op == "Concat"]
    assert [len(n.inputs) for n in joins] == [2] * len(joins)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_a_dense_block_is_one_buffer(backend: str) -> None:
    graph = dense()
    feeds = list(feeds_for(graph).values())
    wanted = run(graph, feeds_for(graph))
    execution = Execution(make_plan(optimize_graph(graph), backend), threads=1)
    for found, exact in zip(execution.run(feeds), wanted, strict=True):
        np.testing.assert_allclose(found, exact, rtol=1e-4, atol=1e-4)
    if backend == "cpu":
        plan = execution.plan
        made = [plan.tensors[plan.tensor_of[f"layer{i}"]] for i in range(4)]
        assert {plan.root(t.index).name for t in made} == {"whole"}
        assert [t.offset - plan.root(t.index).offset for t in made] == [32, 64, 96, 128]
