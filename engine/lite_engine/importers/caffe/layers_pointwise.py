"""Caffe's activations and other layers that look at one element at a time."""

from __future__ import annotations

import numpy as np

from ...ir import DType, Value
from ._prototxt import Block
from .call import Call, layer


@layer("ReLU")
def relu(c: Call) -> Value:
    slope = c.param("relu_param").float("negative_slope", 0.0)
    return c.emit("LeakyRelu", c.x, alpha=slope) if slope else c.emit("Relu", c.x)


@layer("ReLU6")
def relu6(c: Call) -> Value:
    return c.emit("Clip", c.x, 0.0, 6.0)


@layer("PReLU")
def prelu(c: Call) -> Value:
    slope = c.blob(0).ravel()
    return c.emit("PRelu", c.x, c.emit.const(slope.reshape(-1, *[1] * (c.rank() - 2))))


_UNARY = {"Sigmoid": "Sigmoid", "TanH": "Tanh", "AbsVal": "Abs", "BNLL": "Softplus",
          "Mish": "Mish"}  # fmt: skip


@layer(*_UNARY)
def unary(c: Call) -> Value:
    return c.emit(_UNARY[c.layer.type], c.x)


@layer("ELU")
def elu(c: Call) -> Value:
    return c.emit("Elu", c.x, alpha=c.param("elu_param").float("alpha", 1.0))


@layer("Swish")
def swish(c: Call) -> Value:
    beta = c.param("swish_param").float("beta", 1.0)
    inner = c.x if beta == 1 else c.emit("Mul", c.x, float(beta))
    return c.emit("Mul", c.x, c.emit("Sigmoid", inner))


@layer("Clip")
def clip(c: Call) -> Value:
    p = c.param("clip_param")
    return c.emit("Clip", c.x, p.float("min", -3e38), p.float("max", 3e38))


@layer("Threshold")
def threshold(c: Call) -> Value:
    limit = c.param("threshold_param").float("threshold", 0.0)
    return c.emit("Cast", c.emit("Greater", c.x, float(limit)), to=DType.F32)


def _affine(c: Call, x: Value, p: Block) -> Value:
    """scale·x + shift, without what does nothing."""
    factor, shift = p.float("scale", 1.0), p.float("shift", 0.0)
    x = x if factor == 1 else c.emit("Mul", x, float(factor))
    return x if shift == 0 else c.emit("Add", x, float(shift))


@layer("Power")
def power(c: Call) -> Value:
    p = c.param("power_param")
    y, exponent = _affine(c, c.x, p), p.float("power", 1.0)
    return y if exponent == 1 else c.emit("Pow", y, float(exponent))


@layer("Exp")
def exp(c: Call) -> Value:
    p = c.param("exp_param")
    y, base = _affine(c, c.x, p), p.float("base", -1.0)
    return c.emit("Exp", y if base <= 0 else c.emit("Mul", y, float(np.log(base))))


@layer("Log")
def log(c: Call) -> Value:
    p = c.param("log_param")
    y, base = c.emit("Log", _affine(c, c.x, p)), p.float("base", -1.0)
    return y if base <= 0 else c.emit("Mul", y, float(1 / np.log(base)))


@layer("Softmax", "SoftmaxWithLoss")
def softmax(c: Call) -> Value:
    """A loss becomes what it is computed from."""
    return c.emit("Softmax", c.x, axis=c.param("softmax_param").int("axis", 1))
