"""Gemm + Add of a tensor of the same shape → Gemm with that tensor as its `residual` input.

What lies between them is undone for the residual, where that costs nothing: a Reshape, and behind
it a Transpose that brings the columns to axis 1, where images have their channels.

Reshape(Gemm(x, W, b)) + r                 Reshape(Gemm(x, W, b, Reshape(r)))
Transpose(Reshape(Gemm(x, W, b))) + r      Transpose(Reshape(Gemm(x, W, b, Reshape(Transpose(r)))))
"""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node, Value
from ..ops import residual_of
from ._core import C, Match, P, Skip, rule, skip
from ._rewrite import same_shape, static_shape

_GEMM = P("Gemm", "x", C("w"), C("c?"), name="gemm")
_VIEW = P("Reshape", _GEMM, C("shape"), name="view")


@rule("fuse-gemm-residual")
class fuse_gemm_residual:
    """Of two products that meet, the one that runs last takes the other's output."""

    patterns = [
        P("Add", made, "other", name="add")
        for made in (_GEMM, _VIEW, P("Transpose", _VIEW, name="turn"))
    ]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if m.gemm.attrs.get("activation"):
            return skip(tr("an activation comes between"), m.gemm)
        if m.other.is_const:
            return skip(tr("the other operand is constant"), m.add)
        if not same_shape(_behind(m).output, m.other):
            return skip(tr("the operands differ in shape, or it is not known"), m.add)
        columns = _columns(m)
        if columns is None:
            return skip(tr("the number of columns is not known"), m.gemm)
        bias = m.array("c")
        if bias is not None and bias.size not in (1, columns):
            return skip(tr("the bias is not one number per column"), m.gemm)
        if "turn" in m.bound and _perm(m) != _to_channels_first(len(m.other.shape)):
            return skip(tr("the rows are put into another order"), m.turn)
        rival = _maker(m.other)
        if rival is not None and _takes(graph, rival, m):
            return skip(tr("the other product runs last and takes this one's output"), m.gemm)
        return None

    def rewrite(self, graph: Graph, m: Match) -> list[Node]:
        # An activation behind the addition comes along.
        name, attrs = m.gemm.name, {**m.gemm.attrs, **m.add.attrs}
        inputs = [m.x, m.w, m.bound.get("c"), m.other]
        if "view" not in m.bound:
            return [graph.replace([m.gemm, m.add], "Gemm", inputs, attrs, name=name)]
        before: list[Node] = []
        if "turn" in m.bound:
            back = {"perm": np.argsort(_perm(m)).tolist()}
            before.append(_added(graph, m, "Transpose", [m.other], ".turned", back))
            inputs[3] = before[-1].output
        flat = np.array(static_shape(m.gemm.output) or (-1, _columns(m)), np.int64)
        rows = graph.constant(flat, graph.unique(f"{name}.rows"))
        before.append(_added(graph, m, "Reshape", [inputs[3], rows], ".flat"))
        inputs[3] = before[-1].output
        gemm = _added(graph, m, "Gemm", inputs, "", attrs)
        gemm.sources = tuple(dict.fromkeys((*m.gemm.sources, *m.add.sources)))
        if "turn" not in m.bound:
            view = graph.replace(
                m.nodes, "Reshape", [gemm.output, m.shape], m.view.attrs, name=m.view.name
            )
            return [*before, gemm, view]
        view = _added(graph, m, "Reshape", [gemm.output, m.shape], ".view")
        turn = graph.replace(m.nodes, "Transpose", [view.output], m.turn.attrs, name=m.turn.name)
        return [*before, gemm, view, turn]


def _added(
    graph: Graph,
    m: Match,
    op: str,
    inputs: list[Value | None],
    ending: str,
    attrs: dict[str, object] | None = None,
) -> Node:
    """A new node before the addition."""
    name = graph.unique(f"{m.gemm.name}{ending}")
    return graph.add(op, inputs, attrs, name=name, before=m.add)


def _columns(m: Match) -> int | None:
    columns = (m.gemm.output.shape or (None,))[-1]
    return columns if isinstance(columns, int) and columns > 0 else None


def _behind(m: Match) -> Node:
    """What makes the addition's operand."""
    last: Node = m.bound.get("turn") or m.bound.get("view") or m.gemm
    return last


def _perm(m: Match) -> list[int]:
    return [int(axis) for axis in m.turn.attrs.get("perm") or []]


def _to_channels_first(rank: int) -> list[int]:
    return [0, rank - 1, *range(1, rank - 1)]


def _maker(value: Value) -> Node | None:
    """The Gemm that makes a value, or what views make of its output."""
    node = value.producer
    while node is not None and node.op in ("Reshape", "Transpose"):
        node = node.inputs[0].producer if node.inputs[0] is not None else None
    return node if node is not None and node.op == "Gemm" else None


def _takes(graph: Graph, rival: Node, m: Match) -> bool:
    """Could the product behind the other operand be fused, and does it run later?"""
    free = residual_of(rival) is None and not rival.attrs.get("activation")
    alone = graph.sole_reader(rival.output) is not None and graph.sole_reader(m.other) is m.add
    return free and alone and graph.position(rival) > graph.position(m.gemm)
