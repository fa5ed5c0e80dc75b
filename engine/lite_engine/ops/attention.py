"""Attention and rotary embedding."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Dim, DType, Node, TypeInfo
from ._conditions import absent, all_of, has_elements, of_type
from ._core import define_op
from ._helpers import same_type, wide
from ._records import Cost
from ._samples import Draw, Sample
from .softmax import softmax

Array = np.ndarray

attention = define_op(
    "Attention",
    integer_form="attention",
    quantized="operands",
    inputs="q k v attn_mask? past_key? past_value? nonpad_kv_seqlen?",
    outputs="y present_key present_value qk_matmul_output",
    attrs={
        "is_causal": 0,
        "kv_num_heads": None,
        "left_window_size": -1,
        "q_num_heads": None,
        "qk_matmul_output_mode": 0,
        "right_window_size": -1,
        "scale": None,
        "softcap": 0.0,
        "softmax_precision": None,
    },
    source="ONNX Attention-25",
)


def heads_type(x: TypeInfo, heads: int | None) -> tuple[Dim, Dim, Dim, Dim]:
    """(batch, heads, length, size) of a rank-4 input or a packed rank-3 one."""
    if x.rank == 4:
        return x.dims  # type: ignore[return-value]
    if x.rank != 3 or not heads:
        raise ShapeError(tr("rank {rank} needs q_num_heads and kv_num_heads", rank=x.rank))
    batch, length, width = x.dims
    return batch, heads, length, width // heads if isinstance(width, int) else None


def attention_type(
    q: TypeInfo, v: TypeInfo, q_num_heads: int | None, kv_num_heads: int | None
) -> TypeInfo:
    """Type of the result: that of q, with the size of v."""
    batch, heads, rows, _ = heads_type(q, q_num_heads)
    size = heads_type(v, kv_num_heads)[3]
    if q.rank == 4:
        return q.with_shape((batch, heads, rows, size))
    packed = heads * size if isinstance(heads, int) and isinstance(size, int) else None
    return q.with_shape((batch, rows, packed))


@attention.infer
def _(
    q: TypeInfo,
    k: TypeInfo,
    v: TypeInfo,
    mask: TypeInfo | None,
    past_key: TypeInfo | None,
    past_value: TypeInfo | None,
    lengths: TypeInfo | None,
    *,
    q_num_heads: int | None,
    kv_num_heads: int | None,
    n_outputs: int,
    **_: Any,
) -> list[TypeInfo]:
    batch, heads, rows, _size = heads_type(q, q_num_heads)
    kv_heads, columns, k_size = heads_type(k, kv_num_heads)[1:]
    v_size = heads_type(v, kv_num_heads)[3]
    past = past_key.dims[2] if past_key is not None else 0
    total = past + columns if isinstance(past, int) and isinstance(columns, int) else None
    y = attention_type(q, v, q_num_heads, kv_num_heads)
    present_key = k.with_shape((batch, kv_heads, total, k_size))
    present_value = v.with_shape((batch, kv_heads, total, v_size))
    return [y, present_key, present_value, q.with_shape((batch, heads, rows, total))][:n_outputs]


def split_heads(x: Array, heads: int | None) -> Array:
    """(B,L,H·S) → (B,H,L,S)"""
    if x.ndim == 4:
        return x
    if not heads:
        raise ShapeError(tr("packed inputs need q_num_heads and kv_num_heads"))
    return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)


def attention_bias(
    rows: int,
    columns: int,
    batch: int,
    offset: Array,
    mask: Array | None,
    lengths: Array | None,
    *,
    is_causal: int,
    left: int,
    right: int,
) -> Array:
    """What is added to the scores (B,H,rows,columns): 0 where a key may be seen, −∞ elsewhere."""
    key = np.arange(columns)
    at = offset.reshape(-1, 1, 1, 1) + np.arange(rows).reshape(1, 1, -1, 1)
    seen = np.ones((batch, 1, rows, columns), bool)
    if is_causal:
        seen &= key <= at
    if left >= 0:
        seen &= key >= at - left
    if right >= 0:
        seen &= key <= at + right
    if lengths is not None:
        seen &= key < lengths.reshape(-1, 1, 1, 1)
    bias = np.where(seen, 0.0, -np.inf)
    if mask is None:
        return bias
    if mask.shape[-1] < columns:  # keys past the mask are padding
        fill = False if mask.dtype == bool else -np.inf
        widths = [(0, 0)] * (mask.ndim - 1) + [(0, columns - mask.shape[-1])]
        mask = np.pad(mask, widths, constant_values=fill)
    return bias + (np.where(mask, 0.0, -np.inf) if mask.dtype == bool else mask)


@attention.reference
def _(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None,
    past_key: Array | None,
    past_value: Array | None,
    lengths: Array | None,
    *,
    is_causal: int,
    kv_num_heads: int | None,
    left_window_size: int,
    q_num_heads: int | None,
    qk_matmul_output_mode: int,
    right_window_size: int,
    scale: float | None,
    softcap: float,
    softmax_precision: DType | None,
    n_outputs: int,
) -> Any:
    """softmax(cap(q·kᵀ·scale) + bias)·v per head; k and v heads are shared by groups of q heads"""
    packed, dtype = q.ndim == 3, q.dtype
    q, k, v = (
        split_heads(q, q_num_heads),
        split_heads(k, kv_num_heads),
        split_heads(v, kv_num_heads),
    )
    offset = np.zeros(q.shape[0], np.int64)
    if past_key is not None and past_value is not None:
        offset += past_key.shape[2]
        k, v = np.concatenate([past_key, k], 2), np.concatenate([past_value, v], 2)
    elif lengths is not None:
        offset = lengths.astype(np.int64) - q.shape[2]
    present = (k, v)
    group = q.shape[1] // k.shape[1]
    if group * k.shape[1] != q.shape[1]:
        raise ShapeError(
            tr("{shape} query heads do not share {key} key heads", shape=q.shape[1], key=k.shape[1])
        )
    keys, values = np.repeat(wide(k), group, 1), np.repeat(wide(v), group, 1)
    factor = scale if scale else 1 / math.sqrt(q.shape[-1])
    root = np.asarray(math.sqrt(abs(factor)), keys.dtype)
    scores = np.matmul(wide(q) * np.copysign(root, factor), keys.swapaxes(-1, -2) * root)
    stages = [scores]
    scores = softcap * np.tanh(scores / softcap) if softcap else scores
    stages.append(scores)
    bias = attention_bias(
        q.shape[2], k.shape[2], q.shape[0], offset, mask, lengths,
        is_causal=is_causal, left=left_window_size, right=right_window_size,
    )  # fmt: skip
    scores = scores + bias.astype(scores.dtype)
    stages.append(scores)
    precise = softmax_precision.np if softmax_precision not in (None, DType.BF16) else scores.dtype
    chance = np.nan_to_num(
        softmax(scores.astype(precise), -1), nan=0.0
    )  # a row that sees nothing gives 0
    chance = chance.astype(scores.dtype)
    stages.append(chance)
    y = np.matmul(chance, values)
    y = y.transpose(0, 2, 1, 3).reshape(y.shape[0], y.shape[2], -1) if packed else y
    return [y.astype(dtype), *present, stages[qk_matmul_output_mode].astype(dtype)][:n_outputs]


@attention.cost
def _(
    q: TypeInfo,
    k: TypeInfo,
    v: TypeInfo,
    mask: TypeInfo | None,
    past_key: TypeInfo | None,
    *_: Any,
    q_num_heads: int | None,
    kv_num_heads: int | None,
    **__: Any,
) -> Cost:
    batch, heads, rows, size = (int(d or 0) for d in heads_type(q, q_num_heads))  # type: ignore[call-overload]
    columns = int(heads_type(k, kv_num_heads)[2] or 0)  # type: ignore[call-overload]
    columns += int(past_key.dims[2] or 0) if past_key is not None else 0  # type: ignore[call-overload]
    v_size = int(heads_type(v, kv_num_heads)[3] or 0)  # type: ignore[call-overload]
    scores = batch * heads * rows * columns
    return Cost(macs=scores * (size + v_size), flops=12 * scores)


def expressible(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """Whole keys and values, one output, fixed sizes."""
    if len(node.outputs) > 1:
        return tr("it has more than one output")
    if any(node.attrs.get(f"{side}_window_size", -1) >= 0 for side in ("left", "right")):
        return tr("it has a window")
    k, mask = types[1], types[3] if len(types) > 3 else None
    if node.attrs.get("softmax_precision") not in (None, DType.F32):
        return tr("its softmax has another precision")
    return True if k is None else mask_fits(mask, k, node.attrs.get("kv_num_heads"))


def why_not_integer(node: Node) -> str:
    """Why its products are not computed in integers, "" when they can be: one output, no past keys,
    nothing between the scores and the softmax but a scale and a mask."""
    if len(node.outputs) > 1:
        return tr("it has more than one output")
    if any(node.input(i) is not None for i in (4, 5, 6)):
        return tr("it has past keys, or lengths")
    if node.attrs.get("softcap"):
        return tr("its scores pass through a soft cap")
    if any(node.attrs.get(f"{side}_window_size", -1) >= 0 for side in ("left", "right")):
        return tr("it has a window")
    if node.attrs.get("softmax_precision") is not None:
        return tr("the model gives the precision of its softmax")
    return ""


def mask_fits(mask: TypeInfo | None, k: TypeInfo, kv_num_heads: int | None) -> bool | str:
    """Rank 2 to 4, a column for each key."""
    if mask is None:
        return True
    if not 2 <= mask.rank <= 4:
        return tr("its mask has rank {rank}", rank=mask.rank)
    if mask.dims[-1] != heads_type(k, kv_num_heads)[2]:
        return tr("its mask has no column for each key")
    return True


_on_cpu = all_of(
    absent(4, 5, 6), of_type(1, 2), of_type(3, dtype="f32,bool"), expressible, has_elements(1)
)
attention.kernel(
    "cpu",
    "f32_attention",
    accepts_pitch=True,
    when=_on_cpu,
    why=tr("keys are read in blocks that fit the cache; the score matrix is never stored"),
)
attention.kernel(
    "cpu",
    "bf16_attention",
    dtype="f32,bf16",
    mixed="q k v",
    accepts_pitch=True,
    when=_on_cpu,
    rank=-1,
    why=tr("bf16 products, float32 sums: two multiplications per lane"),
    precision="bf16",
)
attention.kernel(
    "opencl",
    "attention",
    dtype="f32,f16",
    accepts_pitch=True,
    when=all_of(absent(4, 5, 6), of_type(3, dtype="f32,f16"), expressible),
    why=tr("keys are read in blocks that fit the cache; the score matrix is never stored"),
)


@attention.samples
def _(draw: Draw) -> Iterator[Sample]:
    for heads, rows, keys, size, v_size in (
        (1, 1, 1, 1, 1), (2, 1, 37, 16, 16), (3, 3, 65, 40, 72), (2, 5, 7, 8, 33),
        (3, 49, 49, 32, 32), (1, 19, 300, 17, 5), (2, 70, 33, 64, 64),
    ):  # fmt: skip
        q, k, v = (
            draw(2, heads, rows, size),
            draw(2, heads, keys, size),
            draw(2, heads, keys, v_size),
        )
        yield Sample([q, k, v], constant=())
        yield Sample([q, k, v, draw(heads, rows, keys)], {"scale": 0.3}, constant=())
        causal = {"is_causal": 1, "softcap": 5.0}
        yield Sample([q, k, v, draw(2, 1, 1, keys)], causal, constant=())
        packed = [x.transpose(0, 2, 1, 3).reshape(2, x.shape[2], -1) for x in (q, k, v)]
        yield Sample(packed, {"q_num_heads": heads, "kv_num_heads": heads}, constant=())
    q, k, v = draw(1, 6, 9, 16), draw(1, 2, 21, 16), draw(1, 2, 21, 16)
    yield Sample([q, k, v], constant=())  # three query heads read the same keys
    hidden = np.zeros((9, 21), bool)
    hidden[2:] = draw.ints(0, 2, 7, 21).astype(bool)
    yield Sample([q, k, v, hidden], constant=())  # two rows see nothing
    yield Sample([q, k, v, np.where(hidden, 0, -np.inf).astype(np.float32)], constant=())
    long = [draw(1, 1, n, 128) for n in (15, 5000, 5000)]  # several blocks of keys
    yield Sample([*long, draw(15, 5000)], constant=())
    yield Sample(long, {"is_causal": 1}, constant=())
    yield Sample([q, k, v], {"scale": -0.4}, constant=())  # the least product weighs most
    wide = [draw(1, n, 1024) for n in (17, 9, 9)]  # rows 4 KiB apart
    yield Sample(wide, {"q_num_heads": 16, "kv_num_heads": 16}, constant=())


# ---- rotary embedding

rotary = define_op(
    "RotaryEmbedding",
    inputs="x cos_cache sin_cache position_ids?",
    attrs={"interleaved": 0, "num_heads": None, "rotary_embedding_dim": 0},
    source="ONNX RotaryEmbedding-23",
)
rotary.infer(same_type)


@rotary.reference
def _(
    x: Array,
    cos: Array,
    sin: Array,
    positions: Array | None,
    *,
    interleaved: int,
    num_heads: int | None,
    rotary_embedding_dim: int,
) -> Array:
    """Turns pairs of each head's first `rotary_embedding_dim` elements by their position's angle"""
    heads = split_heads(x, num_heads)  # (B,H,L,S)
    width = rotary_embedding_dim or heads.shape[-1]
    cos, sin = (c if positions is None else c[positions] for c in (cos, sin))  # (B,L,width/2)
    cos, sin = cos[:, None], sin[:, None]
    turned, rest = heads[..., :width], heads[..., width:]
    if interleaved:
        a, b = turned[..., 0::2], turned[..., 1::2]
    else:
        a, b = np.split(turned, 2, -1)
    real, imaginary = cos * a - sin * b, sin * a + cos * b
    if interleaved:
        turned = np.stack([real, imaginary], -1).reshape(turned.shape)
    else:
        turned = np.concatenate([real, imaginary], -1)
    y = np.concatenate([turned, rest], -1).astype(x.dtype)
    return y if x.ndim == 4 else y.transpose(0, 2, 1, 3).reshape(x.shape)


rotary.cost(lambda x, *_, **__: Cost(flops=3 * x.size))
