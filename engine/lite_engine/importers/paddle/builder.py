"""Program → Graph: runs the table of translations over the operators of a program."""

from __future__ import annotations

from collections.abc import Mapping

from lite_messages import tr, trn

from ...errors import ModelFormatError, ShapeError, UnsupportedOperatorError
from ...ir import DType, Graph, Shape, Value, format_shape
from . import translate  # noqa: F401  fills the table
from .program import FEED_LIST, FETCH_LIST, Block, Op, Program, Var
from .registry import find_translation, translate_block
from .scope import Scope

#: Gradient and optimiser operators: their presence says that this is a training program.
_TRAINING = ("sgd", "momentum", "adam", "adamw", "lars_momentum", "rmsprop", "merged_momentum")
_IMAGE_SYMBOLS = ("N", "C", "H", "W")


def build(program: Program, name: str, shapes: Mapping[str, Shape] | None = None) -> Graph:
    """The main block as a Graph; `shapes` replace the input shapes that the program declares.

    Raises ModelFormatError, UnsupportedOperatorError.
    """
    main = program.blocks[0]
    graph = Graph(name)
    scope = Scope(program, main, graph)
    _refuse_training(main)
    _refuse_unknown(program)
    feeds = [op for op in main.ops if op.type == "feed"]
    for op in sorted(feeds, key=lambda o: int(o.attr("col", 0))):
        graph.inputs.append(_input(scope, op, shapes or {}))
    translate_block(scope)
    fetches = [op for op in main.ops if op.type == "fetch"]
    outputs = []
    for op in sorted(fetches, key=lambda o: int(o.attr("col", 0))):
        variable = (op.inputs.get("X") or [""])[0]
        outputs.append((variable, scope.read(variable)))
    scope.emit.finish(outputs)
    if not graph.outputs:
        raise ModelFormatError(
            tr("the program has no fetch operators, so it has no outputs"),
            where=name,
            fix=tr(
                "export it for inference (paddle.jit.save or paddle.static.save_inference_model)"
            ),
        )
    graph.metadata.update({"format": "paddle", "producer": program.producer or "Paddle"})
    read = {
        n for block in program.blocks for op in block.ops for v in op.inputs.values() for n in v
    }
    graph.metadata["unused_weights"] = [name for name in program.params if name not in read]
    if program.version_text():
        graph.metadata["producer_version"] = program.version_text()
    return graph


def _input(scope: Scope, op: Op, shapes: Mapping[str, Shape]) -> Value:
    names = op.outputs.get("Out") or [""]
    var = scope.describe(names[0])
    if var is None or var.kind in (FEED_LIST, FETCH_LIST):
        raise ModelFormatError(
            tr("input {names!r} has no description in the program", names=names[0])
        )
    shape = _symbolic(var) or _shape_by_reader(scope, var.name)
    given = shapes.get(var.name)
    if given is not None and shape is not None and len(given) != len(shape):
        raise ShapeError(
            tr(
                "input {var} has rank {count}, got shape {shape}",
                var=var.name,
                count=len(shape),
                shape=format_shape(given),
            )
        )
    shape = shape if given is None else tuple(given)
    value = Value(scope.emit.unique(var.name), var.dtype or DType.F32, shape)
    scope.values[var.name] = value
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


def _shape_by_reader(scope: Scope, name: str) -> Shape | None:
    """An image of as many channels as the convolution takes that reads an undescribed input."""
    for op in scope.block.ops:
        if op.type == "conv2d" and op.inputs.get("Input") == [name]:
            weight = scope.program.params.get((op.inputs.get("Filter") or [""])[0])
            if weight is not None and weight.ndim == 4:
                return ("N", weight.shape[1] * int(op.attr("groups", 1) or 1), "H", "W")
    return None


def _refuse_training(block: Block) -> None:
    for op in block.ops:
        if op.type in _TRAINING or op.type.endswith("_grad"):
            raise UnsupportedOperatorError(
                tr("this is a training program (it has {type!r})", type=op.type),
                (op.type,),
                fix=tr(
                    "export it for inference with paddle.static.save_inference_model "
                    "or paddle.jit.save"
                ),
            )


def _refuse_unknown(program: Program) -> None:
    """All missing operators in one message instead of one per try."""
    missing = sorted(
        {op.type for block in program.blocks for op in block.ops if not find_translation(op.type)}
        - {"feed", "fetch"}
    )
    if missing:
        raise UnsupportedOperatorError(
            trn(
                "Paddle operator {missing} is not supported",
                "Paddle operators {missing} are not supported",
                len(missing),
                missing=", ".join(missing),
            ),
            tuple(missing),
            fix=trn(
                "replace it in the model, or export the part before",
                "replace them in the model, or export the part before",
                len(missing),
            ),
        )
