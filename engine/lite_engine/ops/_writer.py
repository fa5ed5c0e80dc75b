"""How an operator is written out in others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..ir import Dim, Graph, Node, TypeInfo, Value
from ._helpers import reshape_target
from ._inferred import infer_node

Types = list[TypeInfo | None]
#: Whether a node of a specialised graph can be written out, and what does so.
Condition = Callable[[Node, Types], bool]
Rewrite = Callable[[Graph, Node, Types], None]


class Writer:
    """Adds nodes before one, typed, with its sources; at the end where there is none."""

    def __init__(self, graph: Graph, node: Node | None) -> None:
        self.graph, self.node = graph, node

    def __call__(self, op: str, *inputs: Value | np.ndarray | None, **attrs: object) -> Value:
        values = [self.graph.constant(v) if isinstance(v, np.ndarray) else v for v in inputs]
        stem, sources = (self.node.name, self.node.sources) if self.node else ("end", ())
        made = self.graph.add(
            op, values, dict(attrs), before=self.node, sources=sources,
            name=self.graph.unique(f"{stem}/{op}"),
        )  # fmt: skip
        for value, info in zip(made.outputs, infer_node(made), strict=False):
            value.dtype, value.shape = info.dtype, info.shape
        return made.output

    def shaped(self, value: Value, *shape: Dim) -> Value:
        target = sizes(shape, value)
        if value.const is not None and all(isinstance(size, int) for size in shape):
            return self.graph.constant(value.const.reshape(target))
        return self("Reshape", value, target)


def sizes(shape: Sequence[Dim], value: Value) -> np.ndarray:
    """What a Reshape of a value to this shape reads, of which at most one size is open and not
    where it was."""
    fixed = all(isinstance(size, int) for size in shape)
    return np.array(shape if fixed else reshape_target(shape, value.shape), np.int64)
