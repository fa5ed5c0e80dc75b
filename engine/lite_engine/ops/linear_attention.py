"""Linear attention and the causal convolution before it: a state in place of all past keys."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ir import TypeInfo
from ._core import REQUIRED, define_op
from ._helpers import same_type, wide
from .activation import _sigmoid
from .attention import heads_type, split_heads

Array = np.ndarray

linear_attention = define_op(
    "LinearAttention",
    inputs="query key value past_state? decay? beta?",
    outputs="y present_state",
    attrs={
        "chunk_size": 64, "kv_num_heads": REQUIRED, "q_num_heads": REQUIRED, "scale": 0.0,
        "update_rule": "gated_delta",
    },
    source="ONNX LinearAttention-27",
)  # fmt: skip


@linear_attention.infer
def _(
    q: TypeInfo,
    k: TypeInfo,
    v: TypeInfo,
    past: TypeInfo | None,
    *_: Any,
    q_num_heads: int,
    kv_num_heads: int,
    n_outputs: int,
    **__: Any,
) -> list[TypeInfo]:
    batch, _heads, steps, d_k = heads_type(k, kv_num_heads)
    d_v = heads_type(v, kv_num_heads)[3]
    width = q_num_heads * d_v if isinstance(d_v, int) else None
    state = TypeInfo(past.dtype if past is not None else q.dtype, (batch, kv_num_heads, d_k, d_v))
    return [q.with_shape((batch, steps, width)), state][:n_outputs]


@linear_attention.reference
def _(
    query: Array,
    key: Array,
    value: Array,
    past: Array | None,
    decay: Array | None,
    beta: Array | None,
    *,
    chunk_size: int,
    kv_num_heads: int,
    q_num_heads: int,
    scale: float,
    update_rule: str,
    n_outputs: int,
) -> Any:
    """S ← e^g·S + β·k⊗(v − (e^g·S)ᵀk) step by step; o = scale·Sᵀq.

    Rule linear has neither g nor β, gated has g, delta β, gated_delta both.
    """
    q, k, v = (
        wide(split_heads(x, n))
        for x, n in ((query, q_num_heads), (key, kv_num_heads), (value, kv_num_heads))
    )
    group = q_num_heads // kv_num_heads
    factor = scale or 1 / math.sqrt(q.shape[-1])
    batch, heads, steps, d_k = k.shape
    state = (
        np.zeros((batch, heads, d_k, v.shape[-1]), k.dtype) if past is None else wide(past).copy()
    )
    y = np.zeros((batch, q_num_heads, steps, v.shape[-1]), k.dtype)
    gates = None
    if decay is not None and "gated" in update_rule:
        gates = np.exp(wide(decay)).reshape(batch, steps, heads, -1)
    for t in range(steps):
        if gates is not None:
            state = state * gates[:, t, :, :, None]
        kt, vt = k[:, :, t], v[:, :, t]
        if "delta" in update_rule:
            rate = (
                np.ones((batch, 1)) if beta is None else wide(beta).reshape(batch, steps, -1)[:, t]
            )
            vt = rate[..., None] * (vt - np.einsum("bhkv,bhk->bhv", state, kt))
        state = state + kt[..., :, None] * vt[..., None, :]
        y[:, :, t] = factor * np.einsum("bhkv,bhk->bhv", np.repeat(state, group, 1), q[:, :, t])
    packed = y.transpose(0, 2, 1, 3).reshape(batch, steps, -1).astype(query.dtype)
    return [packed, state.astype(query.dtype if past is None else past.dtype)][:n_outputs]


causal_conv = define_op(
    "CausalConvWithState",
    inputs="x weight bias? past_state?",
    outputs="y present_state",
    attrs={"activation": "none"},
    source="ONNX CausalConvWithState-27",
)


@causal_conv.infer
def _(
    x: TypeInfo,
    weight: TypeInfo,
    bias: TypeInfo | None,
    past: TypeInfo | None,
    *,
    n_outputs: int,
    **_: Any,
) -> list[TypeInfo]:
    taps = weight.dims[2]
    state = x.with_shape((*x.dims[:2], taps - 1 if isinstance(taps, int) else None))
    return [same_type(x), state][:n_outputs]


@causal_conv.reference
def _(
    x: Array,
    weight: Array,
    bias: Array | None,
    past: Array | None,
    *,
    activation: str,
    n_outputs: int,
) -> Any:
    """Depthwise convolution over past positions only; the state is the last k − 1 positions"""
    taps = weight.shape[2]
    before = np.zeros((*x.shape[:2], taps - 1), x.dtype) if past is None else past
    joined = np.concatenate([before, x], 2)
    y = sum(
        wide(joined[:, :, i : i + x.shape[2]]) * wide(weight[:, 0, i])[:, None] for i in range(taps)
    )
    y = y if bias is None else y + bias[:, None]
    y = y * _sigmoid(y) if activation in ("silu", "swish") else y
    return [np.asarray(y).astype(x.dtype), joined[:, :, joined.shape[2] - taps + 1 :]][:n_outputs]
