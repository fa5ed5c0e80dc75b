"""Transposes sink through every operator that lets them, cancel, and never change a number."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.exporters.onnx import write_bytes
from lite_engine.ir import Journal, verify
from lite_engine.ops import infer_types
from lite_engine.passes.layout_sink_transposes import layout_sink_transposes

from tests.passes.conftest import feeds_for, graph_of, run


def sunk(text: str):
    """The graph after the pass, checked against the one before it, number by number."""
    old = graph_of(text)
    new, journal = old.copy(), Journal()
    layout_sink_transposes(new, journal)
    infer_types(new)
    verify(new)
    feeds = feeds_for(old)
    assert [v.name for v in new.outputs] == [v.name for v in old.outputs]
    for a, b, value in zip(run(old, feeds), run(new, feeds), new.outputs):
        assert a.shape == b.shape == value.shape and a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    return new, journal


def between(middle: str, shape: str = "2,3,4,5", consts: str = "") -> str:
    """What is under test on NHWC between two operators that need NCHW, as importers write it."""
    return f"""
        input x: f32[{shape}]
        {consts}
        "in": a = Transpose(x) {{perm=[0, 3, 1, 2]}}
        "first": b = MaxPool(a) {{kernel_shape=[1, 1]}}
        "back": c = Transpose(b) {{perm=[0, 2, 3, 1]}}
        {middle}
        "again": e = Transpose(d) {{perm=[0, 3, 1, 2]}}
        "y": y = MaxPool(e) {{kernel_shape=[1, 1]}}
        output y
    """


#: operators that keep the rank: both inner Transposes go
THROUGH = {
    "unary": ('"d": d = Sigmoid(c)', ""),
    "clip": ('"d": d = Clip(c, low, high)', "const low: f32[] = [0]\nconst high: f32[] = [6]"),
    "channel constant": ('"d": d = Add(c, k)', "const k: f32[5] = rand"),
    "row constant": ('"d": d = Mul(k, c)', "const k: f32[4,1] = rand"),
    "scalar": ('"d": d = Mul(c, k)', "const k: f32[1] = [3]"),
    "full constant": ('"d": d = Sub(c, k)', "const k: f32[2,3,4,5] = rand"),
    "itself": ('"d": d = Add(c, c)', ""),
    "prelu": ('"d": d = PRelu(c, k)', "const k: f32[1,1,5] = rand"),
    "softmax": ('"d": d = Softmax(c) {axis=-1}', ""),
    "reduce": ('"d": d = ReduceMean(c, k)', "const k: i64[2] = [1, 2]"),
    "reduce all": ('"d": d = ReduceSum(c)', ""),
    "pad": ('"d": d = Pad(c, k)', "const k: i64[8] = [0, 1, 0, 2, 0, 3, 1, 0]"),
    "slice": (
        '"d": d = Slice(c, s, t, u, v)',
        "const s: i64[2] = [0, 1]\nconst t: i64[2] = [2, 5]\nconst u: i64[2] = [1, -1]\n"
        "const v: i64[2] = [1, 2]",
    ),
    "tile": ('"d": d = Tile(c, k)', "const k: i64[4] = [1, 2, 1, 3]"),
    "concat": ('"d": d = Concat(c, c) {axis=3}', ""),
    "concat constant": ('"d": d = Concat(c, k) {axis=-1}', "const k: f32[2,3,4,2] = rand"),
    "gather": ('"d": d = Gather(c, k) {axis=3}', "const k: i64[3] = [4, 0, 2]"),
    "cumsum": ('"d": d = CumSum(c, k)', "const k: i64[] = [2]"),
    "resize": (
        '"d": d = Resize(c, _, _, k) {mode="nearest", nearest_mode="floor", '
        'coordinate_transformation_mode="asymmetric"}',
        "const k: i64[4] = [2, 6, 4, 5]",
    ),
    "quantize": (
        '"q": q = QuantizeLinear(c, s, z)\n"d": d = DequantizeLinear(q, s, z)',
        "const s: f32[] = [0.1]\nconst z: i8[] = [3]",
    ),
    "quantize channels": (
        '"q": q = QuantizeLinear(c, s, z) {axis=3}\n"d": d = DequantizeLinear(q, s, z) {axis=-1}',
        "const s: f32[5] = pos\nconst z: i8[5] = [0, 1, 2, 3, 4]",
    ),
    "where": ('"m": m = Greater(c, k)\n"d": d = Where(m, c, k)', "const k: f32[5] = rand"),
    "squeeze and unsqueeze": (
        '"m": m = ReduceMax(c, k) {keepdims=0}\n"d": d = Unsqueeze(m, k)',
        "const k: i64[1] = [1]",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", THROUGH)
def test_passes_through(name):
    middle, consts = THROUGH[name]
    new, _ = sunk(between(middle, consts=consts))
    ops = [n.op for n in new.nodes]
    assert ops.count("Transpose") == 1 and ops[0] == "Transpose"


RANK_CHANGES = {
    "reduce": '"d": d = ReduceMean(c, k) {keepdims=0}',
    "argmax": '"d": d = ArgMax(c) {axis=3, keepdims=0}',
    "squeeze": '"p": p = ReduceMean(c, k)\n"d": d = Squeeze(p, k)',
    "pick": '"d": d = Gather(c, one) {axis=1}',
}


@pytest.mark.parametrize("name", RANK_CHANGES)
def test_axes_disappear(name):
    new, _ = sunk(f"""
        input x: f32[2,5,3,4]
        const k: i64[2] = [1, 2]
        const one: i64[] = [1]
        "c": c = Transpose(x) {{perm=[0, 2, 3, 1]}}
        {RANK_CHANGES[name]}
        output d
    """)
    assert sum(n.op == "Transpose" for n in new.nodes) <= 1
    assert new.nodes[0].op != "Transpose"


def test_an_axis_disappears_from_a_cycle():
    """What is left of (1, 2, 0, 3) is not its own inverse."""
    new, _ = sunk("""
        input x: f32[2,5,3,4]
        const one: i64[] = [1]
        "c": c = Transpose(x) {perm=[1, 2, 0, 3]}
        "d": d = Gather(c, one) {axis=3}
        output d
    """)
    assert [n.op for n in new.nodes] == ["Gather", "Transpose"]


def test_split_moves_every_part():
    new, _ = sunk("""
        input x: f32[2,6,3,4]
        "c": c = Transpose(x) {perm=[0, 2, 3, 1]}
        "s": a, b = Split(c) {axis=3, num_outputs=2}
        "p": p = Transpose(a) {perm=[0, 3, 1, 2]}
        "q": q = Transpose(b) {perm=[0, 3, 1, 2]}
        "y": y = Add(p, q)
        output y
    """)
    assert [n.op for n in new.nodes] == ["Split", "Add"]
    assert new.nodes[0].attrs["axis"] == 1


def test_resize_keeps_to_spatial_axes():
    """Kernels resize spatial axes: a picture that is resized first stays in front of it NCHW."""
    new, journal = sunk("""
        input x: f32[1,4,6,3]
        const k: f32[4] = [1, 1, 2, 2]
        "a": a = Transpose(x) {perm=[0, 3, 1, 2]}
        "r": r = Resize(a, _, k)
        "y": y = Transpose(r) {perm=[0, 2, 3, 1]}
        output y
    """)
    assert [n.op for n in new.nodes] == ["Transpose", "Resize", "Transpose"]
    assert any("spatial" in e.reason for e in journal.entries)


def test_chain_merges():
    new, _ = sunk("""
        input x: f32[2,3,4,5]
        "a": a = Transpose(x) {perm=[0, 3, 1, 2]}
        "b": b = Transpose(a) {perm=[1, 0, 2, 3]}
        "y": y = Transpose(b) {perm=[3, 2, 1, 0]}
        output y
    """)
    (node,) = new.nodes
    assert node.attrs["perm"] == [2, 1, 0, 3]


def test_small_other_input_takes_the_transpose():
    """The scale of a squeeze-and-excite block, made by another path."""
    new, _ = sunk("""
        input x: f32[1,8,6,6]
        input s: f32[1,8]
        const shape: i64[4] = [1, 1, 1, 8]
        "c": c = Transpose(x) {perm=[0, 2, 3, 1]}
        "g": g = Sigmoid(s)
        "r": r = Reshape(g, shape)
        "m": m = Mul(c, r)
        "y": y = Transpose(m) {perm=[0, 3, 1, 2]}
        output y
    """)
    assert not any(n.op == "Transpose" for n in new.nodes)


def test_equally_large_other_input_is_refused():
    new, journal = sunk("""
        input x: f32[1,8,6,6]
        input z: f32[1,6,6,8]
        "c": c = Transpose(x) {perm=[0, 2, 3, 1]}
        "y": y = Add(c, z)
        output y
    """)
    assert [n.op for n in new.nodes] == ["Transpose", "Add"]
    assert any("of the same size" in e.reason for e in journal.refusals("y"))


def test_one_by_one_map_needs_no_transpose():
    new, _ = sunk("""
        input x: f32[2,7,1,1]
        const shape: i64[2] = [2, 7]
        "c": c = Transpose(x) {perm=[0, 2, 3, 1]}
        "y": y = Reshape(c, shape)
        output y
    """)
    assert [n.op for n in new.nodes] == ["Reshape"]


def test_one_by_one_output_becomes_a_view():
    new, _ = sunk("""
        input x: f32[2,7,1,1]
        "y": y = Transpose(x) {perm=[0, 2, 3, 1]}
        output y
    """)
    assert [n.op for n in new.nodes] == ["Reshape"]


def test_an_empty_part_of_a_concat_keeps_its_shape():
    """Keys of a cache that is empty in the first step, before those of the new tokens."""
    sunk("""
        input k: f32[1,5,1,4]
        input past: f32[1,1,0,4]
        "t": t = Transpose(k) {perm=[0, 2, 1, 3]}
        "y": y = Concat(past, t) {axis=-2}
        output y
    """)


@pytest.mark.parametrize("perm", ["{perm=[0, 3, 1, 2]}", ""])
def test_entry_is_transposed_before_dequantising(perm):
    """Elements are smaller there, and the DequantizeLinear stays beside its reader."""
    new, _ = sunk(f"""
        input x: i8[1,4,4,3]
        const s: f32[3] = [0.5, 1.5, 2.5]
        const z: i8[3] = [1, 2, 3]
        "d": d = DequantizeLinear(x, s, z) {{axis=3}}
        "t": t = Transpose(d) {perm}
        "y": y = MaxPool(t) {{kernel_shape=[1, 1]}}
        output y
    """)
    assert [n.op for n in new.nodes] == ["Transpose", "DequantizeLinear", "MaxPool"]


def test_dequantised_weight_is_permuted_now():
    new, _ = sunk("""
        input x: f32[1,5,2,2]
        const q: i8[5] = [1, 2, 3, 4, 5]
        const s: f32[5] = pos
        const z: i8[5] = [0, 0, 0, 0, 0]
        "c": c = Transpose(x) {perm=[0, 2, 3, 1]}
        "d": d = DequantizeLinear(q, s, z) {axis=0}
        "m": m = Mul(c, d)
        "y": y = Transpose(m) {perm=[0, 3, 1, 2]}
        output y
    """)
    assert not any(n.op == "Transpose" for n in new.nodes)


DEQUANTISED = {
    "per tensor": "const s: f32[] = [0.1]\nconst z: u8[] = [7]",
    "per column": "const s: f32[5] = pos\nconst z: u8[5] = [0, 1, 2, 3, 4]",
}


@pytest.mark.parametrize("params", DEQUANTISED)
def test_dequantised_constant_of_fewer_axes(params):
    """As positions are added to a batch of sequences; onnxruntime's numbers, too."""
    onnxruntime = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    text = f"""
        input x: f32[2,5,3]
        const q: u8[3,5] = [{", ".join(str(17 * i) for i in range(15))}]
        {DEQUANTISED[params]}
        "t": t = Transpose(x) {{perm=[0, 2, 1]}}
        "d": d = DequantizeLinear(q, s, z) {{axis=-1}}
        "a": a = Add(t, d)
        "y": y = Transpose(a) {{perm=[0, 2, 1]}}
        output y
    """
    new, _ = sunk(text)
    assert not any(n.op == "Transpose" for n in new.nodes)
    session = onnxruntime.InferenceSession(write_bytes(graph_of(text)))
    feeds = feeds_for(new)
    np.testing.assert_allclose(run(new, feeds)[0], session.run(None, feeds)[0], rtol=1e-6)


def test_shape_of_transposed_value():
    new, _ = sunk("""
        input x: f32[2,3,4,5]
        "c": c = Transpose(x) {perm=[0, 2, 3, 1]}
        "y": y = Shape(c)
        output y
    """)
    assert [n.op for n in new.nodes] == ["Shape", "Gather"]


def test_other_readers_keep_what_they_read():
    new, _ = sunk("""
        input x: f32[2,3,4,5]
        const w: f32[3,2] = rand
        "c": c = Transpose(x) {perm=[0, 2, 3, 1]}
        "a": a = Relu(c)
        "y": y = MatMul(c, w)
        output a
        output y
    """)
    assert sum(n.op == "Transpose" for n in new.nodes) == 2


def test_output_keeps_its_name_and_sources():
    new, journal = sunk("""
        input x: f32[2,3,4,5]
        "c": c = Transpose(x) {perm=[0, 2, 3, 1]}
        "y": y = Relu(c)
        output y
    """)
    assert [n.op for n in new.nodes] == ["Relu", "Transpose"]
    assert new.nodes[0].sources == ("y",) and new.outputs[0].name == "y"
    assert journal.entries


@pytest.mark.parametrize("size", ["n,8", "3,8"])
def test_an_open_value_of_fewer_axes_stays_in_place(size: str) -> None:
    """Its axes of 1 could only be written with sizes that are not known."""
    old = graph_of(f"""
        input x: f32[2,{size}]
        input p: f32[{size}]
        const w: f32[8,8] = rand
        "back": c = Transpose(x) {{perm=[1, 0, 2]}}
        "first": b = MatMul(c, w)
        "again": e = Transpose(b) {{perm=[1, 0, 2]}}
        "grid": q = Relu(p)
        "sum": d = Add(e, q)
        "turn": z = Transpose(d) {{perm=[1, 0, 2]}}
        "last": y = MatMul(z, w)
        output y
    """)
    new, journal = old.copy(), Journal()
    layout_sink_transposes(new, journal)
    verify(new)
    feeds = feeds_for(old)
    for a, b in zip(run(old, feeds), run(new, feeds)):
        np.testing.assert_array_equal(a, b)
