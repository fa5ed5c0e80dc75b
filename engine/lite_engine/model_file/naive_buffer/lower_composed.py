"""Lowerings of functions that Paddle-Lite spells with several operators."""

from __future__ import annotations

import math
from typing import Any

from ...ir import Node, Value
from .lower import Writer, lowers
from .lower_activation import activation_op


def _scaled(w: Writer, x: Value | str, out: Value | str, scale: float, bias: float = 0.0) -> None:
    w.add("scale", {"X": x}, {"Out": out}, scale=scale, bias=bias, bias_after_scale=True)


def _squared(w: Writer, x: Value | str, out: Value) -> None:
    w.add("elementwise_mul", {"X": x, "Y": x}, {"Out": out}, axis=-1)


@lowers("Square")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    x = node.inputs[0]
    assert x is not None
    _squared(w, x, node.output)


@lowers("SquaredDifference")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    inner = w.like(node.output, "difference")
    x, y = node.inputs[:2]
    assert x is not None and y is not None
    if w.rank(x) < w.rank(y):
        x, y = y, x
    w.add("elementwise_sub", {"X": x, "Y": y}, {"Out": inner}, axis=-1)
    _squared(w, inner, node.output)


@lowers("Rsqrt")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    inner = w.like(node.output, "root")
    w.add("sqrt", {"X": node.inputs[0]}, {"Out": inner})
    w.add("reciprocal", {"X": inner}, {"Out": node.output})


@lowers("NotEqual")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    x, y = node.inputs[:2]
    assert x is not None and y is not None
    if x.is_const or w.rank(x) < w.rank(y):
        x, y = y, x
    inner = w.like(node.output, "equal")
    w.add("equal", {"X": x, "Y": y}, {"Out": inner}, axis=-1, force_cpu=False)
    w.add("logical_not", {"X": inner}, {"Out": node.output})


@lowers("Log1p")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    inner = w.like(node.output, "sum")
    assert node.inputs[0] is not None
    _scaled(w, node.inputs[0], inner, 1.0, 1.0)
    w.add("log", {"X": inner}, {"Out": node.output})


@lowers("Expm1")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    inner = w.like(node.output, "exp")
    w.add("exp", {"X": node.inputs[0]}, {"Out": inner})
    _scaled(w, inner, node.output, 1.0, -1.0)


@lowers("TanhShrink")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    inner = w.like(node.output, "tanh")
    w.add("tanh", {"X": node.inputs[0]}, {"Out": inner})
    w.add("elementwise_sub", {"X": node.inputs[0], "Y": inner}, {"Out": node.output}, axis=-1)


@lowers("Log2", "Log10")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    inner = w.like(node.output, "log")
    w.add("log", {"X": node.inputs[0]}, {"Out": inner})
    _scaled(w, inner, node.output, 1 / math.log(2 if node.op == "Log2" else 10))


@lowers("LogSigmoid")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    """ln σ(x) = −ln(1 + e^−x)"""
    negative, positive = (w.like(node.output, s) for s in ("negative", "softplus"))
    assert node.inputs[0] is not None
    _scaled(w, node.inputs[0], negative, -1.0)
    activation_op(w, negative, positive, "Softplus", [])
    _scaled(w, positive, node.output, -1.0)
