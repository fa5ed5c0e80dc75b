"""A unary activation moves into the Conv, ConvTranspose, Gemm, MatMul or Add before it."""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node
from ..ops import op_names
from ..ops.activation import unary_params
from ._core import Match, P, Skip, rule, skip

FUSABLE = op_names(lambda op: op.fusable)
PRODUCERS = op_names(lambda op: op.takes_activation)
_MAX = float(np.finfo(np.float32).max)


@rule("fuse-activation")
class fuse_activation:
    """`activation_params` are the operator's attributes in order; Clip's are (low, high)."""

    patterns = [P(FUSABLE, P(PRODUCERS, name="base", more=True), name="act", more=True)]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if m.base.attrs.get("activation"):
            return skip(tr("an activation is fused already"), m.base)
        if m.base.output.dtype is not None and not m.base.output.dtype.is_float:
            return skip(
                tr("{dtype} is not a floating-point type", dtype=m.base.output.dtype), m.base
            )
        if _params(m.act) is None:
            return skip(tr("the bounds are not constant numbers"), m.act)
        return None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        params = _params(m.act)
        attrs = {**m.base.attrs, "activation": m.act.op}
        if params:
            attrs["activation_params"] = params
        inputs = list(m.base.inputs)
        return graph.replace([m.base, m.act], m.base.op, inputs, attrs, name=m.base.name)


def _params(node: Node) -> list[float] | None:
    """Parameters of a fused activation; None when they are not constants."""
    if node.op != "Clip":
        return unary_params(node.op, node.attrs)
    return clip_bounds(node)


def clip_bounds(node: Node) -> list[float] | None:
    """The two bounds of a Clip; None when they are not constants."""
    bounds = []
    for index, default in ((1, -_MAX), (2, _MAX)):
        value = node.input(index)
        if value is not None and (value.const is None or value.const.size != 1):
            return None
        bounds.append(default if value is None else float(value.const.ravel()[0]))  # type: ignore[union-attr]
    return [float(np.clip(b, -_MAX, _MAX)) for b in bounds]
