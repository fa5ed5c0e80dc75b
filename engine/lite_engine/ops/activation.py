"""Activations. The unary ones are operators that may be fused as `activation` of another."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..ir import TypeInfo
from ._core import define_op, get_op
from ._helpers import float_kernels, same_type, wide
from ._records import Cost
from ._samples import SPECIAL, Draw, Sample
from ._unary import unary
from .math_unary import erf


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
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


_activation = partial(unary, activation=True)
_fusable = partial(_activation, fusable=True)

relu = _fusable(
    "Relu",
    lambda x: np.maximum(x, 0),
    "ONNX Relu-14",
    opencl="AT_LEAST(x,0.0f)",
    output_range=(0, math.inf),
    clamps=True,
)
leaky_relu = _fusable(
    "LeakyRelu",
    lambda x, alpha: np.where(x < 0, alpha * x, x),
    "ONNX LeakyRelu-16",
    opencl="((x)<0.0f?ACT_A*(x):(x))",
    flops=2,
    alpha=0.01,
)
sigmoid = _fusable(
    "Sigmoid", _sigmoid, "ONNX Sigmoid-13", opencl="SIGMOID(x)", flops=10, output_range=(0, 1)
)
sigmoid.postprocess = "scores"
tanh = _fusable("Tanh", np.tanh, "ONNX Tanh-13", opencl="tanh(x)", flops=12)
hard_sigmoid = _fusable(
    "HardSigmoid",
    lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
    "ONNX HardSigmoid-22",
    opencl="CLAMP01(ACT_A*(x)+ACT_B)",
    output_range=(0, 1),
    flops=4,
    alpha=0.2,
    beta=0.5,
)
hard_swish = _fusable(
    "HardSwish",
    lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "ONNX HardSwish-22",
    opencl="((x)*CLAMP01((x)/6.0f+0.5f))",
    flops=5,
)
silu = _fusable(
    "Silu",
    lambda x: x * _sigmoid(x),
    "Ramachandran 2017 (swish, β = 1)",
    opencl="((x)*SIGMOID(x))",
    flops=11,
)
# (1 + tanh u) / 2 = sigmoid(2u): on the device no driver's tanh has to be exactly −1 where it ends
gelu = _fusable(
    "Gelu",
    _gelu,
    "ONNX Gelu-20",
    opencl="(ACT_A!=0.0f?((x)*SIGMOID(1.5957691f*((x)+0.044715f*(x)*(x)*(x))))"
    ":(0.5f*(x)*(1.0f+erf((x)*0.70710678f))))",
    flops=14,
    choices={"approximate": ("none", "tanh")},
    approximate="none",
)
elu = _fusable(
    "Elu",
    lambda x, alpha: np.where(x < 0, alpha * np.expm1(np.minimum(x, 0)), x),
    "ONNX Elu-22",
    opencl="((x)<0.0f?ACT_A*expm1(x):(x))",
    flops=10,
    alpha=1.0,
)
softplus = _fusable("Softplus", _softplus, "ONNX Softplus-22", opencl="SOFTPLUS(x)", flops=16)
mish = _fusable(
    "Mish",
    lambda x: x * np.tanh(_softplus(x)),
    "ONNX Mish-22",
    opencl="((x)*tanh(SOFTPLUS(x)))",
    flops=28,
)
selu = _activation(
    "Selu",
    lambda x, alpha, gamma: gamma * np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
    "ONNX Selu-22",
    opencl="(ACT_B*((x)<0.0f?ACT_A*expm1(x):(x)))",
    flops=10,
    alpha=1.67326319217681884765625,
    gamma=1.05070102214813232421875,
)
celu = _activation(
    "Celu",
    lambda x, alpha: np.maximum(x, 0) + np.minimum(0, alpha * np.expm1(x / alpha)),
    "ONNX Celu-12",
    opencl="((x)<0.0f?ACT_A*expm1((x)/ACT_A):(x))",
    flops=12,
    alpha=1.0,
)
thresholded_relu = _activation(
    "ThresholdedRelu",
    lambda x, alpha: np.where(x > alpha, x, 0),
    "ONNX ThresholdedRelu-22",
    opencl="((x)>ACT_A?(x):0.0f)",
    alpha=1.0,
)
softsign = _activation(
    "Softsign",
    lambda x: x / (1 + np.abs(x)),
    "ONNX Softsign-22",
    opencl="((x)/(1.0f+fabs(x)))",
    flops=3,
)
swish = _activation(
    "Swish",
    lambda x, alpha: x * _sigmoid(alpha * x),
    "ONNX Swish-24; α = 1.702 is CLIP's QuickGelu",
    opencl="((x)*SIGMOID(ACT_A*(x)))",
    flops=12,
    alpha=1.0,
)
shrink = _activation(
    "Shrink",
    lambda x, bias, lambd: np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0)),
    "ONNX Shrink-9",
    opencl="((x)<-ACT_B?(x)+ACT_A:((x)>ACT_B?(x)-ACT_A:0.0f))",
    flops=4,
    bias=0.0,
    lambd=0.5,
)
log_sigmoid = _activation(
    "LogSigmoid",
    lambda x: -_softplus(-x),
    "PyTorch LogSigmoid: y = ln σ(x)",
    opencl="(-SOFTPLUS(-(x)))",
    flops=16,
)


def _tanh_shrink(x: np.ndarray) -> np.ndarray:
    """y = x − tanh x; near 0 x³/3 − 2x⁵/15 + 17x⁷/315 − …, where the difference has no digits"""
    d = x.astype(np.float64)
    s = np.minimum(d * d, 0.01)
    series = d * s * (1 / 3 - s * (2 / 15 - s * (17 / 315 - s * 62 / 2835)))
    return np.where(d * d < 0.01, series, d - np.tanh(d))


tanh_shrink = _activation(
    "TanhShrink",
    _tanh_shrink,
    "PyTorch Tanhshrink: y = x − tanh x, exact near 0",
    opencl="((x)*(x)<0.25f?(x)*(x)*(x)*(0.33333333f-(x)*(x)*(0.13333333f-(x)*(x)*(0.053968254f"
    "-(x)*(x)*(0.021869489f-(x)*(x)*(0.0088632355f-(x)*(x)*0.0035921280f))))):(x)-tanh(x))",
    flops=14,
)

clip = define_op(
    "Clip",
    inputs="x min? max?",
    layout="elementwise",
    attr_inputs=("min", "max"),
    activation=True,
    fusable=True,
    clamps=True,
    integer_form="table",
    quantized="joins",
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
clip.kernel("opencl", "unary", dtype="f32,f16", code="AT_MOST(AT_LEAST(x,ACT_A),ACT_B)")


def unary_params(name: str, attrs: Mapping[str, Any]) -> list[float]:
    """A unary operator's attributes, defaults filled in, as the `activation_params` of another."""
    if name == "Gelu":
        return [1.0] if attrs.get("approximate") == "tanh" else []
    return [float(attrs.get(k, default)) for k, default in get_op(name).attrs.items()]


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


@clip.samples
def _(draw: Draw) -> Iterator[Sample]:
    low, high = draw.scalar(-1.5), draw.scalar(2.25)
    for bounds in ([low, high], [None, high], [low]):
        for shape in ((1,), (17,), (2, 3, 5, 19), ()):
            yield Sample([draw(*shape), *bounds])
        yield Sample([SPECIAL.astype(draw.dtype.np), *bounds])
