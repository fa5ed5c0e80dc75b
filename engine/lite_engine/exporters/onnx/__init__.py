"""Graph → `model.onnx`, without the onnx package.

write_onnx(load("model.tflite"), "model.onnx")
write_onnx(optimize("model.onnx").graph, "smaller.onnx", opset=13)

Fused activations and residuals become nodes of their own again, other operators of ours what they
stand for; what ONNX cannot express keeps its name in the domain `lite_engine`, and
`lite_engine.load` reads it back. Source: onnx.proto3, Operators.md and Changelog.md of ONNX.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from lite_messages import tr

from ...errors import UsageError
from ...files import filling, write_file, writing
from ...ir import Graph, Node
from ...ops.expand import expand_missing, is_ours
from . import _expansions, _int16, _older  # noqa: F401  they register what they lower
from ._forms import NEWEST, OLDEST, USUAL
from ._lower import NeedsOpset, lower, why_not
from ._proto import External, ModelWriter
from ._wire import Fields

__all__ = ["NEWEST", "OLDEST", "lowered", "why_not", "write_bytes", "write_onnx"]

#: A protobuf message holds less than this; larger models keep their weights in a second file.
MOST_BYTES = 2**31 - 1
#: Opsets below write out what a pass made one operator of.
ATTENTION = 23


def write_bytes(graph: Graph, *, opset: int | None = None) -> bytes:
    """The graph as a serialised ModelProto. Raises as `write_onnx`, and UsageError for a model of
    2 GiB or more."""
    model = _fields(*_lowered(graph, opset))
    if model.size > MOST_BYTES:
        raise UsageError(
            tr("the model has {size} bytes, more than a protobuf message holds", size=model.size),
            fix=tr("write it to a file, with its weights beside it"),
        )
    return b"".join(model.parts)


def write_onnx(
    graph: Graph, path: str | Path, *, opset: int | None = None, external: bool | None = None
) -> Path:
    """Writes the graph, source or optimised, float or QDQ, and returns the path.

    `opset` is 11 to 28; None: 17, or the first one that has every operator. `external` puts weights
    of 1 KiB or more into `PATH.data` beside the model; None: where it would have 2 GiB or more.
    Weights go from the graph's arrays (often views of a mapped file) to the file without a copy.
    Raises UsageError for an opset that lacks an operator, LiteError when a file cannot be written.
    """
    path = Path(path)
    graph.check_files()
    lowered, opset = _lowered(graph, opset)
    if not external:
        model = _fields(lowered, opset)
        if model.size <= MOST_BYTES or external is False:
            if model.size > MOST_BYTES:
                raise UsageError(
                    tr("more than 2 GiB do not fit in one file"), fix=tr("leave out external=False")
                )
            with writing(path) as file:
                file.writelines(model.parts)
            return path
    beside = External(f"{path.name}.data")
    model = _fields(lowered, opset, beside)
    with filling(path.parent) as folder:
        with writing(folder / beside.location) as file:
            for at, data in beside.arrays:
                file.write(bytes(at - file.tell()))
                file.write(data)
        write_file(folder / path.name, b"".join(model.parts))
    return path


def lowered(graph: Graph, opset: int) -> Graph:
    """A copy with operators of ONNX at that opset only, for writers of other formats. What they
    lack keeps its name; new values have no shapes. Raises UsageError."""
    return _lowered(graph, opset)[0]


def _fields(graph: Graph, opset: int, external: External | None = None) -> Fields:
    return ModelWriter(graph, opset, external).model()


def _stays(node: Node, _: object, *, attention: bool) -> bool:
    """Whether a node is not written out in others. onnxruntime takes an Attention with a row of the
    mask for each query, where ONNX's repeats along them."""
    if not is_ours(node):
        return True
    if not attention or node.op != "Attention":
        return False
    q, mask = node.input(0), node.input(3)
    if mask is None or q is None or q.shape is None:
        return True
    return mask.shape is not None and len(mask.shape) > 1 and mask.shape[-2] == q.shape[-2]


def _lowered(graph: Graph, opset: int | None) -> tuple[Graph, int]:
    """A copy with operators of that opset, or of the first one from `USUAL` on that has them."""
    if opset is not None and not OLDEST <= opset <= NEWEST:
        raise UsageError(
            tr(
                "opset must be between {oldest} and {newest}, got {opset}",
                oldest=OLDEST,
                newest=NEWEST,
                opset=opset,
            )
        )
    wanted = opset or USUAL
    while True:
        copy = graph.copy()
        expand_missing(copy, partial(_stays, attention=wanted >= ATTENTION))
        try:
            lower(copy, wanted)
        except NeedsOpset as error:
            if opset is not None:
                raise UsageError.of(error) from None
            wanted = error.opset
        else:
            return copy, wanted
