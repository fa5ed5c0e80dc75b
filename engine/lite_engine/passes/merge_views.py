"""Chains of Transpose, and of Reshape and its kin, become one or none.

Transpose(Transpose(x, p), q)       Transpose(x, p[q]), or x when that is no change
Reshape(Squeeze(x), s)              Reshape(x, s)
Transpose that moves sizes of 1     Reshape
"""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node
from ..ops._helpers import reshape_target
from ._core import Match, P, Skip, no_match, rule, skip
from ._layout_rules import perm_of
from ._rewrite import static_shape

#: Views that keep the order of elements.
RESHAPES = ("Reshape", "Flatten", "Squeeze", "Unsqueeze")


@rule("merge-transposes")
class merge_transposes:
    patterns = [P("Transpose", P("Transpose", "x", name="before", shared=True))]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        first, second = perm_of(m.before), perm_of(m.root)
        if not first or len(first) != len(second):
            return skip(tr("a permutation is not given"), m.root)
        return None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        first = perm_of(m.before)
        perm = [first[q] for q in perm_of(m.root)]
        return graph.replace([m.before, m.root], "Transpose", [m.x], {"perm": perm})


@rule("merge-reshapes")
class merge_reshapes:
    patterns = [
        P(RESHAPES, P(RESHAPES, "x", name="before", more=True, shared=True), more=True),
    ]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if _target(m) is None:
            return skip(tr("more than one dimension of the result is not known"), m.root)
        return None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        target = _target(m)
        assert target is not None
        shape = graph.constant(np.array(target, np.int64), graph.unique(f"{m.root.name}.shape"))
        return graph.replace([m.before, m.root], "Reshape", [m.x, shape])


def _target(m: Match) -> list[int] | None:
    shape = m.root.output.shape
    return None if shape is None else reshape_target(shape, m.x.shape)


@rule("fold-transpose-of-ones")
class fold_transpose_of_ones:
    """A Transpose that keeps the order of the axes longer than 1 moves no number."""

    patterns = [P("Transpose", "x")]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        shape, perm = static_shape(m.x), perm_of(m.root)
        if shape is None or not perm or 0 in shape:  # a Reshape to 0 copies a size of its input
            return no_match(m.root)
        long = [p for p in perm if shape[p] != 1]
        if long != sorted(long):
            return no_match(m.root)
        return None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        shape = static_shape(m.x)
        assert shape is not None
        target = [shape[p] for p in perm_of(m.root)]
        value = graph.constant(np.array(target, np.int64), graph.unique(f"{m.root.name}.shape"))
        return graph.replace([m.root], "Reshape", [m.x, value])
