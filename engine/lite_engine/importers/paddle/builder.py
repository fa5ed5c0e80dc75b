"""Program → Graph: runs the table of translations over the operators of a program.

Variables may be written more than once (in-place operators, memory reuse in `.nb` files), so each
name maps to the Value it holds at that point.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...errors import ModelFormatError, ShapeError, UnsupportedOperatorError
from ...ir import DType, Graph, Shape, Value, format_shape
from .._emit import Emitter
from . import translate  # noqa: F401  fills the table
from .program import FEED_LIST, FETCH_LIST, Block, Op, Program, Var
from .registry import Call, find_translation

MAX_DEPTH = 16
#: Gradient and optimiser operators: their presence says that this is a training program.
_TRAINING = ("sgd", "momentum", "adam", "adamw", "lars_momentum", "rmsprop", "merged_momentum")
_IMAGE_SYMBOLS = ("N", "C", "H", "W")


class Builder:
    """Translates one block into one graph; sub-blocks get a Builder of their own."""

    def __init__(
        self, program: Program, block: Block, graph: Graph, outer: Builder | None = None
    ) -> None:
        self.program = program
        self.block = block
        self.graph = graph
        self.emit = Emitter(graph)
        self.outer = outer
        self.depth: int = 0 if outer is None else outer.depth + 1
        if self.depth > MAX_DEPTH:
            raise ModelFormatError(f"blocks are nested deeper than {MAX_DEPTH}")
        self.values: dict[str, Value] = {}
        #: values that carry a variable's name already
        self.named: set[int] = set()
        #: tensor arrays, and the blocks whose results a later select_input chooses from
        self.arrays: dict[str, list[Value]] = {} if outer is None else outer.arrays
        self.branches: dict[str, Op] = {}

    # ---- variables
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
            raise ModelFormatError(f"variable {name!r} is read before it is written")
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

    # ---- operators
    def run(self) -> None:
        for op, source in zip(self.block.ops, self.block.sources()):
            if op.type not in ("feed", "fetch"):
                self.translate(op, source)

    def translate(self, op: Op, source: str) -> None:
        fn = find_translation(op.type)
        if fn is None:
            raise UnsupportedOperatorError(
                "this operator is not supported", (op.type,), where=source
            )
        self.emit.source = source
        fn(Call(self, op, source))

    def child(self, index: int, graph: Graph) -> Builder:
        """A builder for a sub-block. Raises ModelFormatError for a block that is not there."""
        if not 0 < index < len(self.program.blocks):
            raise ModelFormatError(f"block {index} of {len(self.program.blocks)} does not exist")
        return Builder(self.program, self.program.blocks[index], graph, self)


def build(program: Program, name: str, shapes: Mapping[str, Shape] | None = None) -> Graph:
    """The main block as a Graph; `shapes` replace the input shapes that the program declares.

    Raises ModelFormatError, UnsupportedOperatorError.
    """
    main = program.blocks[0]
    graph = Graph(name)
    builder = Builder(program, main, graph)
    _refuse_training(main)
    _refuse_unknown(program)
    feeds = [op for op in main.ops if op.type == "feed"]
    for op in sorted(feeds, key=lambda o: int(o.attr("col", 0))):
        graph.inputs.append(_input(builder, op, shapes or {}))
    builder.run()
    fetches = [op for op in main.ops if op.type == "fetch"]
    outputs = []
    for op in sorted(fetches, key=lambda o: int(o.attr("col", 0))):
        variable = (op.inputs.get("X") or [""])[0]
        outputs.append((variable, builder.read(variable)))
    builder.emit.finish(outputs)
    if not graph.outputs:
        raise ModelFormatError(
            "the program fetches nothing",
            where=name,
            fix="export it for inference (paddle.jit.save or paddle.static.save_inference_model)",
        )
    graph.metadata.update({"format": "paddle", "producer": program.producer or "Paddle"})
    read = {
        n for block in program.blocks for op in block.ops for v in op.inputs.values() for n in v
    }
    graph.metadata["unused_weights"] = [name for name in program.params if name not in read]
    if program.version_text():
        graph.metadata["producer_version"] = program.version_text()
    return graph


def _input(builder: Builder, op: Op, shapes: Mapping[str, Shape]) -> Value:
    names = op.outputs.get("Out") or [""]
    var = builder.describe(names[0])
    if var is None or var.kind in (FEED_LIST, FETCH_LIST):
        raise ModelFormatError(f"input {names[0]!r} is not described")
    shape = _symbolic(var) or _shape_by_reader(builder, var.name)
    given = shapes.get(var.name)
    if given is not None and shape is not None and len(given) != len(shape):
        raise ShapeError(f"input {var.name} has rank {len(shape)}, got shape {format_shape(given)}")
    shape = shape if given is None else tuple(given)
    value = Value(builder.emit.unique(var.name), var.dtype or DType.F32, shape)
    builder.values[var.name] = value
    return value


def _symbolic(var: Var) -> Shape | None:
    """-1 becomes a symbol: N, H, W for images, `name.axis` otherwise."""
    if var.shape is None or (not var.shape and var.dtype is None):
        return None
    image = len(var.shape) == 4

    def symbol(axis: int) -> str:
        if axis == 0:
            return "N"
        return _IMAGE_SYMBOLS[axis] if image else f"{var.name}.{axis}"

    return tuple(symbol(i) if d < 0 else d for i, d in enumerate(var.shape))


def _shape_by_reader(builder: Builder, name: str) -> Shape | None:
    """An image of as many channels as the convolution takes that reads an undescribed input."""
    for op in builder.block.ops:
        if op.type == "conv2d" and op.inputs.get("Input") == [name]:
            weight = builder.program.params.get((op.inputs.get("Filter") or [""])[0])
            if weight is not None and weight.ndim == 4:
                return ("N", weight.shape[1] * int(op.attr("groups", 1) or 1), "H", "W")
    return None


def _refuse_training(block: Block) -> None:
    for op in block.ops:
        if op.type in _TRAINING or op.type.endswith("_grad"):
            raise UnsupportedOperatorError(
                f"this is a training program (it has {op.type!r})",
                (op.type,),
                fix="export it for inference with paddle.static.save_inference_model or "
                "paddle.jit.save",
            )


def _refuse_unknown(program: Program) -> None:
    """All missing operators in one message instead of one per try."""
    missing = sorted(
        {op.type for block in program.blocks for op in block.ops if not find_translation(op.type)}
        - {"feed", "fetch"}
    )
    if missing:
        raise UnsupportedOperatorError(
            f"Paddle operator{'s' * (len(missing) > 1)} {', '.join(missing)} "
            f"{'are' if len(missing) > 1 else 'is'} not supported",
            tuple(missing),
            fix=f"replace {'them' if len(missing) > 1 else 'it'} in the model, or export "
            "the part before",
        )
