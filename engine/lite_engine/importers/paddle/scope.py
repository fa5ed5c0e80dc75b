"""Variables of a program while it is translated.

Variables may be written more than once (in-place operators, memory reuse in `.nb` files), so each
name maps to the Value it holds at that point.
"""

from __future__ import annotations

from lite_messages import tr

from ...errors import ModelFormatError
from ...ir import Graph, Value
from .._emit import Emitter
from .program import Block, Op, Program, Var

MAX_DEPTH = 16


class Scope:
    """The variables of one block, and the graph that its operators are emitted into. Sub-blocks get
    a Scope of their own."""

    def __init__(
        self, program: Program, block: Block, graph: Graph, outer: Scope | None = None
    ) -> None:
        self.program = program
        self.block = block
        self.graph = graph
        self.emit = Emitter(graph)
        self.outer = outer
        self.depth: int = 0 if outer is None else outer.depth + 1
        if self.depth > MAX_DEPTH:
            raise ModelFormatError(
                tr("blocks are nested deeper than {max_depth}", max_depth=MAX_DEPTH)
            )
        self.values: dict[str, Value] = {}
        #: values that carry a variable's name already
        self.named: set[int] = set()
        #: tensor arrays, and the blocks whose results a later select_input chooses from
        self.arrays: dict[str, list[Value]] = {} if outer is None else outer.arrays
        self.branches: dict[str, Op] = {}

    def describe(self, name: str) -> Var | None:
        var = self.block.vars.get(name)
        return var if var is not None or self.outer is None else self.outer.describe(name)

    def has(self, name: str) -> bool:
        return (
            name in self.values
            or name in self.program.params
            or (self.outer is not None and self.outer.has(name))
        )

    def is_read(self, name: str) -> bool:
        """True when an operator of this block reads the variable."""
        return any(name in names for op in self.block.ops for names in op.inputs.values())

    def read(self, name: str) -> Value:
        """The Value a variable holds now. Raises ModelFormatError when nothing wrote it."""
        if name in self.values:
            return self.values[name]
        if self.outer is not None:
            return self.outer.read(name)
        array = self.program.params.get(name)
        if array is None:
            raise ModelFormatError(tr("variable {name!r} is read before it is written", name=name))
        self.values[name] = Value(self.emit.unique(name), const=array)
        return self.values[name]

    def bind(self, name: str, value: Value) -> None:
        """`name` holds `value` from here on; a fresh node's output takes the variable's name."""
        self.values[name] = value
        if value.producer is None or id(value) in self.named:
            return
        self.named.add(id(value))
        value.name = self.emit.unique(name)
        var = self.describe(name)
        if var is None or self.program.reuses_variables:
            return
        value.dtype = value.dtype or var.dtype
        if value.shape is None and var.shape is not None:
            value.shape = tuple(None if d < 0 else d for d in var.shape)

    def child(self, index: int, graph: Graph) -> Scope:
        """The scope of a sub-block. Raises ModelFormatError for a block that is not there."""
        if not 0 < index < len(self.program.blocks):
            raise ModelFormatError(
                tr(
                    "block {index} of {count} does not exist",
                    index=index,
                    count=len(self.program.blocks),
                )
            )
        return Scope(self.program, self.program.blocks[index], graph, self)
