"""Sizes that depend on data, bounded: how programs run what suppressions and NonZero find.

A plan's sizes are fixed. A value with n rows, n found while it runs, therefore gets as many as
there can be, N; n is a value of its own beside it, and what stands in the other N − n rows is open.
Most operators work row by row and need nothing else. Those in which rows meet (a maximum, a
suppression) read neutral values in the open ones, and those that ask for sizes get n. The rules are
in `_bound_rows.py`, `_bound_images.py`, `_bound_meetings.py` and, for arithmetic with sizes,
`_bound_sizes.py`.
"""

from __future__ import annotations

from ..ir import Graph, Node
from ._bound_images import IMAGES
from ._bound_meetings import MEETINGS
from ._bound_rows import ROWS, alone, along, elementwise
from ._bound_sizes import SIZES
from ._bounding import Bounding, Rule, Unbounded, is_open
from ._core import find_op

__all__ = ["Unbounded", "bounded", "bounded_so_far", "is_open"]


def bounded(graph: Graph) -> Graph:
    """A copy of a specialised graph in which every size is fixed. Results whose number of rows
    depends on data have as many as there can be; those that are not there come last and hold −1
    (0 where the type has none). Raises Unbounded that names the node."""
    out, refused = bounded_so_far(graph)
    for error in refused.values():
        raise error
    return out


def bounded_so_far(graph: Graph) -> tuple[Graph, dict[str, Unbounded]]:
    """The same as far as there are bounds, and why layers have none, by name. Such a graph tells
    which layers those are, and is not to be run."""
    out = graph.copy()
    walk = Bounding(out)
    refused = walk.run(SIZES, lambda node: _rule_of(walk, node))
    out.remove_unread()
    return out, refused


def _rule_of(walk: Bounding, node: Node) -> Rule:
    own = MEETINGS.get(node.op) or ROWS.get(node.op) or IMAGES.get(node.op)
    if own is not None:
        return own
    op = find_op(node.op)
    if op is not None and any(walk.of(v) for v in node.inputs):
        if op.layout == "elementwise":
            return elementwise
        if op.layout == "axis" and op.axis_attrs == ("axis",):
            return along
    return alone
