"""Reshape → Transpose → Reshape that moves channels becomes one operator.

(N, C, H, W) → (N, C, r, r, H, W) → (0,1,4,2,5,3) → (N, C, Hr, Wr)     DepthToSpace CRD
(N, C, H, W) → (N, r, r, C, H, W) → (0,3,4,1,5,2) → (N, C, Hr, Wr)     DepthToSpace DCR
(N, C, H, W) → (N, g, C/g, H, W) → (0,2,1,3,4) → (N, C, H, W)          ChannelShuffle
"""

from __future__ import annotations

from typing import Any

from ..ir import Graph, Node
from ..ops import find_op
from ._core import Match, P, Skip, no_match, rule, skip
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
        found = _recognise(m)
        if found is None:
            return no_match(m.root)
        if find_op(found[0]) is None:
            return skip(f"no operator {found[0]} in this engine", m.root)
        return None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        found = _recognise(m)
        assert found is not None
        return graph.replace(m.nodes, found[0], [m.x], found[1])


def _recognise(m: Match) -> tuple[str, dict[str, Any]] | None:
    x, split, out = (static_shape(v) for v in (m.x, m.first.output, m.root.output))
    if x is None or split is None or out is None or len(x) != 4:
        return None
    n, c, h, w = x
    perm = list(m.move.attrs.get("perm", []))
    if perm == [0, 2, 1, 3, 4] and out == x and split == (n, split[1], c // split[1], h, w):
        return "ChannelShuffle", {"group": split[1]}
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
    return "DepthToSpace", {"blocksize": r, "mode": mode}
