"""Products with turned probabilities become those that attention is made of.

    v·softmax(s)ᵀ  =  (softmax(s)·vᵀ)ᵀ

as networks write it whose values have their channels first (Yun and Ro, SHViT, 2024; Liu et al.,
EfficientViT, 2023; the attention of YOLO from version 10 on).
"""

from __future__ import annotations

from ..ir import Graph, Node
from ._core import Match, P, Skip, infer_new, no_match, rule
from ._rewrite import rank_of
from .fuse_attention import is_product


@rule("recompose-turned-products")
class recompose_turned_products:
    patterns = [P("MatMul", "v", P("Transpose", P("Softmax", "s", name="softmax"), name="turn"))]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        rank = rank_of(m.softmax.output)
        same = rank is not None and rank >= 2 and rank_of(m.v) == rank
        last = rank is not None and m.softmax.attrs.get("axis", -1) in (-1, rank - 1)
        turned = list(m.turn.attrs.get("perm") or [])
        if not same or not last or turned != _swap(rank or 2) or m.root.attrs.get("activation"):
            return no_match(m.root)
        scores = not m.v.is_const and is_product(graph, m.s)
        return None if scores else no_match(m.root)

    def rewrite(self, graph: Graph, m: Match) -> Node:
        perm, sources = _swap(rank_of(m.v) or 2), (*m.turn.sources, *m.root.sources)
        values = graph.add(
            "Transpose", [m.v], {"perm": perm}, before=m.root, sources=m.root.sources
        )
        made = graph.add(
            "MatMul", [m.softmax.output, values.output], before=m.root, sources=sources
        )
        infer_new([values, made])
        return graph.replace([m.turn, m.root], "Transpose", [made.output], {"perm": perm})


def _swap(rank: int) -> list[int]:
    return [*range(rank - 2), rank - 1, rank - 2]
