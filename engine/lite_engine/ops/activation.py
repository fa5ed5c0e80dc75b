"""Activations. The unary ones are operators that may be fused as `activation` of another."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir import TypeInfo
from ._conditions import attr
from ._core import Cost, OpDef, define_op, get_op
from ._helpers import float_kernels, same_type, typed, wide

#: Operators that may be fused as the `activation` attribute of another one.
FUSABLE = (
    "Relu",
    "Clip",
    "LeakyRelu",
    "Sigmoid",
    "Tanh",
    "HardSigmoid",
    "HardSwish",
    "Silu",
    "Gelu",
    "Elu",
    "Softplus",
    "Mish",
)


def _unary(
    name: str, fn: Callable[..., np.ndarray], flops: int, source: str, **attrs: Any
) -> OpDef:
    op = define_op(name, inputs="x", attrs=attrs, layout="elementwise", source=source)
    op.infer(same_type)
    op.reference(fn)
    op.cost(lambda x, **_: Cost(flops=flops * x.size))
    plain = attr("alpha", 1.0) if name == "Swish" else None  # the native one has no alpha
    float_kernels(op, "unary", accepts_pitch=True, in_place=True, when=plain)
    op.kernel("opencl", "unary", dtype="f32,f16", when=plain)
    return op


_erf = np.vectorize(math.erf, otypes=[np.float64])


def _sigmoid(x: np.ndarray) -> np.ndarray:
    """y = 1 / (1 + e^−x), without overflow"""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e))


def _softplus(x: np.ndarray) -> np.ndarray:
    """y = ln(1 + e^x)"""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _gelu(x: np.ndarray, approximate: str) -> np.ndarray:
    """y = x·Φ(x), or its tanh approximation"""
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return 0.5 * x * (1 + _erf(x / math.sqrt(2)))


relu = _unary("Relu", typed(lambda x: np.maximum(x, 0)), 1, "ONNX Relu-14")
leaky_relu = _unary(
    "LeakyRelu",
    typed(lambda x, alpha: np.where(x < 0, alpha * x, x)),
    2,
    "ONNX LeakyRelu-16",
    alpha=0.01,
)
sigmoid = _unary("Sigmoid", typed(_sigmoid), 10, "ONNX Sigmoid-13")
tanh = _unary("Tanh", typed(np.tanh), 12, "ONNX Tanh-13")
hard_sigmoid = _unary(
    "HardSigmoid",
    typed(lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1)),
    4,
    "ONNX HardSigmoid-22",
    alpha=0.2,
    beta=0.5,
)
hard_swish = _unary(
    "HardSwish", typed(lambda x: x * np.clip(x / 6 + 0.5, 0, 1)), 5, "ONNX HardSwish-22"
)
silu = _unary("Silu", typed(lambda x: x * _sigmoid(x)), 11, "Ramachandran 2017 (swish, β = 1)")
gelu = _unary("Gelu", typed(_gelu), 14, "ONNX Gelu-20", approximate="none")
elu = _unary(
    "Elu",
    typed(lambda x, alpha: np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x)),
    10,
    "ONNX Elu-22",
    alpha=1.0,
)
softplus = _unary("Softplus", typed(_softplus), 16, "ONNX Softplus-22")
mish = _unary("Mish", typed(lambda x: x * np.tanh(_softplus(x))), 28, "ONNX Mish-22")

selu = _unary(
    "Selu",
    typed(lambda x, alpha, gamma: gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))),
    10,
    "ONNX Selu-22",
    alpha=1.67326319217681884765625,
    gamma=1.05070102214813232421875,
)
celu = _unary(
    "Celu",
    typed(lambda x, alpha: np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha))),
    12,
    "ONNX Celu-12",
    alpha=1.0,
)
thresholded_relu = _unary(
    "ThresholdedRelu",
    typed(lambda x, alpha: np.where(x > alpha, x, 0)),
    1,
    "ONNX ThresholdedRelu-22",
    alpha=1.0,
)
softsign = _unary("Softsign", typed(lambda x: x / (1 + np.abs(x))), 3, "ONNX Softsign-22")
swish = _unary(
    "Swish", typed(lambda x, alpha: x * _sigmoid(alpha * x)), 12, "ONNX Swish-24", alpha=1.0
)
shrink = _unary(
    "Shrink",
    typed(lambda x, bias, lambd: np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0))),
    4,
    "ONNX Shrink-9",
    bias=0.0,
    lambd=0.5,
)

clip = define_op(
    "Clip",
    inputs="x min? max?",
    layout="elementwise",
    attr_inputs=("min", "max"),
    source="ONNX Clip-13",
)


@clip.infer
def _(x: TypeInfo, low: TypeInfo | None, high: TypeInfo | None) -> TypeInfo:
    return same_type(x)


@clip.reference
def _(x: np.ndarray, low: np.ndarray | None, high: np.ndarray | None) -> np.ndarray:
    """y = min(max(x, low), high)"""
    y = x if low is None else np.maximum(x, low)
    return (y if high is None else np.minimum(y, high)).astype(x.dtype, copy=False)


float_kernels(clip, "unary", accepts_pitch=True, in_place=True)
clip.kernel("opencl", "unary", dtype="f32,f16")


#: The attributes of an operator that carries a function of its result.
FUSED: dict[str, Any] = {"activation": "", "activation_params": []}


def apply_activation(name: str, params: Sequence[float], y: np.ndarray) -> np.ndarray:
    """A fused activation. `params` are the operator's attributes in order; Clip takes (low, high);
    Gelu takes 1.0 for the tanh form."""
    if not name:
        return y
    if name == "Clip":
        return np.clip(y, params[0], params[1])
    if name == "Gelu":
        return _gelu(y, "tanh" if len(params) and params[0] else "none")
    op = get_op(name)
    attrs = dict(zip(op.attrs, params)) if len(params) else dict(op.attrs)
    assert op._reference is not None
    return np.asarray(op._reference(y, **attrs))


# ---- of two inputs; never fused

swiglu = define_op(
    "SwiGLU", inputs="a b", attrs={"alpha": 1.0}, layout="elementwise", source="ONNX SwiGLU-28"
)
swiglu.infer(same_type)
swiglu.reference(lambda a, b, *, alpha: (a * _sigmoid(alpha * wide(a)) * b).astype(a.dtype))
swiglu.cost(lambda a, b, **_: Cost(flops=13 * a.size))

bias_gelu = define_op(
    "BiasGelu",
    inputs="x bias",
    attrs={"approximate": "none"},
    source="com.microsoft BiasGelu-1, FastGelu-1",
)
bias_gelu.infer(same_type)


@bias_gelu.reference
def _(x: np.ndarray, bias: np.ndarray, *, approximate: str) -> np.ndarray:
    """y = gelu(x + bias)"""
    return _gelu(x + bias, approximate).astype(x.dtype)
