"""Writing `.nb` files that Paddle-Lite loads.

    write_nb(graph, "m.nb", targets=["arm"], weight_bits=8)

A graph is optimised by the passes that Paddle-Lite's operators can express, lowered to Paddle
operators, given a kernel per operator for the target, and encoded. Same graph, same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from lite_messages import tr

from ...errors import UsageError
from ...files import write_file
from ...importers.paddle.program import Program
from ...ir import Graph, Shape
from ...ops import specialise
from ...ops.expand import expand_missing, is_ours
from ...passes import optimize_graph
from ...passes.pipeline import CLEAN, FINISH, FUSE, RECOMPOSE
from . import lower_composed, lower_detection, lower_nn, lower_tensor  # noqa: F401  fill the table of lowerings
from .container import encode_nb
from .int8_layers import Int8Layers, layers_in_int8
from .lower import lower, lowered_ops
from .place import place
from .prints import insert_prints
from .quantize import quantize_weights
from .ranges import Ranges, float_form, weight_steps
from .sparse import SparseLayers, sparse_convolutions

_PASSES = [*CLEAN, *RECOMPOSE, *FUSE, *FINISH]


def nb_program(graph: Graph, shapes: Mapping[str, Shape] | None = None) -> Program:
    """The Paddle program of a graph. Symbolic dimensions without a given size become 1, and -1 in
    the file. Raises UnsupportedOperatorError, ShapeError."""
    return _lowered(graph, shapes)[0]


def _lowered(graph: Graph, shapes: Mapping[str, Shape] | None) -> tuple[Program, Ranges]:
    """The program in floats, and the ranges that a network in integers gave."""
    fixed = {}
    for value in graph.inputs:
        given = (shapes or {}).get(value.name, value.shape or ())
        fixed[value.name] = tuple(d if isinstance(d, int) else 1 for d in given)
    ready = specialise(graph, fixed)
    expand_missing(ready, lambda node, _: not is_ours(node))
    ranges = float_form(ready)
    ranges.weights = weight_steps(graph)
    ready = optimize_graph(ready, passes=_PASSES)
    ranges.spread(ready)
    program = lower(ready)
    for value in graph.inputs:
        declared = tuple(d if isinstance(d, int) else -1 for d in value.shape or ())
        if value.name in program.blocks[0].vars and value.name not in (shapes or {}):
            program.blocks[0].vars[value.name].shape = declared
    return program, ranges


def write_nb(
    graph: Graph,
    path: str | Path,
    *,
    targets: Sequence[str] = ("arm",),
    weight_bits: int | None = None,
    fp16: bool = False,
    shapes: Mapping[str, Shape] | None = None,
    prints: Sequence[str] | None = None,
    sparse: SparseLayers | None = None,
    int8: Int8Layers | None = None,
) -> Path:
    """Writes a `.nb` file (to a temporary name, then renamed) and answers its path.

    `targets` as Paddle-Lite has them: the file holds one kernel per operator, OpenCL's where it is
    listed and has one, else those of the first CPU. `weight_bits` 8 or 16 stores the weights of
    convolutions and matrix products as integers; `fp16` computes in half precision on arm;
    `prints` adds operators that print these values when the file runs, [] all layers' values;
    `sparse` stores 1x1 convolutions with enough zeros for Paddle-Lite's sparse kernels of arm, and
    is told which. Layers of a network in integers compute in int8 on the CPUs, in fp32; `int8` is
    told which.
    Raises UnsupportedOperatorError naming nodes, UsageError.
    """
    if weight_bits not in (None, 8, 16):
        raise UsageError(
            tr("weights must have 8 or 16 bits, got {weight_bits}", weight_bits=weight_bits)
        )
    program, ranges = _lowered(graph, shapes)
    if sparse is not None:
        sparse_convolutions(program, targets, sparse)
    if prints is not None:
        insert_prints(program, prints)
    place(program, targets, fp16=fp16)
    if ranges.steps:
        layers_in_int8(program, ranges, int8 if int8 is not None else Int8Layers())
    if weight_bits:
        quantize_weights(program, weight_bits)
    data = encode_nb(program)
    return write_file(path, data)


__all__ = ["Int8Layers", "SparseLayers", "lowered_ops", "nb_program", "write_nb"]
