"""com.microsoft operators that become operators of ONNX, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lite_engine.importers import onnx as importer

from tests.ops.test_vendor_oracle import MS, both, f32, i8, run_graph, s, u8, z

#: batch, length, heads, size of a head
B, L, N, S = 2, 5, 4, 6
H = N * S


def agree(op: str, inputs: list[Any], outputs: int = 1, atol: float = 1e-5, **attrs: Any) -> None:
    for ours, theirs in both(op, inputs, outputs, MS, **attrs):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=atol)


def mask() -> np.ndarray:
    """Ones, then zeros, of another length in each row; every query sees something."""
    return (np.arange(L) < np.array([[3], [5]])).astype(np.int32)


@pytest.mark.parametrize("sides", [{}, {"transA": 1}, {"transB": 1}, {"transA": 1, "transB": 1}])
def test_fused_matmul(sides: dict[str, int]) -> None:
    a = f32(2, 4, 3) if "transA" in sides else f32(2, 3, 4)
    b = f32(2, 5, 4) if "transB" in sides else f32(2, 4, 5)
    agree("FusedMatMul", [a, b], alpha=0.5, **sides)


@pytest.mark.parametrize("bias", [False, True])
def test_skip_simplified_layer_normalization(bias: bool) -> None:
    given = [f32(B, L, H), f32(B, L, H), f32(H), f32(H) if bias else None]
    agree("SkipSimplifiedLayerNormalization", given, epsilon=1e-5)


@pytest.mark.parametrize("beta", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_skip_layer_normalization(bias: bool, beta: bool) -> None:
    given = [f32(B, L, H), f32(B, L, H), f32(H)]
    given += [f32(H) if beta else None, f32(H) if bias else None]
    agree("SkipLayerNormalization", given, epsilon=1e-5)


@pytest.mark.parametrize("op", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_the_sum_before_a_normalization(op: str) -> None:
    """The fourth output; the second and third are absent."""
    given = [f32(B, L, H), f32(1, L, H), f32(H)]
    for ours, theirs in both(op, given, ("y", "", "", "sum"), MS, epsilon=1e-5):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_simplified_layer_normalization() -> None:
    """In ONNX's own domain, where ONNX has none."""
    attrs = {"axis": -1, "epsilon": 1e-3, "stash_type": 1}
    for ours, theirs in both(
        "SimplifiedLayerNormalization", [f32(B, L, H), f32(H)], 1, "", **attrs
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("segments", [False, True])
def test_embed_layer_normalization(segments: bool, masked: bool) -> None:
    ids = np.array([[1, 2, 3, 4, 0], [5, 6, 0, 0, 1]], np.int32)
    kinds = (ids % 2).astype(np.int32)
    tables = [f32(9, H), f32(8, H), f32(2, H) if segments else None]
    given = [ids, kinds if segments else None, *tables, f32(H), f32(H)]
    given += [mask()] if masked else []
    agree("EmbedLayerNormalization", given, 2, epsilon=1e-5)


@pytest.mark.parametrize("kind", ["plain", "causal", "masked", "lengths", "biased", "scaled"])
def test_attention(kind: str) -> None:
    given: list[Any] = [f32(B, L, H), f32(H, 3 * H) / 4, f32(3 * H)]
    given += [{"masked": mask(), "lengths": mask().sum(1, dtype=np.int32)}.get(kind), None]
    given += [f32(B, N, L, L) if kind == "biased" else None]
    more = {"causal": {"unidirectional": 1}, "scaled": {"scale": 0.3}}.get(kind, {})
    agree("Attention", given, num_heads=N, **more)


@pytest.mark.parametrize("kind", ["plain", "masked", "lengths"])
def test_integer_attention(kind: str) -> None:
    given: list[Any] = [u8(B, L, H), i8(H, 3 * H), f32(3 * H), s(0.02), s(0.01)]
    given += [
        {"masked": mask(), "lengths": mask().sum(1, dtype=np.int32)}.get(kind),
        z(120),
        z(0, np.int8),
    ]
    agree("QAttention", given, num_heads=N)


@pytest.mark.parametrize("kind", ["plain", "bias", "masked", "added"])
def test_multi_head_attention(kind: str) -> None:
    given: list[Any] = [f32(B, 3, H), f32(B, L, H), f32(B, L, H)]
    given += [f32(3 * H) if kind == "bias" else None, mask() if kind == "masked" else None]
    given += [f32(B, N, 3, L) if kind == "added" else None]
    agree("MultiHeadAttention", given, num_heads=N)


def test_multi_head_attention_goes_on_from_a_past() -> None:
    past = [f32(B, N, 4, S), f32(B, N, 4, S)]
    given = [f32(B, 1, H), f32(B, 1, H), f32(B, 1, H), None, None, None, *past]
    agree("MultiHeadAttention", given, 3, num_heads=N)


#: room of the past, new tokens, length of each row, the longest one, rotary tables, attributes
GROUPS: dict[str, tuple[int | None, int, list[int], int, bool, dict[str, Any]]] = {
    "prompt": (None, 5, [5, 5], 5, False, {}),
    "prompt, turned": (None, 5, [5, 5], 5, True, {}),
    "prompt, padded": (None, 5, [3, 5], 5, True, {}),
    "prompt, window": (None, 6, [6, 6], 6, False, {"local_window_size": 3}),
    "prompt, capped": (None, 5, [5, 5], 5, False, {"softcap": 2.0, "scale": 0.3}),
    "next": (4, 1, [5, 5], 5, True, {}),
    "next, interleaved": (4, 1, [5, 5], 5, True, {"rotary_interleaved": 1}),
    "next, window": (6, 1, [7, 7], 7, False, {"local_window_size": 3}),
    "next, rows of two lengths": (4, 1, [3, 5], 5, True, {}),
    "next, room to spare": (9, 1, [6, 4], 6, True, {}),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", GROUPS)
def test_group_query_attention(name: str, packed: bool) -> None:
    """Four heads of queries, two of keys. onnxruntime leaves what is past a row's length open."""
    room, new, lengths, total, turned, attrs = GROUPS[name]
    size, heads, kv = 16, 4, 2
    qkv: list[Any] = [f32(B, new, heads * size), f32(B, new, kv * size), f32(B, new, kv * size)]
    qkv = [np.concatenate(qkv, 2), None, None] if packed else qkv
    past = [None, None] if room is None else [f32(B, kv, room, size), f32(B, kv, room, size)]
    given = [*qkv, *past, np.array(lengths, np.int32) - 1, np.array(total, np.int32)]
    if turned:
        given += [f32(16, size // 2), f32(16, size // 2)]
    attrs = {**attrs, "num_heads": heads, "kv_num_heads": kv, "do_rotary": int(turned)}
    found = both("GroupQueryAttention", given, 3, MS, **attrs)
    for at, (ours, theirs) in enumerate(found):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
        for row, length in enumerate(lengths):
            known = slice(length if at or room is None else None)
            where = (row, known) if at == 0 else (row, slice(None), known)
            np.testing.assert_allclose(ours[where], theirs[where], rtol=1e-4, atol=1e-5)


def test_channels_last_convolution() -> None:
    """onnxruntime has the operator for GPUs only: its Conv between transposes is the oracle."""
    from onnx import TensorProto, helper

    x, w, bias = f32(1, 7, 6, 4), f32(6, 2, 3, 3), f32(6)
    attrs = {"group": 2, "pads": [1, 1, 1, 1], "strides": [2, 1]}
    node = helper.make_node("NhwcConv", ["x", "w", "b"], ["y"], domain=MS, **attrs)
    infos = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape)
        for n, a in (("x", x), ("w", w), ("b", bias))
    ]
    graph = helper.make_graph([node], "g", infos, [helper.make_empty_tensor_value_info("y")])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)]
    model = helper.make_model(graph, opset_imports=opsets).SerializeToString()
    (ours,) = run_graph(importer.read_bytes(model), [x, w, bias])
    ((_, wanted),) = both("Conv", [x.transpose(0, 3, 1, 2), w, bias], 1, "", **attrs)
    np.testing.assert_allclose(ours, wanted.transpose(0, 2, 3, 1), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("at", ["first", "each"])
def test_rotary_embedding(interleaved: int, at: str) -> None:
    cos, sin = f32(16, S // 2), f32(16, S // 2)
    places = np.array([3]) if at == "first" else np.array([[0, 3, 1, 2, 5], [9, 8, 7, 6, 5]])
    agree("RotaryEmbedding", [f32(B, L, H), places, cos, sin], interleaved=interleaved)


def test_channels_last() -> None:
    x, w = u8(1, 7, 7, 4), i8(6, 4, 3, 3)
    scales = [s(0.02), z(120), w, np.full(6, 0.01, np.float32), np.zeros(6, np.int8)]
    given = [x, *scales, s(0.05), z(100)]
    agree("QLinearConv", given, channels_last=1, pads=[1, 1, 1, 1], atol=1)
    agree("NhwcMaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    given = [x, s(0.02), z(120), s(0.015), z(100)]
    agree("QLinearGlobalAveragePool", given, channels_last=1, atol=1)
    window = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    agree("QLinearAveragePool", given, channels_last=1, atol=1, **window)


def test_integer_where() -> None:
    choice = np.array([[True, False, True], [False, False, True]])
    given = [choice, u8(2, 3), s(0.1), z(3), u8(2, 3), s(0.2), z(9), s(0.15), z(7)]
    agree("QLinearWhere", given, atol=1)


@pytest.mark.parametrize("op", ["Attention", "MultiHeadAttention", "GroupQueryAttention"])
def test_heads_that_are_not_counted(op: str) -> None:
    """A damaged file: the operator keeps its name, and the support table tells of it."""
    from onnx import TensorProto, helper

    names = [f"x{i}" for i in range(7)]
    node = helper.make_node(op, names[: 2 if op == "Attention" else 7], ["y"], domain=MS)
    shapes = [[B, L, H], [H, 3 * H] if op == "Attention" else [B, L, H], [B, L, H]]
    infos = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, d)
        for n, d in zip(node.input, [*shapes, *[[B, 1, 1, 1]] * 4])
    ]
    out = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [B, L, H])]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MS, 1)]
    model = helper.make_model(helper.make_graph([node], "g", infos, out), opset_imports=opsets)
    (made,) = importer.read_bytes(model.SerializeToString()).nodes
    assert made.op == f"{MS}::{op}"


def test_forms_that_stay_keep_their_names() -> None:
    """A mask of starts and ends is told of as the operator that it belongs to."""
    from onnx import TensorProto, helper

    node = helper.make_node(
        "Attention", ["x", "w", "b", "m"], ["y"], domain="com.microsoft", num_heads=N
    )
    shapes = {"x": [B, L, H], "w": [H, 3 * H], "b": [3 * H], "m": [2 * B]}
    infos = [
        helper.make_tensor_value_info(k, TensorProto.INT32 if k == "m" else TensorProto.FLOAT, d)
        for k, d in shapes.items()
    ]
    out = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [B, L, H])]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph([node], "g", infos, out), opset_imports=opsets)
    (made,) = importer.read_bytes(model.SerializeToString()).nodes
    assert made.op == "com.microsoft::Attention"
