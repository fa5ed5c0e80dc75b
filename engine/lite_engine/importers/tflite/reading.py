"""A `.tflite` file → Graph, with what it says of itself in `metadata`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from lite_messages import tr

from ...errors import UnsupportedOperatorError
from ...ir import Graph, Value
from ...ir.types import Shape
from ...mapped import map_file
from .._emit import Emitter
from . import ops_basic, ops_control, ops_custom, ops_nn, ops_recurrent
from ._call import find
from ._tensors import Tensors
from ._translate import translate
from .metadata import read_metadata
from .model import File, Tensor, read_file
from .ops_control import CALLS

# The modules of operators fill the table that `find` looks into.
__all__ = ["graph_of", "ops_basic", "ops_control", "ops_custom", "ops_nn", "ops_recurrent", "read"]


def read(path: Path, *, dynamic: bool, shapes: Mapping[str, Shape]) -> Graph:
    """As `open` of the package."""
    view = map_file(path)
    file = read_file(view, path)
    _check_operators(file)
    graph, tensors = graph_of(file, path.stem, dynamic=dynamic, shapes=shapes)
    graph.metadata = _metadata(file, view, tensors)
    return graph


def graph_of(
    file: File, name: str, *, dynamic: bool = False, shapes: Mapping[str, Shape] | None = None
) -> tuple[Graph, Tensors]:
    """The main subgraph of a file whose operators are all read, and the values of its tensors.
    `shapes` (input → sizes) fills in what the file leaves open."""
    subgraph = file.subgraphs[0]
    graph = Graph(name)
    emit = Emitter(graph)
    tensors = Tensors(emit, file, subgraph, dynamic)
    for index in subgraph.inputs:
        tensor = subgraph.tensors[index]
        value = Value(emit.unique(tensor.name), tensor.dtype)
        value.shape = _input_shape(tensor, (shapes or {}).get(value.name, ()))
        if tensors.is_quantised(index):
            value.quant = tensors.params(index)
        tensors.values[index] = value
        graph.inputs.append(value)
    translate(tensors)
    emit.finish([(subgraph.tensors[i].name, tensors.raw(i)) for i in subgraph.outputs])
    return graph, tensors


def _input_shape(tensor: Tensor, given: Shape) -> tuple[int | str, ...]:
    """The file's sizes. Open ones are those given; else an open batch keeps the file's 1, and any
    other open size is a symbol."""
    if len(given) != len(tensor.shape):
        given = (None,) * len(tensor.shape)
    return tuple(
        size
        if open_ != -1
        else wanted
        if isinstance(wanted, int) and wanted >= 0
        else size
        if axis == 0
        else f"{tensor.name}:{axis}"
        for axis, (size, open_, wanted) in enumerate(zip(tensor.shape, tensor.signature, given))
    )


def _check_operators(file: File) -> None:
    """Names everything that is not read, in the subgraphs that the main one calls."""
    called, operators = [0], []
    for number in called:
        for op in file.subgraphs[number].operators:
            operators.append(op)
            called += [
                n
                for n in (op.options.get(key, -1) for key in CALLS)
                if 0 <= n < len(file.subgraphs) and n not in called
            ]
    missing = [op for op in operators if find(op) is None]
    if not missing:
        return
    counts = Counter(op.code for op in missing)
    names = ", ".join(f"{code} ({n}x)" if n > 1 else code for code, n in counts.items())
    flex = any(code.startswith("Flex") for code in counts)
    raise UnsupportedOperatorError(
        tr("unsupported TFLite operators: {names}", names=names),
        tuple(f"{op.code}:{op.index}" for op in missing),
        fix=(tr("convert without SELECT_TF_OPS") if flex else tr("replace them before converting"))
        + tr(", or cut the model before them"),
    )


def _metadata(file: File, view: memoryview, tensors: Tensors) -> dict[str, object]:
    out: dict[str, object] = {"format": "tflite", "schema_version": file.version}
    if file.description:
        out["producer"] = file.description
    runtime = bytes(file.metadata.get("min_runtime_version", b"")).rstrip(b"\0")
    if runtime:
        out["min_runtime_version"] = runtime.decode("ascii", "replace")
    out.update(read_metadata(view, file.metadata.get("TFLITE_METADATA", view[:0])))
    warnings = []
    if tensors.repaired:
        some = ", ".join(tensors.repaired[:3]) + (", …" if len(tensors.repaired) > 3 else "")
        warnings.append(
            tr(
                "{tensors} tensors name a quantized_dimension that they do not have ({some});"
                " the only axis that fits was used instead. A newer TFLite converter writes "
                "the right one",
                tensors=len(tensors.repaired),
                some=some,
            )
        )
    main = file.subgraphs[0]
    read = {i for op in main.operators for i in op.inputs} | set(main.outputs)
    out["unused_weights"] = [
        t.name for i, t in enumerate(main.tensors) if t.data is not None and i not in read
    ]
    called = {op.options.get(k) for g in file.subgraphs for op in g.operators for k in CALLS}
    alone = len(set(range(1, len(file.subgraphs))) - called)
    if alone:
        warnings.append(
            tr(
                "the file has {alone} models (signatures, or initialization); only the "
                "first one was read",
                alone=alone + 1,
            )
        )
    if warnings:
        out["warnings"] = warnings
    return out
