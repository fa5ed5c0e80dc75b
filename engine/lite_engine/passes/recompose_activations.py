"""Activations that exporters spell out become the operator again.

x · clip(x + 3, 0, 6) / 6                       HardSwish
clip(αx + β, 0, 1), clip(x + 3, 0, 6) / 6       HardSigmoid
x · σ(x)                                        Silu
x · σ(αx)                                       Swish
ln σ(x)                                         LogSigmoid
x · tanh(ln(1 + eˣ))                            Mish
x · (1 + erf(x/√2)) / 2                         Gelu
x · (1 + tanh(√(2/π)(x + 0.044715x³))) / 2      Gelu, tanh form
1 / (1 + e⁻ˣ)                                   Sigmoid
max(x, αx), PRelu of one slope                  LeakyRelu
max(x, 0), clip(x, 0, ∞)                        Relu
min(max(x, l), h), clip(relu(x), l, h)          Clip
BiasGelu                                        Add with a fused Gelu
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node, Value
from ..ops.activation import unary_params
from ._core import C, Match, P, RulePass, Skip, no_match, skip
from ._rewrite import constant_like

_RELU6 = P("Clip", P("Add", "x", 3.0), 0.0, 6.0)
_HARD_SIGMOID = [
    P("Div", _RELU6, 6.0),
    P("Mul", _RELU6, 1 / 6),
    P("Clip", P("Add", P("Mul", "x", C("alpha")), C("beta")), 0.0, 1.0),
    P("Clip", P("Add", P("Div", "x", C("inverse")), C("beta")), 0.0, 1.0),
]
_HARD_SWISH = [
    P("Div", P("Mul", "x", _RELU6), 6.0),
    P("Mul", P("Mul", "x", _RELU6), 1 / 6),
    P("Mul", P("Div", "x", 6.0), _RELU6),
    P("Mul", P("Mul", "x", 1 / 6), _RELU6),
    P("Mul", "x", P("HardSigmoid", "x", name="gate")),
]
_ERF = [P("Erf", P("Div", "x", math.sqrt(2))), P("Erf", P("Mul", "x", math.sqrt(0.5)))]
_CUBE = [P("Pow", "x", 3.0), P("Mul", P("Mul", "x", "x"), "x"), P("Mul", P("Square", "x"), "x")]
_TANH = [
    P("Tanh", P("Mul", P("Add", "x", P("Mul", cube, 0.044715)), math.sqrt(2 / math.pi)))
    for cube in _CUBE
]


def _gated(gates: list[P]) -> list[P]:
    """x · (1 + gate) / 2 in the three orders that exporters use."""
    out = []
    for gate in gates:
        cdf = P("Add", gate, 1.0)
        out += [
            P("Mul", P("Mul", "x", cdf), 0.5),
            P("Mul", P("Mul", "x", 0.5), cdf),
            P("Mul", "x", P("Mul", cdf, 0.5)),
            P("Div", P("Mul", "x", cdf), 2.0),
            P("Mul", P("Div", "x", 2.0), cdf),
        ]
    return out


_SIGMOID = [
    P(("Div",), 1.0, P("Add", P("Exp", P("Neg", "x")), 1.0)),
    P("Reciprocal", P("Add", P("Exp", P("Neg", "x")), 1.0)),
]


def grows(root: Node, x: Value) -> Skip | None:
    """Whether a constant of more axes than x gives the result some."""
    if root.output.shape is None or root.output.shape == x.shape:
        return None
    return skip(tr("a constant broadcasts to a larger shape"), root)


Attrs = Callable[[Match], "dict[str, Any] | Skip"]


class _Recompose:
    """Replaces a match by one unary operator of x, with the attributes that `attrs` works out."""

    def __init__(self, op: str, patterns: list[P], attrs: Attrs | None = None) -> None:
        self.op, self.patterns = op, patterns
        self.attrs: Attrs = attrs or (lambda m: {})

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if any(n.attrs.get("activation") for n in m.nodes):
            return skip(tr("one of the nodes carries an activation"), m.root)
        attrs = grows(m.root, m.x) or self.attrs(m)
        return attrs if isinstance(attrs, Skip) else None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        attrs = self.attrs(m)
        assert isinstance(attrs, dict)
        return graph.replace(m.nodes, self.op, [m.x], attrs)


def number(value: Value | None) -> float | None:
    """The value of a constant of one element."""
    if value is None or value.const is None or value.const.size != 1:
        return None
    return float(np.ravel(value.const)[0])


def _hard_sigmoid(m: Match) -> dict[str, Any] | Skip:
    if "beta" not in m.bound:
        return {"alpha": 1 / 6, "beta": 0.5}
    alpha, beta = number(m.bound.get("alpha")), number(m.beta)
    if "inverse" in m.bound:
        inverse = number(m.inverse)
        alpha = 1 / inverse if inverse else None
    if alpha is None or beta is None:
        return skip(tr("slope and offset are not one number each"), m.root)
    return {"alpha": alpha, "beta": beta}


def _hard_swish(m: Match) -> dict[str, Any] | Skip:
    if "gate" in m.bound:
        alpha, beta = m.gate.attrs.get("alpha", 0.2), m.gate.attrs.get("beta", 0.5)
        if abs(alpha - 1 / 6) > 1e-5 or abs(beta - 0.5) > 1e-5:
            return skip(
                tr(
                    "its gate is HardSigmoid({alpha:g}, {beta:g}), not (1/6, 1/2)",
                    alpha=alpha,
                    beta=beta,
                ),
                m.gate,
            )
    return {}


def _leaky(m: Match) -> dict[str, Any] | Skip:
    alpha = number(m.slope)
    if alpha is None:
        return skip(tr("one slope per channel"), m.root)
    if m.root.op == "Max" and not 0 <= alpha <= 1:
        return skip(tr("max(x, {alpha:g}x) is not a LeakyRelu", alpha=alpha), m.root)
    return {"alpha": alpha}


def _scaled(m: Match) -> dict[str, Any] | Skip:
    alpha = number(m.alpha)
    return skip(tr("one factor per channel"), m.root) if alpha is None else {"alpha": alpha}


def _swish(m: Match) -> dict[str, Any] | Skip:
    alpha = m.root.attrs.get("alpha", 1.0)
    return {} if alpha == 1 else skip(tr("alpha is {alpha:g}", alpha=alpha), m.root)


def _positive(m: Match) -> dict[str, Any] | Skip:
    """Clip from exactly 0 without an upper bound."""
    high = m.root.input(2)
    if high is not None and not (high.const is not None and np.all(np.isposinf(high.const))):
        return no_match(m.root)
    return {}


class _Clip:
    """One Clip for a lower and an upper bound that come one after the other."""

    patterns = [
        P("Min", P("Max", "x", C("low")), C("high")),
        P("Max", P("Min", "x", C("high")), C("low")),
        P("Clip", P("Relu", "x"), C("low?"), C("high")),
        P("Min", P("Relu", "x"), C("high")),
    ]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        low, high = (None if b is None else b.item() for b in self._bounds(m))
        if low is None or high is None:
            return skip(tr("the bounds are not one number each"), m.root)
        if low > high:
            return skip(tr("the bounds {low:g} and {high:g} cross", low=low, high=high), m.root)
        return grows(m.root, m.x)

    def rewrite(self, graph: Graph, m: Match) -> Node:
        bounds = [
            constant_like(graph, b, m.high, "bound") for b in self._bounds(m) if b is not None
        ]
        return graph.replace(m.nodes, "Clip", [m.x, *bounds])

    @staticmethod
    def _bounds(m: Match) -> tuple[np.ndarray | None, np.ndarray | None]:
        """In their own type: not every int64 is a float."""
        low, high = (
            None if a is None or a.size != 1 else a.reshape(())
            for a in (m.array("low"), m.array("high"))
        )
        if high is not None and any(n.op == "Relu" for n in m.nodes):
            low = np.maximum(0 if low is None else low, 0, dtype=high.dtype)
        return low, high


class _BiasGelu:
    """An addition with a fused Gelu, which has kernels everywhere."""

    patterns = [P("BiasGelu", "x", "bias")]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        return None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        params = unary_params("Gelu", m.root.attrs)
        attrs = {"activation": "Gelu", **({"activation_params": params} if params else {})}
        return graph.replace(m.nodes, "Add", [m.x, m.bias], attrs)


def _pass(op: str, patterns: list[P], attrs: Attrs | None = None) -> RulePass:
    return RulePass(f"recompose-{op.lower()}", _Recompose(op, patterns, attrs))


recompose_activations = [
    _pass("Sigmoid", _SIGMOID),
    _pass("Softplus", [P("Log", P("Add", P("Exp", "x"), 1.0))]),
    _pass("HardSwish", _HARD_SWISH[:-1]),
    _pass("HardSigmoid", _HARD_SIGMOID, _hard_sigmoid),
    _pass("HardSwish", _HARD_SWISH[-1:], _hard_swish),
    _pass("Silu", [P("Mul", "x", P("Sigmoid", "x"))]),
    _pass("Swish", [P("Mul", "x", P("Sigmoid", P("Mul", "x", C("alpha"))))], _scaled),
    _pass("Silu", [P("Swish", "x")], _swish),
    _pass("LogSigmoid", [P("Log", P("Sigmoid", "x"))]),
    _pass("Mish", [P("Mul", "x", P("Tanh", P("Softplus", "x")))]),
    _pass("Gelu", _gated(_ERF)),
    _pass("Gelu", _gated(_TANH), lambda m: {"approximate": "tanh"}),
    _pass(
        "LeakyRelu", [P("Max", "x", P("Mul", "x", C("slope"))), P("PRelu", "x", C("slope"))], _leaky
    ),
    _pass("Relu", [P("Max", "x", 0.0)]),
    _pass("Relu", [P("Clip", "x", 0.0, more=True)], _positive),
    RulePass("recompose-clip", _Clip()),
    RulePass("recompose-biasgelu", _BiasGelu()),
]
