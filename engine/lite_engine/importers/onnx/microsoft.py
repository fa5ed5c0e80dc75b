"""com.microsoft operators that onnxruntime's optimizer and quantizer write, as operators of ONNX.

    @upgrades("com.microsoft::FusedMatMul")
    def _(call, emit): ...

A form that is not taken apart keeps its name, and the support table tells of it.
Source: ContribOperators.md of onnxruntime.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir import Dim, DType, Value
from .call import Call, Emit
from .upgrade import upgrades


def _named(call: Call, word: str) -> Value:
    """An inner value, named after the node's first output."""
    return Value(f"{call.outputs[0].name}.{word}")


def become(call: Call, op: str, inputs: list[Value | None], **attrs: Any) -> None:
    call.op, call.inputs, call.attrs = op, inputs, attrs


@upgrades("com.microsoft::FusedMatMul", "com.microsoft::TransposeMatMul")
def _(call: Call, emit: Emit) -> None:
    """alpha · op(A) · op(B); `transBatch` moves the first axis behind the last but one"""
    attrs, sides = call.attrs, list(call.inputs[:2])
    ranks = [call.rank(0), call.rank(1)]
    if any(attrs.get(k) for k in ("transBatchA", "transBatchB")) or None in ranks:
        return
    for i, key in enumerate(("transA", "transB")):
        rank = ranks[i] or 0
        if attrs.get(key) and rank > 1:
            perm = [*range(rank - 2), rank - 1, rank - 2]
            sides[i] = emit("Transpose", [sides[i]], {"perm": perm})
    alpha = attrs.get("alpha", 1.0)
    if alpha == 1.0:
        become(call, "MatMul", sides)
    else:
        product = emit("MatMul", sides)
        become(call, "Mul", [product, call.constant("alpha", alpha, np.float32)])


def _sum(call: Call, emit: Emit, values: list[Value | None]) -> Value:
    given = [v for v in values if v is not None]
    total = given[0]
    for value in given[1:]:
        total = emit("Add", [total, value])
    return total


@upgrades(
    "com.microsoft::SkipLayerNormalization", "com.microsoft::SkipSimplifiedLayerNormalization"
)
def _(call: Call, emit: Emit) -> None:
    """LayerNormalization or RMSNormalization of input + skip + bias, and that sum as the fourth
    output"""
    simplified = call.op.endswith("SkipSimplifiedLayerNormalization")
    first, second, bias = call.input(0), call.input(1), call.input(3 if simplified else 4)
    if second is not None and second.producer is not None and second.producer.op == "MatMul":
        first, second = second, first
    total = _sum(call, emit, [first, bias, second])  # a product takes in a bias that is next to it
    if len(call.outputs) > 3:
        emit("Identity", [total], {}, [call.outputs[3]])
    attrs = {"axis": -1, "epsilon": call.attrs.get("epsilon", 1e-12)}
    call.outputs = call.outputs[:1]
    if simplified:
        become(call, "RMSNormalization", [total, call.input(2)], **attrs)
    else:
        become(call, "LayerNormalization", [total, call.input(2), call.input(3)], **attrs)


@upgrades("SimplifiedLayerNormalization")
def _(call: Call, emit: Emit) -> None:
    """RMSNormalization: onnxruntime writes its own operator as one of ONNX's domain"""
    attrs = {key: call.attrs[key] for key in ("axis", "epsilon") if key in call.attrs}
    call.outputs = call.outputs[:1]
    become(call, "RMSNormalization", [call.input(0), call.input(1)], **attrs)


@upgrades("com.microsoft::EmbedLayerNormalization")
def _(call: Call, emit: Emit) -> None:
    """LayerNormalization of the sum of word, position and segment embeddings"""
    ids, segments, words, positions, kinds, gamma, beta, mask, where = (
        call.input(i) for i in range(9)
    )
    if where is None:
        shape = None if ids is None else ids.shape
        if shape is None or len(shape) != 2 or not isinstance(shape[1], int):
            return
        where = call.constant("positions", [range(shape[1])])
    if len(call.outputs) > 1 and mask is not None:  # the length of each row
        counted = emit("Cast", [mask], {"to": DType.I32})
        axes = call.constant("mask_axis", [1])
        emit("ReduceSum", [counted, axes], {"keepdims": 0}, [call.outputs[1]])
    elif len(call.outputs) > 1:
        zeros = emit("Shape", [ids], {"start": 0, "end": 1})
        fill = np.zeros(1, np.int32)
        emit("ConstantOfShape", [zeros], {"value": fill}, [call.outputs[1]])
    parts: list[Value | None] = [emit("Gather", [words, ids]), emit("Gather", [positions, where])]
    if segments is not None:
        parts.append(emit("Gather", [kinds, segments]))
    total = _sum(call, emit, parts)
    if len(call.outputs) > 2:
        emit("Identity", [total], {}, [call.outputs[2]])
    epsilon = call.attrs.get("epsilon", 1e-12)
    call.outputs = call.outputs[:1]
    become(call, "LayerNormalization", [total, gamma, beta], axis=-1, epsilon=epsilon)


def _is_mask(mask: Value | None, batch: Dim) -> bool:
    """Whether it is one of `_mask_bias`, or none. A vector may also hold starts and ends."""
    if mask is None or mask.shape is None:
        return mask is None
    lengths = len(mask.shape) == 1 and batch is not None and mask.shape[0] == batch
    return lengths or len(mask.shape) in (2, 3)


def _mask_bias(call: Call, emit: Emit, mask: Value, keys: Value | None, fill: float) -> Value:
    """A mask of ones (seen) and zeros, (B, T) or (B, S, T), or the number of keys (B, T, …) that
    each row has, as what is added to the scores."""
    rank = len(mask.shape or ())
    if rank == 1:
        count = emit("Squeeze", [emit("Shape", [keys], {"start": 1, "end": 2})])
        index = emit("Range", [call.constant("from", 0), count, call.constant("by", 1)])
        ends = emit("Unsqueeze", [mask, call.constant("ends_axis", [1])])
        mask = emit("Less", [index, emit("Cast", [ends], {"to": DType.I64})])
    axes = [1] if rank == 3 else [1, 2]
    seen = emit("Cast", [mask], {"to": DType.F32})
    seen = emit("Unsqueeze", [seen, call.constant("mask_axes", axes)])
    hidden = emit("Sub", [call.constant("one", 1.0, np.float32), seen])
    return emit("Mul", [hidden, call.constant("fill", fill, np.float32)])


def _attend(
    call: Call, emit: Emit, qkv: list[Value | None], mask: Value | None, bias: Value | None,
    past: list[Value | None],
) -> None:  # fmt: skip
    """The call becomes an Attention of q, k and v (B, L, H)."""
    attrs, heads = call.attrs, call.attrs["num_heads"]
    if mask is not None:
        added = _mask_bias(call, emit, mask, qkv[1], attrs.get("mask_filter_value", -10000.0))
        bias = added if bias is None else emit("Add", [added, bias])
    more = {"scale": attrs["scale"]} if attrs.get("scale") else {}
    become(
        call, "Attention", [*qkv, bias, *past], q_num_heads=heads, kv_num_heads=heads,
        is_causal=attrs.get("unidirectional", 0), **more,
    )  # fmt: skip


def _split(call: Call, emit: Emit, packed: Value, sizes: list[int]) -> list[Value | None]:
    outs = [_named(call, word) for word in ("q", "k", "v")]
    emit("Split", [packed, call.constant("sizes", sizes)], {"axis": -1}, outs)
    return list(outs)


def _batch(x: Value | None) -> Dim:
    return x.shape[0] if x is not None and x.shape else None


def _columns(weights: Value | None) -> int | None:
    shape = None if weights is None else weights.shape
    last = shape[-1] if shape else None
    return last if isinstance(last, int) else None


@upgrades("com.microsoft::Attention")
def _(call: Call, emit: Emit) -> None:
    """One product for q, k and v; without a past"""
    x, weights, bias, mask = (call.input(i) for i in range(4))
    width = _columns(weights)
    sizes = call.attrs.get("qkv_hidden_sizes") or ([width // 3] * 3 if width else None)
    if (
        sizes is None
        or not _is_mask(mask, _batch(x))
        or call.input(4) is not None
        or len(call.outputs) > 1
    ):
        return
    if not call.attrs.get("num_heads") or call.attrs.get("do_rotary") or call.input(6) is not None:
        return
    packed = emit("MatMul", [x, weights])
    packed = packed if bias is None else emit("Add", [packed, bias])
    _attend(call, emit, _split(call, emit, packed, sizes), mask, call.input(5), [])


@upgrades("com.microsoft::QAttention")
def _(call: Call, emit: Emit) -> None:
    """Attention on an integer product: exact in integers, so that of the numbers they stand for"""
    x, weights, bias, x_scale, w_scale, mask, x_zero, w_zero, past = (
        call.input(i) for i in range(9)
    )
    width = _columns(weights)
    if (
        not call.attrs.get("num_heads")
        or width is None
        or not _is_mask(mask, _batch(x))
        or past is not None
        or len(call.outputs) > 1
    ):
        return
    real = emit("DequantizeLinear", [x, x_scale, x_zero])
    table = emit("DequantizeLinear", [weights, w_scale, w_zero])
    packed = emit("Add", [emit("MatMul", [real, table]), bias])
    _attend(call, emit, _split(call, emit, packed, [width // 3] * 3), mask, None, [])


@upgrades("com.microsoft::MultiHeadAttention")
def _(call: Call, emit: Emit) -> None:
    """q, k and v (B, L, H), each with its part of the bias; keys of before as past"""
    qkv: list[Value | None] = [call.input(i) for i in range(3)]
    bias, mask, added = call.input(3), call.input(4), call.input(5)
    past = [call.input(6), call.input(7)]
    if any(v is None or v.shape is None or len(v.shape) != 3 for v in qkv):
        return
    if call.input(8) is not None or len(call.outputs) > 3:
        return
    if not call.attrs.get("num_heads") or not _is_mask(mask, _batch(qkv[0])):
        return
    if bias is not None:
        sizes = [_columns(v) for v in qkv]
        if None in sizes:
            return
        parts = _split(call, emit, bias, [s or 0 for s in sizes])
        qkv = [emit("Add", [x, b]) for x, b in zip(qkv, parts)]
    _attend(call, emit, qkv, mask, added, past if past[0] is not None else [])


@upgrades("com.microsoft::RotaryEmbedding")
def _(call: Call, emit: Emit) -> None:
    """Positions come before the tables, and one number counts from there"""
    x, at, cos, sin = (call.input(i) for i in range(4))
    attrs = {k: v for k, v in call.attrs.items() if k not in ("is_packed_batching", "scale")}
    shape = None if x is None else x.shape
    if at is None or at.shape is None or shape is None or call.attrs.get("is_packed_batching"):
        return
    if len(at.shape) < 2:
        batch, length = shape[0], shape[-2]
        if not isinstance(batch, int) or not isinstance(length, int):
            return
        steps = call.constant("steps", np.tile(np.arange(length), (batch, 1)))
        at = emit("Add", [steps, at])
    if len(shape) == 3 and not attrs.get("num_heads"):
        width, table = shape[2], None if cos is None or cos.shape is None else cos.shape[-1]
        if not isinstance(width, int) or not isinstance(table, int):
            return
        attrs["num_heads"] = width // (2 * table)
    become(call, "RotaryEmbedding", [x, cos, sin, at], **attrs)


def _around(call: Call, emit: Emit, op: str, places: tuple[int, ...]) -> None:
    """A channels-last operator as the same one between transposes; `places` are its images."""
    rank = call.rank()
    if rank is None:
        return
    inward, back = [0, rank - 1, *range(1, rank - 1)], [0, *range(2, rank), 1]
    inputs = list(call.inputs)
    for i in places:
        if call.input(i) is not None:
            inputs[i] = emit("Transpose", [inputs[i]], {"perm": inward})
    y = emit(op, inputs, {k: v for k, v in call.attrs.items() if k != "channels_last"})
    become(call, "Transpose", [y], perm=back)


@upgrades("com.microsoft::NhwcMaxPool")
def _(call: Call, emit: Emit) -> None:
    _around(call, emit, "MaxPool", (0,))


@upgrades("com.microsoft::NhwcConv")
def _(call: Call, emit: Emit) -> None:
    """Weights (O, C/g, *kernel), as those of Conv"""
    _around(call, emit, "Conv", (0,))


@upgrades("QLinearConv", "QLinearAveragePool", "QLinearGlobalAveragePool")
def _(call: Call, emit: Emit) -> None:
    if call.attrs.pop("channels_last", 0):
        _around(call, emit, call.op, (0,))


@upgrades("com.microsoft::QLinearWhere")
def _(call: Call, emit: Emit) -> None:
    """Where on the numbers that the integers stand for"""
    condition, *rest = (call.input(i) for i in range(9))
    x, y = emit("DequantizeLinear", rest[0:3]), emit("DequantizeLinear", rest[3:6])
    become(call, "QuantizeLinear", [emit("Where", [condition, x, y]), *rest[6:8]])
