"""TensorFlow: a frozen GraphDef (`.pb`) or a SavedModel (folder with `saved_model.pb`).

No TensorFlow is needed: functions are inlined, variables read from the bundle become constants.
Inputs are the placeholders (or the signature's inputs), outputs the nodes that nobody reads (or
the signature's outputs), in the file's NHWC order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError, UnsupportedOperatorError
from ...files import head
from ...ir import DType, Graph, Shape, Value
from ...mapped import map_file
from .._emit import Emitter, name_open_sizes
from .._protobuf import Message
from . import fields, ops_basic, ops_control, ops_nn, ops_quantized
from ._translate import OPS, Nodes
from .conditionals import DRAWING, fold_conditionals
from .frames import rewrite_frames
from .functions import Flat, Ref, split_ref
from .graphdef import DTYPES, STRING, GraphDef, NodeDef, read_graph, read_shape
from .saved_model import Signature, read_saved_model

__all__ = ["match", "open", "ops_basic", "ops_control", "ops_nn", "ops_quantized"]

#: leaves that are not results
_NO_RESULT = (
    "Const", "HostConst", "NoOp", "Assert", "Placeholder", "PlaceholderWithDefault", "SaveV2",
    "RestoreV2", "MergeSummary", "ScalarSummary", "HistogramSummary", "ImageSummary", "Assign",
    "AssignVariableOp", "VariableV2", "VarHandleOp",
)  # fmt: skip

#: A file says which sizes are open; only those are filled in.
SHAPES_ARE_HINTS = True


def match(path: Path) -> bool:
    """A SavedModel folder or file, or a file whose first field is a node of a GraphDef."""
    if path.is_dir():
        return (path / "saved_model.pb").is_file()
    if path.name == "saved_model.pb":
        return True
    return path.is_file() and _looks_like_graph(path)


def _looks_like_graph(path: Path) -> bool:
    """Field 1, a message with a name and an operator (fields 1 and 2) in its first bytes."""
    start = head(path, 4096)
    if len(start) < 8 or start[0] != 0x0A:
        return False
    try:
        view = memoryview(start)
        at = 2
        while start[at - 1] & 0x80:
            at += 1
        name_at = at
        if view[name_at] != 0x0A:
            return False
        size = view[name_at + 1]
        op_at = name_at + 2 + size
        return size < 0x80 and view[op_at] == 0x12 and bytes(view[op_at + 2 : op_at + 3]).isalpha()
    except IndexError:
        return False


def open(
    path: Path,
    *,
    outputs: Sequence[str] = (),
    signature: str = "serving_default",
    shapes: Mapping[str, Shape] | None = None,
) -> Graph:
    """`outputs` names the nodes to keep (all leaves by default); `signature` picks one of a
    SavedModel; `shapes` has sizes of inputs that the file leaves open, which translations may need.
    Raises ModelFormatError, UnsupportedOperatorError."""
    folder = path if path.is_dir() else path.parent if path.name == "saved_model.pb" else None
    if folder is not None:
        saved = read_saved_model(folder, signature)
        return _build(
            path, saved.graph, saved.flat, saved.signature, saved.variables, outputs, shapes or {}
        )
    graph = read_graph(Message(map_file(path)))
    if not graph.nodes:
        raise ModelFormatError(tr("no nodes"), where=path, fix=tr("not a GraphDef"))
    return _build(path, graph, Flat(graph), None, {}, outputs, shapes or {})


def _build(
    path: Path,
    source: GraphDef,
    flat: Flat,
    signature: Signature | None,
    variables: dict[str, Any],
    outputs: Sequence[str],
    shapes: Mapping[str, Shape],
) -> Graph:
    graph = Graph(path.stem if path.name != "saved_model.pb" else path.parent.name)
    graph.metadata = {"format": "tensorflow", "producer": f"GraphDef {source.producer}"}
    emit = Emitter(graph)
    nodes = Nodes(emit, flat, variables)
    waited = _waited_for(flat)
    conditionals = fold_conditionals(flat)
    rewrite_frames(flat)
    wanted = [
        (name, ref) for name, ref in _wanted(flat, signature, outputs, waited)
        if outputs or signature is not None or conditionals.is_output(ref)
    ]  # fmt: skip
    conditionals.check(wanted)
    order = flat.order([ref for _, ref in wanted])
    _check_operators(flat, order)
    _add_inputs(nodes, [n for n in order if n not in conditionals.switches], signature, shapes)
    for name, value in conditionals.switches.items():
        nodes.values[name, 0] = emit.const(np.array(value))
        graph.metadata.setdefault("warnings", []).append(
            tr(
                "{name} decides whether random numbers are drawn, as in training: it is {value} "
                "here, and no input",
                name=name,
                value="true" if value else "false",
            )
        )
    for name in order:
        nodes.translate(name)
    emit.finish([(name, nodes.value(ref)) for name, ref in wanted])
    read = set(order)
    graph.metadata["unused_weights"] = [
        n for n, node in flat.nodes.items() if n not in read and _is_weight(node)
    ]
    return graph


def _is_weight(node: NodeDef) -> bool:
    """A constant of floats with axes; numbers alone, integers and texts steer what was left out."""
    tensor = node.attrs.tensor("value") if node.op in ("Const", "HostConst") else None
    shape = None if tensor is None else tensor.message(fields.TensorProto.TENSOR_SHAPE)
    return (
        shape is not None
        and bool(read_shape(shape))
        and node.attrs.dtype("dtype", DType.I32).is_float
    )


def _waited_for(flat: Flat) -> set[str]:
    """Nodes that others run after. What makes nothing (a NoOp) counts where it is waited for."""
    found: set[str] = set()
    while True:
        more = {
            control for name, node in flat.nodes.items()
            if node.op not in _NO_RESULT or name in found for control in node.controls
        }  # fmt: skip
        if more == found:
            return found
        found = more


def _wanted(
    flat: Flat, signature: Signature | None, outputs: Sequence[str], waited: Collection[str]
) -> list[tuple[str, Ref]]:
    """Output names and the node outputs they stand for. Without names, those that nobody reads; of
    these, those that others have `waited` for (parts of a loop) only where there are no others."""
    if outputs:
        return [(name.removesuffix(":0"), split_ref(name)) for name in outputs]
    if signature is not None:
        return list(signature.outputs.items())
    refs = [ref for inputs in flat.inputs.values() for ref in inputs]
    read = {name for ref in refs for name in (ref[0], flat.resolve(ref)[0])}
    leaves = [n for n, node in flat.nodes.items() if n not in read and node.op not in _NO_RESULT]
    if not leaves:
        raise ModelFormatError(
            tr("tensorflow: every node is read by another, so the outputs are not known"),
            fix=tr("name the outputs with outputs="),
        )
    return [(name, (name, 0)) for name in [n for n in leaves if n not in waited] or leaves]


def _add_inputs(
    nodes: Nodes, order: list[str], signature: Signature | None, sizes: Mapping[str, Shape]
) -> None:
    """Graph inputs: the signature's, or the placeholders in the file's order. Open dimensions get
    these sizes, and so do inputs whose rank the file leaves open."""
    emit, flat, needed = nodes.emit, nodes.flat, set(order)
    names: dict[str, str] = {n: n for n, node in flat.nodes.items() if node.op == "Placeholder"}
    if signature is not None:
        given = {flat.resolve(ref)[0]: key for key, ref in signature.inputs.items()}
        names = {n: given.get(n, n) for n in [*given, *(n for n in names if n not in given)]}
    for node_name, name in names.items():
        if node_name not in needed:
            continue
        node = flat.nodes[node_name]
        code = node.attrs.type("dtype")
        dtype = DTYPES.get(code)
        shape = node.attrs.shape("shape")
        if dtype is None and code == STRING:
            dtype, shape = DType.U8, (None,)  # the bytes of a file
        if dtype is None:
            raise UnsupportedOperatorError(
                tr(
                    "input {name} has element type {code}, which is not a number",
                    name=name,
                    code=code,
                ),
                (node_name,),
            )
        shapes = node.attrs.shapes("_output_shapes")
        if not shape and shapes and shapes[0] is not None:
            shape = shapes[0]
        asked = sizes.get(name)
        if shape is None:
            shape = asked
        elif asked is not None and len(asked) == len(shape):
            shape = tuple(n if d is None else d for d, n in zip(shape, asked))
        value = Value(emit.unique(name), dtype, shape)
        nodes.emit.graph.inputs.append(value)
        name_open_sizes(nodes.emit.graph.inputs)
        nodes.values[node_name, 0] = value


def _check_operators(flat: Flat, order: list[str]) -> None:
    known = {*OPS, "Placeholder"}
    missing = [(n, flat.nodes[n].op) for n in order if flat.nodes[n].op not in known]
    if not missing:
        return
    counts = Counter(op for _, op in missing)
    names = ", ".join(f"{op} ({n}x)" if n > 1 else op for op, n in counts.items())
    hint = tr("replace them, or name outputs before them with outputs=")
    if counts.keys() & {"Switch", "Merge", "Enter"}:
        hint = tr(
            "control flow is not supported: export for inference, with training switches frozen"
        )
    elif counts.keys() & set(DRAWING):
        hint = tr(
            "random numbers are drawn in training: export for inference, or freeze the training "
            "switch (is_training) as false"
        )
    elif counts.keys() & {
        "DecodeJpeg",
        "DecodePng",
        "DecodeImage",
        "ParseExample",
        "ParseExampleV2",
    }:
        hint = tr("cut the graph after the decoding, and feed the decoded tensor")
    raise UnsupportedOperatorError(
        tr("unsupported TensorFlow operators: {names}", names=names),
        tuple(n for n, _ in missing),
        fix=hint,
    )
