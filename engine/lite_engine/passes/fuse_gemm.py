"""Matrix products with a constant weight, and the bias or scale that follows, become Gemm.

MatMul(x, W)                           Gemm(x, W)                           x of rank 2
MatMul(x, W)         Reshape → Gemm(x, W) → Reshape                         x of higher rank
Gemm(x, W, c)·k + a                    Gemm(x, W·k, c·k + a)                per column
"""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node, Value
from ..ops import op_names
from ._core import C, Match, P, Skip, infer_new, no_match, rule, skip
from ._rewrite import constant_like, per_channel, rank_of
from .fuse_activation import FUSABLE


@rule("recompose-gemm")
class recompose_gemm:
    """A Gemm takes what follows it. The two Reshapes around one of higher rank are views: they cost
    nothing."""

    patterns = [P("MatMul", "x", C("w"))]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if m.root.attrs.get("activation"):
            return skip(tr("an activation is fused already"), m.root)
        if m.w.const.ndim != 2:
            return skip(tr("the weight is a stack of matrices"), m.root)
        if m.w.const.dtype.kind != "f" or not m.w.const.size:
            return no_match(m.root)
        rank = rank_of(m.x)
        if rank is None or rank < 2:
            return skip(tr("the input's rank is not known or below 2"), m.root)
        if 0 in m.x.shape:
            return no_match(m.root)  # nothing to compute
        return None

    def rewrite(self, graph: Graph, m: Match) -> list[Node]:
        product = m.root
        inner, columns = m.w.const.shape
        if len(m.x.shape) == 2:
            return [graph.replace([product], "Gemm", [m.x, m.w])]
        name = product.name
        rows = graph.constant(np.array([-1, inner], np.int64), graph.unique(f"{name}.rows"))
        shape = self._shape(graph, m, columns)
        flat = graph.add("Reshape", [m.x, rows], name=graph.unique(f"{name}.flat"), before=product)
        gemm = graph.add(
            "Gemm", [flat.output, m.w], name=graph.unique(name), sources=product.sources,
            before=product,
        )  # fmt: skip
        view_name = graph.unique(f"{name}.view")
        view = graph.replace([product], "Reshape", [gemm.output, shape], name=view_name)
        if shape.const is None:
            view.attrs["allowzero"] = 1  # sizes that are computed may be 0
        view.output.shape = (*m.x.shape[:-1], columns)
        gemm.name = name  # free now: people know the product by it
        return [flat, gemm, view]

    def _shape(self, graph: Graph, m: Match, columns: int) -> Value:
        """Of the product; where several sizes are open, those that the input turns out to have."""
        name, dims = m.root.name, [d if isinstance(d, int) else -1 for d in m.x.shape[:-1]]
        if dims.count(-1) < 2:
            sizes = np.array([*dims, columns], np.int64)
            return graph.constant(sizes, graph.unique(f"{name}.shape"))
        own = {"start": 0, "end": len(dims)}
        rows = graph.add("Shape", [m.x], own, name=graph.unique(f"{name}.sizes"), before=m.root)
        last = graph.constant(np.array([columns], np.int64), graph.unique(f"{name}.columns"))
        both = [rows.output, last]
        made = graph.add(
            "Concat", both, {"axis": 0}, name=graph.unique(f"{name}.shape"), before=m.root
        )
        infer_new([rows, made])
        return made.output


@rule("fuse-gemm-affine")
class fuse_gemm_affine:
    """A number per column behind a product, or behind its rows in another shape."""

    _GEMM = P("Gemm", "x", C("w"), C("c?"), name="gemm")
    patterns = [
        P(("Add", "Sub", "Mul", "Div"), rows, C("k"))
        for rows in (_GEMM, P("Reshape", _GEMM, "shape", name="view"))
    ]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if m.gemm.attrs.get("activation") or m.root.attrs.get("activation"):
            return skip(tr("an activation comes between"), m.root)
        if _per_column(m) is None:
            return skip(tr("the constant is not one number per column"), m.root)
        c = m.array("c")
        if c is not None and per_channel(c, _columns(m), 2) is None:
            return skip(tr("the bias is not one number per column"), m.gemm)
        if m.root.op == "Div" and not m.k.const.all():
            return skip(tr("division by zero"), m.root)
        return None

    def rewrite(self, graph: Graph, m: Match) -> list[Node]:
        columns = _columns(m)
        k = _per_column(m)
        c = m.array("c")
        assert k is not None
        old = np.zeros(columns, k.dtype) if c is None else per_channel(c, columns, 2)
        assert old is not None
        bias: np.ndarray = old * np.float32(m.gemm.attrs.get("beta", 1.0))
        attrs = {key: v for key, v in m.gemm.attrs.items() if key != "beta"}
        weight = m.w
        if m.root.op in ("Mul", "Div"):
            scale = k if m.root.op == "Mul" else 1 / k
            bias = bias * scale
            per_row = m.gemm.attrs.get("transB", 0)
            scaled = m.w.const * (scale[:, None] if per_row else scale[None, :])
            weight = constant_like(graph, scaled.astype(m.w.const.dtype), m.w, "weight")
        else:
            bias = bias + (k if m.root.op == "Add" else -k)
        new_bias = constant_like(graph, bias.astype(k.dtype), m.bound.get("c") or m.k, "bias")
        inputs = [m.x, weight, new_bias]
        if "view" not in m.bound:
            return [graph.replace([m.gemm, m.root], "Gemm", inputs, attrs, name=m.gemm.name)]
        gemm = graph.replace([m.gemm], "Gemm", inputs, attrs)
        gemm.sources = tuple(dict.fromkeys((*gemm.sources, *m.root.sources)))
        view = graph.replace([m.view, m.root], "Reshape", [gemm.output, m.shape], m.view.attrs)
        return [gemm, view]


def _per_column(m: Match) -> np.ndarray | None:
    """The constant as a number for each column, None where it is another one."""
    columns, constant = _columns(m), m.k.const
    if "view" not in m.bound:
        return per_channel(constant, columns, 2)
    shape = m.view.output.shape
    if shape is None or constant.ndim > len(shape):
        return None
    if constant.size == 1 or (
        shape[-1] == constant.size == columns and constant.shape[-1] == columns
    ):
        return np.broadcast_to(constant.ravel(), (columns,))
    return None


def _columns(m: Match) -> int:
    return int(m.w.const.shape[0 if m.gemm.attrs.get("transB", 0) else 1])


_VIEWS = op_names(lambda op: op.layout == "view" and op.name not in ("Identity", "Dropout"))


@rule("hoist-activation")
class hoist_activation:
    """activation(view(product)) → view(activation(product)), so that it can be fused."""

    patterns = [
        P(
            FUSABLE,
            P(_VIEWS, P(("Conv", "ConvTranspose", "Gemm"), name="base", more=True), name="view",
              more=True),
            name="act",
            more=True,
        )
    ]  # fmt: skip

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if m.base.attrs.get("activation"):
            return skip(tr("an activation is fused already"), m.base)
        return None

    def rewrite(self, graph: Graph, m: Match) -> list[Node]:
        rest: list[Value | None] = list(m.act.inputs[1:])
        name = graph.unique(m.act.name)
        act = graph.add(
            m.act.op, [m.base.output, *rest], m.act.attrs, name=name, sources=m.act.sources,
            before=m.view,
        )  # fmt: skip
        act.output.dtype, act.output.shape = m.base.output.dtype, m.base.output.shape
        inputs: list[Value | None] = [act.output, *m.view.inputs[1:]]
        sources = m.view.sources
        view = graph.replace([m.view, m.act], m.view.op, inputs, m.view.attrs, name=m.view.name)
        view.sources = sources
        return [act, view]
