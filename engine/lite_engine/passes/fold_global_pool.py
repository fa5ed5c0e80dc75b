"""Means and averages over all of a map become GlobalAveragePool.

ReduceMean(x, spatial axes)        GlobalAveragePool(x)         (+ Flatten without keepdims)
AveragePool of the map's size      GlobalAveragePool(x)
"""

from __future__ import annotations

from lite_messages import tr

from ..ir import Graph, Node
from ._core import C, Match, P, Skip, no_match, rule, skip
from ._quantised import rounding
from ._rewrite import static_shape


@rule("fold-reduce-mean")
class fold_reduce_mean:
    patterns = [P("ReduceMean", "x", C("axes"))]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        rank = None if m.x.shape is None else len(m.x.shape)
        if rank is None or rank < 4:
            return no_match(m.root)
        if {int(a) % rank for a in m.axes.const.ravel()} != set(range(2, rank)):
            return no_match(m.root)
        if m.x.dtype is not None and not m.x.dtype.is_float:
            return skip(tr("{dtype} is not a floating-point type", dtype=m.x.dtype), m.root)
        return None

    def rewrite(self, graph: Graph, m: Match) -> list[Node]:
        if m.root.attrs.get("keepdims", 1):
            return [graph.replace([m.root], "GlobalAveragePool", [m.x])]
        name, sources = m.root.name, m.root.sources
        pool = graph.add(
            "GlobalAveragePool", [m.x], name=graph.unique(name), sources=sources, before=m.root
        )
        return [pool, graph.replace([m.root], "Flatten", [pool.output], {"axis": 1})]


@rule("fold-average-pool")
class fold_average_pool:
    patterns = [P("AveragePool", "x")]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        shape, attrs = static_shape(m.x), m.root.attrs
        if shape is None or list(shape[2:]) != list(attrs.get("kernel_shape", [])):
            return no_match(m.root)
        out = static_shape(m.root.output)
        whole = out is not None and set(out[2:]) == {1}
        if any(attrs.get("pads", [])) or not whole or set(attrs.get("dilations", [])) - {1}:
            return skip(tr("the window is padded, dilated or moves"), m.root)
        q = graph.sole_reader(m.root.output)
        if q is not None and q.op == "QuantizeLinear" and rounding(q):
            return skip(tr("LiteRT rounds average pooling and means differently"), m.root)
        return None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        return graph.replace([m.root], "GlobalAveragePool", [m.x])
