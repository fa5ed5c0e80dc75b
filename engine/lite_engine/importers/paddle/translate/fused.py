"""Activations that Paddle (oneDNN) and Paddle-Lite fuse into other operators as attributes.

They become nodes of their own again; our passes fuse them by our rules.
"""

from __future__ import annotations

from lite_messages import tr

from ....ir import Value
from ..registry import Call


def activation(op: Call, y: Value, name: str) -> Value:
    """Emits the activation of that Paddle name, its parameters read from the operator."""
    if name in ("", "identity"):
        return y
    if name == "relu":
        return op.node("Relu", [y])
    if name == "relu6":
        limit = float(op.attr("fuse_brelu_threshold", op.attr("threshold", 6.0)) or 6.0)
        return op.node("Clip", [y, op.const(0.0), op.const(limit)])
    if name == "leaky_relu":
        alpha = op.attr("leaky_relu_alpha", op.attr("fuse_alpha", 0.01))
        return op.node("LeakyRelu", [y], alpha=float(alpha))
    if name in ("sigmoid", "tanh", "exp", "abs"):
        return op.node(name.capitalize(), [y])
    if name in ("swish", "silu"):
        return scaled_swish(op, y, float(op.attr("swish_scale", op.attr("swish_beta", 1.0))))
    if name == "hard_swish":
        return hard_swish(
            op, y,
            float(op.attr("hard_swish_threshold", 6.0)), float(op.attr("hard_swish_scale", 6.0)),
            float(op.attr("hard_swish_offset", 3.0)),
        )  # fmt: skip
    if name == "hard_sigmoid":
        slope = op.attr("hard_sigmoid_slope", op.attr("slope", 0.2))
        offset = op.attr("hard_sigmoid_offset", op.attr("offset", 0.5))
        return op.node("HardSigmoid", [y], alpha=float(slope), beta=float(offset))
    if name == "prelu":
        return op.node("PRelu", [y, prelu_slope(op, y, op.need("Prelu_alpha"))])
    if name == "gelu":
        return op.node("Gelu", [y], approximate="tanh" if op.flag("fuse_gelu_tanh") else "none")
    raise op.unsupported(tr("its fused activation {name!r} is not known", name=name))


def fused_activation(op: Call, y: Value) -> Value:
    """The activation in whichever attribute this producer used."""
    if op.attr("with_act") is not None:
        return activation(op, y, str(op.attr("act_type", ""))) if op.flag("with_act") else y
    for key in ("act_type", "fuse_activation", "activation_type"):
        if op.attr(key):
            return activation(op, y, str(op.attr(key)))
    if op.flag("fuse_brelu"):
        return activation(op, y, "relu6")
    return activation(op, y, "relu") if op.flag("fuse_relu") else y


def prelu_slope(op: Call, x: Value, alpha: Value) -> Value:
    """Paddle's alpha (all: 1, channel: C, element: the sample) in a shape that broadcasts."""
    mode = op.attr("Prelu_mode", op.attr("mode", "all"))
    rank = op.rank(x)
    if mode == "all":
        return op.to_shape(alpha, [1])
    if mode == "channel":
        return op.to_shape(alpha, [-1, *[1] * (rank - 2)])
    return alpha


def scaled_swish(op: Call, x: Value, beta: float) -> Value:
    """x·σ(βx)"""
    return op.node("Silu", [x]) if beta == 1.0 else op.node("Swish", [x], alpha=beta)


def hard_swish(op: Call, x: Value, threshold: float, scale: float, offset: float) -> Value:
    """x·min(max(x + offset, 0), threshold) / scale"""
    if (threshold, scale, offset) == (6.0, 6.0, 3.0):
        return op.node("HardSwish", [x])
    gate = op.node("Add", [x, op.const(offset, like=x)])
    gate = op.node("Clip", [gate, op.const(0.0, like=x), op.const(threshold, like=x)])
    return op.node("Div", [op.node("Mul", [x, gate]), op.const(scale, like=x)])
