"""QLinearAttention: attention on bytes, whose two products are of integers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..ir import Node, TypeInfo
from ._conditions import all_of, constant, of_type
from ._core import define_op
from ._records import Cost
from ._samples import Draw, Sample
from ._scales import Scale, requantize, scales
from .attention import (
    attention,
    attention_bias,
    attention_type,
    heads_type,
    mask_fits,
    split_heads,
)

Array = np.ndarray

#: A weight is e^(−i / STEPS) for a whole i, and 0 from the LAST one on: 255 · e^(−6.25) < 0.5.
STEPS, LAST = 512, 3200
#: Weights as integers 0 … 255, one for each i.
_WEIGHTS = np.rint(255 * np.exp(-np.arange(LAST + 1) / STEPS)).astype(np.int64)
#: Sums of products of bytes fit int32.
MOST_KEYS, MOST_SIZE = 1 << 16, 1 << 15
_ATTRS = ("is_causal", "kv_num_heads", "q_num_heads", "scale")

qlinear_attention = define_op(
    "QLinearAttention",
    inputs="q q_scale q_zero_point k k_scale k_zero_point v v_scale v_zero_point "
    "y_scale y_zero_point attn_mask?",
    attrs={name: attention.attrs[name] for name in _ATTRS},
    source="ours: ONNX Attention-25 between DequantizeLinear and QuantizeLinear",
    tolerance=0,
)


@qlinear_attention.infer
def _(
    q: TypeInfo, q_scale: TypeInfo, q_zero: TypeInfo, k: TypeInfo, k_scale: TypeInfo,
    k_zero: TypeInfo, v: TypeInfo, v_scale: TypeInfo, v_zero: TypeInfo, y_scale: TypeInfo,
    y_zero: TypeInfo, mask: TypeInfo | None = None,
    *, q_num_heads: int | None, kv_num_heads: int | None, **_: Any,
) -> TypeInfo:  # fmt: skip
    return TypeInfo(y_zero.dtype, attention_type(q, v, q_num_heads, kv_num_heads).shape)


@qlinear_attention.reference
def _(
    q: Array, q_scale: Array, q_zero: Array, k: Array, k_scale: Array, k_zero: Array, v: Array,
    v_scale: Array, v_zero: Array, y_scale: Array, y_zero: Array, mask: Array | None = None,
    *, is_causal: int, kv_num_heads: int | None, q_num_heads: int | None, scale: float | None,
) -> Array:  # fmt: skip
    """p = round(255·e^t), t below 0 and 0 for the highest score: the weights before their division;
    y = clamp(round(Σ p·(v − v_zp) · v_s / y_s / Σ p) + y_zp)"""
    packed = q.ndim == 3
    of_q, of_k, of_v = scales((q_scale, q_zero, k_scale, k_zero, v_scale, v_zero))
    queries = _shifted(q, q_num_heads, of_q)
    keys, values = _shifted(k, kv_num_heads, of_k), _shifted(v, kv_num_heads, of_v)
    group = queries.shape[1] // keys.shape[1]
    keys, values = np.repeat(keys, group, 1), np.repeat(values, group, 1)
    factor = np.float32(scale if scale else 1 / math.sqrt(queries.shape[-1]))
    unit = np.float32(q_scale.reshape(())) * np.float32(k_scale.reshape(())) * factor
    weights = _weights(np.rint(queries @ keys.swapaxes(-1, -2)), unit, mask, bool(is_causal))
    total = weights.sum(-1, keepdims=True).astype(np.float32)
    ratio = np.float32(v_scale.reshape(())) / np.float32(y_scale.reshape(()))
    each = np.divide(ratio, total, out=np.zeros_like(total), where=total > 0)
    sums = np.rint(weights.astype(np.float64) @ values)
    y = requantize(sums, each, y_zero.reshape(()))
    return y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1) if packed else y


def _shifted(x: Array, heads: int | None, of_x: Scale) -> Array:
    """(B,H,L,S) of whole numbers, in float64: their products and sums are exact."""
    return of_x.shifted(split_heads(x, heads)).astype(np.float64)


def _weights(scores: Array, unit: np.float32, mask: Array | None, causal: bool) -> Array:
    """0 … 255 for each score (B,H,rows,keys) of whole numbers, 255 for a row's highest."""
    batch, _, rows, keys = scores.shape
    seen = attention_bias(
        rows, keys, batch, np.zeros(batch, np.int64), None, None,
        is_causal=int(causal), left=-1, right=-1,
    )  # fmt: skip
    top = (scores + seen).max(-1, keepdims=True)
    t = (scores - top).astype(np.float32) * unit
    if mask is not None:
        t = t + (np.where(mask, np.float32(0), -np.inf) if mask.dtype == bool else mask)
        highest = (t + seen.astype(np.float32)).max(-1, keepdims=True)
        below = t - np.where(np.isinf(highest), np.float32(0), highest)
        t = np.where(np.isneginf(highest), -np.inf, below)
    t = np.where(np.isneginf(seen), -np.inf, t).astype(np.float32)
    place = np.rint(np.clip(t * np.float32(-STEPS), 0, LAST)).astype(np.int64)
    return np.where(np.isneginf(t), 0, _WEIGHTS[place])


@qlinear_attention.cost
def _(
    q: TypeInfo, q_scale: TypeInfo, q_zero: TypeInfo, k: TypeInfo, k_scale: TypeInfo,
    k_zero: TypeInfo, v: TypeInfo, *_: Any, q_num_heads: int | None, kv_num_heads: int | None,
    **__: Any,
) -> Cost:  # fmt: skip
    assert attention._cost is not None
    heads = {"q_num_heads": q_num_heads, "kv_num_heads": kv_num_heads}
    return attention._cost(q, k, v, None, None, **heads)


def _fits(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """A mask like that of the float kernel, and sums that fit."""
    k, v = types[3], types[6]
    if k is None or v is None:
        return tr("an operand is missing")
    heads = node.attrs.get("kv_num_heads")
    keys, *sizes = (heads_type(k, heads)[2], heads_type(k, heads)[3], heads_type(v, heads)[3])
    if not isinstance(keys, int) or keys > MOST_KEYS:
        return tr("it has more than {n} keys", n=MOST_KEYS)
    if any(not isinstance(size, int) or size > MOST_SIZE for size in sizes):
        return tr("its heads have more than {n} numbers", n=MOST_SIZE)
    return mask_fits(types[11] if len(types) > 11 else None, k, heads)


qlinear_attention.kernel(
    "cpu", "i8_attention", dtype="i8,u8", accepts_pitch=True,
    why=tr("both products in integers, the softmax from a lookup table"),
    when=all_of(
        constant(1, 2, 4, 5, 7, 8, 9, 10), of_type(3, 6, dtype="i8,u8"),
        of_type(10, dtype="i8,u8"), of_type(11, dtype="f32,bool"), _fits,
    ),
)  # fmt: skip


@qlinear_attention.samples
def _(draw: Draw) -> Iterator[Sample]:
    def given(q: Array, k: Array, v: Array, mask: Array | None = None, **attrs: Any) -> Sample:
        size = 1.0 / math.sqrt(q.shape[-1])
        inputs: list[Array | None] = [q, draw.scalar(0.02 * size, np.float32), draw.zero_point(9)]
        inputs += [k, draw.scalar(0.05, np.float32), draw.zero_point(7)]
        inputs += [v, draw.scalar(0.03, np.float32), draw.zero_point(5)]
        inputs += [draw.scalar(0.02, np.float32), draw.zero_point(3), mask]
        return Sample(inputs, attrs, constant=(1, 2, 4, 5, 7, 8, 9, 10))

    for heads, rows, keys, size, v_size in (
        (1, 1, 1, 1, 1), (2, 1, 37, 16, 16), (3, 3, 65, 40, 72), (2, 5, 7, 8, 33),
        (3, 49, 49, 32, 32), (1, 19, 300, 17, 5), (2, 33, 70, 64, 64),
    ):  # fmt: skip
        q, k = draw.full(2, heads, rows, size), draw.full(2, heads, keys, size)
        v = draw.full(2, heads, keys, v_size)
        yield given(q, k, v)
        yield given(q, k, v, draw.f32(heads, rows, keys), scale=0.9)
        yield given(q, k, v, draw.f32(2, 1, 1, keys), is_causal=1)
        whole = [x.transpose(0, 2, 1, 3).reshape(2, x.shape[2], -1) for x in (q, k, v)]
        yield given(*whole, q_num_heads=heads, kv_num_heads=heads)
    q, k, v = draw.full(1, 6, 9, 16), draw.full(1, 2, 21, 16), draw.full(1, 2, 21, 16)
    yield given(q, k, v)  # three query heads read the same keys
    hidden = np.zeros((9, 21), bool)
    hidden[2:] = draw.ints(0, 2, 7, 21).astype(bool)
    yield given(q, k, v, hidden)  # two rows see nothing
    yield given(q, k, v, np.where(hidden, 0, -np.inf).astype(np.float32))
