"""Normalizations written out in elementary operators become one operator again.

(x − μ) / √(σ² + ε) · γ + β        LayerNormalization
x / √(mean(x²) + ε) · γ            RMSNormalization
x / max(‖x‖₂, ε)                   LpNormalization
"""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node, Value
from ._core import C, Match, P, Skip, rule, skip
from ._rewrite import constant_like
from .recompose_activations import grows, number

_MEAN = P("ReduceMean", "x", C("axes"))
_CENTRED = P("Sub", "x", _MEAN, name="centred")


def _normalised(of: P | str) -> list[P]:
    """of / √(mean(of²) + ε), with the square and the root as exporters spell them."""
    squares = [P("Pow", of, 2.0), P("Mul", of, of), P("Square", of)]
    if of is _CENTRED:
        squares.append(P("SquaredDifference", "x", _MEAN))
    out = []
    for square in squares:
        mean = P("ReduceMean", square, C("inner_axes"), name="mean")
        biased = P("Add", mean, C("eps"))
        root = P("Sqrt", biased)
        out += [
            P("Div", of, root),
            P("Mul", of, P("Reciprocal", root)),
            P("Mul", of, P("Div", 1.0, root)),
            P("Mul", of, P("Rsqrt", biased)),
            P("Div", of, P("Pow", biased, 0.5)),
            P("Mul", of, P("Pow", biased, -0.5)),
        ]
    return out


def _trailing_axis(x: Value, axes: Value) -> int | None:
    """The first of the axes when they are the last ones of x, all of them fixed in size."""
    if x.shape is None or axes.const is None:
        return None
    rank = len(x.shape)
    sorted_axes = sorted(int(a) % rank for a in axes.const.ravel())
    first = rank - len(sorted_axes)
    if sorted_axes != list(range(first, rank)) or not sorted_axes:
        return None
    return first if all(isinstance(d, int) for d in x.shape[first:]) else None


class _Norm:
    op = ""

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if number(m.eps) is None:
            return skip(tr("epsilon is not one number"), m.root)
        if any(n.op == "ReduceMean" and not n.attrs.get("keepdims", 1) for n in m.nodes):
            return skip(tr("the mean drops its axes"), m.mean)
        axes = [_trailing_axis(m.x, m.bound.get(k, m.inner_axes)) for k in ("axes", "inner_axes")]
        if axes[0] is None or axes[0] != axes[1]:
            return skip(
                tr("it does not normalize the last axes, or their sizes are not fixed"), m.root
            )
        return grows(m.root, m.x)

    def rewrite(self, graph: Graph, m: Match) -> Node:
        axis = _trailing_axis(m.x, m.inner_axes)
        assert axis is not None
        sizes = tuple(int(d) for d in m.x.shape[axis:])
        ones = constant_like(graph, np.ones(sizes, m.x.dtype.np), m.x, "scale")
        attrs = {"axis": axis - len(m.x.shape), "epsilon": number(m.eps)}
        return graph.replace(m.nodes, self.op, [m.x, ones], attrs)


@rule("recompose-layer-norm", source="Ba 2016")
class recompose_layer_norm(_Norm):
    op = "LayerNormalization"
    patterns = _normalised(_CENTRED)


@rule("recompose-rms-norm", source="Zhang 2019")
class recompose_rms_norm(_Norm):
    op = "RMSNormalization"
    patterns = _normalised("x")

    def check(self, graph: Graph, m: Match) -> Skip | None:
        refusal = super().check(graph, m)
        producer = m.x.producer
        if refusal is None and producer is not None and producer.op == "Sub":
            mean = producer.input(1)
            if mean is not None and mean.producer is not None and mean.producer.op == "ReduceMean":
                return skip(
                    tr("the mean is subtracted: it is a layer norm that was not matched"), m.root
                )
        return refusal


@rule("fuse-norm-affine")
class fuse_norm_affine:
    """γ and β after a normalization become its scale and bias."""

    patterns = [
        P("Mul", P("LayerNormalization", "x", C("scale"), name="norm"), C("k")),
        P("Mul", P("RMSNormalization", "x", C("scale"), name="norm"), C("k")),
        P("Add", P("LayerNormalization", "x", C("scale"), C("b?"), name="norm"), C("k")),
    ]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if m.root.attrs.get("activation"):
            return skip(tr("the addition carries an activation"), m.root)
        if _as_scale(m) is None:
            return skip(tr("the constant does not have the shape of the normalized axes"), m.root)
        return grows(m.root, m.x)

    def rewrite(self, graph: Graph, m: Match) -> Node:
        scale, bias, k = m.array("scale"), m.array("b"), _as_scale(m)
        assert scale is not None and k is not None
        inputs: list[Value | None] = [m.x, m.scale]
        if m.root.op == "Mul":
            inputs[1] = constant_like(graph, scale * k, m.k, "scale")
        else:
            inputs.append(constant_like(graph, k if bias is None else bias + k, m.k, "bias"))
        return graph.replace([m.norm, m.root], m.norm.op, inputs, m.norm.attrs)


def _as_scale(m: Match) -> np.ndarray | None:
    """The constant broadcast to the shape of the scale, None when it does not fit."""
    k, scale = m.array("k"), m.array("scale")
    assert k is not None and scale is not None
    while k.ndim > scale.ndim and k.shape[0] == 1:
        k = k[0]
    try:
        return np.ascontiguousarray(np.broadcast_to(k, scale.shape)).astype(scale.dtype)
    except ValueError:
        return None


#: Norms below this divide by it instead; a larger floor changes ordinary numbers.
_TINY = 1e-5
_NORM = P("ReduceL2", "x", C("axes"), name="norm")
_FLOORED = [P("Clip", _NORM, C("floor")), P("Max", _NORM, C("floor"))]


@rule("recompose-l2-norm")
class recompose_l2_norm:
    patterns = [
        P("Div", "x", _NORM),
        *(P("Div", "x", p) for p in _FLOORED),
        *(P("Div", "x", P("Expand", p, "shape")) for p in _FLOORED),
    ]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if m.axes.const.size != 1:
            return skip(tr("the norm is over several axes"), m.norm)
        if not m.norm.attrs.get("keepdims", 1):
            return skip(tr("the norm drops its axis"), m.norm)
        floor = number(m.bound["floor"]) if "floor" in m.bound else 0.0
        if floor is None or not 0 <= floor <= _TINY:
            return skip(tr("the lower bound of the norm is not tiny"), m.root)
        if m.root.output.shape != m.x.shape:
            return skip(tr("the result has another shape"), m.root)
        return None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        axis = int(m.axes.const.ravel()[0])
        return graph.replace(m.nodes, "LpNormalization", [m.x], {"axis": axis, "p": 2})
