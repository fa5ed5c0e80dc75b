"""Reshape → Transpose → Reshape that moves channels into space becomes one operator.

(N, C, H, W) → (N, C, r, r, H, W) → (0,1,4,2,5,3) → (N, C, Hr, Wr)     DepthToSpace CRD
(N, C, H, W) → (N, r, r, C, H, W) → (0,3,4,1,5,2) → (N, C, Hr, Wr)     DepthToSpace DCR

A channel shuffle stays as it is: the planner makes views of it and one copy.
"""

from __future__ import annotations

from typing import Any

from ..ir import Graph, Node
from ._core import Match, P, Skip, no_match, rule
from ._rewrite import static_shape


@rule("recompose-shuffles")
class recompose_shuffles:
    patterns = [
        P(
            "Reshape",
            P("Transpose", P("Reshape", "x", "split", name="first"), name="move"),
            "join",
        )
    ]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        return no_match(m.root) if _recognise(m) is None else None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        found = _recognise(m)
        assert found is not None
        return graph.replace(m.nodes, "DepthToSpace", [m.x], found)


def _recognise(m: Match) -> dict[str, Any] | None:
    """The attributes of the DepthToSpace, None when it is none."""
    x, split, out = (static_shape(v) for v in (m.x, m.first.output, m.root.output))
    if x is None or split is None or out is None or len(x) != 4:
        return None
    n, c, h, w = x
    perm = list(m.move.attrs.get("perm", []))
    if len(split) != 6:
        return None
    if perm == [0, 1, 4, 2, 5, 3] and split[2] == split[3]:
        r, want, mode = split[2], (n, split[1], split[2], split[2], h, w), "CRD"
    elif perm == [0, 3, 4, 1, 5, 2] and split[1] == split[2]:
        r, want, mode = split[1], (n, split[1], split[1], split[3], h, w), "DCR"
    else:
        return None
    if split != want or out != (n, c // (r * r), h * r, w * r):
        return None
    return {"blocksize": r, "mode": mode}
