"""One-input functions."""

from __future__ import annotations

import math

from lite_messages import tr

from ....ir import Value
from ..registry import Call, translates
from .fused import hard_swish, prelu_slope, scaled_swish

_SAME = {
    "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "log": "Log",
    "sqrt": "Sqrt", "abs": "Abs", "floor": "Floor", "ceil": "Ceil", "sin": "Sin",
    "cos": "Cos", "tan": "Tan", "asin": "Asin", "acos": "Acos", "atan": "Atan", "sinh": "Sinh",
    "cosh": "Cosh", "asinh": "Asinh", "acosh": "Acosh", "atanh": "Atanh", "erf": "Erf",
    "softsign": "Softsign", "sign": "Sign", "reciprocal": "Reciprocal", "silu": "Silu",
    "square": "Square", "rsqrt": "Rsqrt", "expm1": "Expm1", "log1p": "Log1p", "log2": "Log2",
    "log10": "Log10", "trunc": "Trunc", "logsigmoid": "LogSigmoid", "tanh_shrink": "TanhShrink",
    "negative": "Neg", "isnan": "IsNaN", "isinf": "IsInf", "isnan_v2": "IsNaN", "isinf_v2": "IsInf",
}  # fmt: skip


@translates(*_SAME)
def _(op: Call) -> None:
    op.set("Out", op.node(_SAME[op.type], [op.need("X")]))


@translates("round")
def _(op: Call) -> None:
    """To a multiple of 10^-decimals; integers stay as they are, whatever `decimals` says."""
    x, decimals = op.need("X"), int(op.attr("decimals", 0))
    if not op.dtype(x).is_float:
        op.set("Out", x)
    elif not decimals:
        op.set("Out", op.node("Round", [x]))
    else:
        power = op.const(10.0 ** abs(decimals), like=x)
        there, back = ("Mul", "Div") if decimals > 0 else ("Div", "Mul")
        op.set("Out", op.node(back, [op.node("Round", [op.node(there, [x, power])]), power]))


def _clip(op: Call, x: Value, low: float | Value | None, high: float | Value | None) -> Value:
    def bound(v: float | Value | None) -> Value | None:
        return v if v is None or isinstance(v, Value) else op.const(v, like=x)

    return op.node("Clip", [x, bound(low), bound(high)])


@translates("relu6")
def _(op: Call) -> None:
    # newer Paddle does not write the threshold
    op.set("Out", _clip(op, op.need("X"), 0.0, float(op.attr("threshold", 6.0))))


@translates("relu_clipped")
def _(op: Call) -> None:
    op.set("Out", _clip(op, op.need("X"), 0.0, float(op.attr("Relu_clipped_coef", 6.0))))


@translates("brelu", "hard_tanh", "hardtanh")
def _(op: Call) -> None:
    low = 0.0 if op.type == "brelu" else -1.0
    high = 24.0 if op.type == "brelu" else 1.0
    op.set(
        "Out", _clip(op, op.need("X"), float(op.attr("t_min", low)), float(op.attr("t_max", high)))
    )


@translates("clip")
def _(op: Call) -> None:
    low, high = op["Min"], op["Max"]
    op.set("Out", _clip(
        op, op.need("X"),
        op.to_shape(low, []) if low is not None else float(op.attr("min", -math.inf)),
        op.to_shape(high, []) if high is not None else float(op.attr("max", math.inf)),
    ))  # fmt: skip


@translates("leaky_relu")
def _(op: Call) -> None:
    op.set("Out", op.node("LeakyRelu", [op.need("X")], alpha=float(op.attr("alpha", 0.02))))


@translates("hard_sigmoid")
def _(op: Call) -> None:
    alpha, beta = float(op.attr("slope", 0.2)), float(op.attr("offset", 0.5))
    op.set("Out", op.node("HardSigmoid", [op.need("X")], alpha=alpha, beta=beta))


@translates("hard_swish")
def _(op: Call) -> None:
    op.set("Out", hard_swish(
        op, op.need("X"), float(op.attr("threshold", 6.0)), float(op.attr("scale", 6.0)),
        float(op.attr("offset", 3.0)),
    ))  # fmt: skip


@translates("swish")
def _(op: Call) -> None:
    op.set("Out", scaled_swish(op, op.need("X"), float(op.attr("beta", 1.0))))


@translates("gelu")
def _(op: Call) -> None:
    form = "tanh" if op.flag("approximate") else "none"
    op.set("Out", op.node("Gelu", [op.need("X")], approximate=form))


@translates("elu")
def _(op: Call) -> None:
    op.set("Out", op.node("Elu", [op.need("X")], alpha=float(op.attr("alpha", 1.0))))


@translates("celu")
def _(op: Call) -> None:
    op.set("Out", op.node("Celu", [op.need("X")], alpha=float(op.attr("alpha", 1.0))))


@translates("selu")
def _(op: Call) -> None:
    op.set("Out", op.node(
        "Selu", [op.need("X")], gamma=float(op.attr("scale", 1.0507009873554805)),
        alpha=float(op.attr("alpha", 1.6732632423543772)),
    ))  # fmt: skip


@translates("softplus")
def _(op: Call) -> None:
    """ln(1 + e^βx) / β; Paddle returns x where βx > threshold, where the two agree to 1e-9"""
    x, beta = op.need("X"), float(op.attr("beta", 1.0))
    if beta == 1.0:
        op.set("Out", op.node("Softplus", [x]))
        return
    y = op.node("Softplus", [op.node("Mul", [x, op.const(beta, like=x)])])
    op.set("Out", op.node("Div", [y, op.const(beta, like=x)]))


@translates("mish")
def _(op: Call) -> None:
    op.set("Out", op.node("Mish", [op.need("X")]))


@translates("thresholded_relu")
def _(op: Call) -> None:
    alpha = float(op.attr("threshold", 1.0))
    op.set("Out", op.node("ThresholdedRelu", [op.need("X")], alpha=alpha))


@translates("hard_shrink", "softshrink")
def _(op: Call) -> None:
    limit = float(op.attr("threshold", op.attr("lambda", 0.5)))
    bias = limit if op.type == "softshrink" else 0.0
    op.set("Out", op.node("Shrink", [op.need("X")], lambd=limit, bias=bias))


@translates("stanh")
def _(op: Call) -> None:
    """b·tanh(a·x)"""
    x = op.need("X")
    inner = op.node("Mul", [x, op.const(float(op.attr("scale_a", 0.67)))])
    op.set(
        "Out",
        op.node("Mul", [op.node("Tanh", [inner]), op.const(float(op.attr("scale_b", 1.7159)))]),
    )


@translates("prelu")
def _(op: Call) -> None:
    x = op.need("X")
    op.set("Out", op.node("PRelu", [x, prelu_slope(op, x, op.need("Alpha"))]))


@translates("pow")
def _(op: Call) -> None:
    x, tensor = op.need("X"), op["FactorTensor"]
    factor = tensor if tensor is not None else op.const(float(op.attr("factor", 1.0)), like=x)
    op.set("Out", op.node("Pow", [x, factor]))


@translates("isfinite", "isfinite_v2")
def _(op: Call) -> None:
    x = op.need("X")
    bad = op.node("Or", [op.node("IsNaN", [x]), op.node("IsInf", [x])])
    op.set("Out", op.node("Not", [bad]))


@translates("softmax", "log_softmax")
def _(op: Call) -> None:
    x = op.need("X")
    kind = "Softmax" if op.type == "softmax" else "LogSoftmax"
    op.set("Out", op.node(kind, [x], axis=int(op.attr("axis", -1))))


@translates("cast")
def _(op: Call) -> None:
    op.set("Out", op.node("Cast", [op.need("X")], to=op.attr_dtype("out_dtype", 5)))


@translates("dropout")
def _(op: Call) -> None:
    """Inference: nothing, or a scale for models trained with `downgrade_in_infer`."""
    x, rate = op.need("X"), float(op.attr("dropout_prob", 0.5))
    if op.attr("dropout_implementation", "downgrade_in_infer") == "downgrade_in_infer" and rate:
        x = op.node("Mul", [x, op.const(1.0 - rate, like=x)])
    op.set("Out", x)


@translates("assign", "share_data", "share_buffer", "lod_reset", "memcpy", "memcpy_d2h",
            "memcpy_h2d", "npu_identity", "shadow_output", "c_identity", "print")  # fmt: skip
def _(op: Call) -> None:
    x = op["X"] if op["X"] is not None else op["In"]
    if x is None:
        x = op.need("Input")
    op.set("Out", x)


@translates("complex", "real", "imag", "as_real", "as_complex")
def _(op: Call) -> None:
    raise op.unsupported(tr("complex numbers are not supported; use real arithmetic in the model"))
