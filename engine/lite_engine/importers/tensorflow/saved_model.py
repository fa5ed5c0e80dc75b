"""SavedModel: the serving graph, its signature, and the variables as constants."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from lite_messages import tr

from ...errors import LiteError, ModelFormatError
from ...ir import DType
from ...mapped import map_file
from .._protobuf import Message
from . import fields
from .bundle import Bundle
from .functions import Flat, Ref, split_ref
from .graphdef import GraphDef, map_entries, read_graph

_PASS = ("Identity", "ReadVariableOp")
_HANDLES = ("VarHandleOp", "VariableV2", "Variable")


#: The contents of a variable, or why they cannot be read.
Variable = tuple[np.ndarray, DType] | LiteError


@dataclass
class Signature:
    """Keys of inputs and outputs, and the node outputs that they name."""

    inputs: dict[str, Ref]
    outputs: dict[str, Ref]


@dataclass
class SavedModel:
    graph: GraphDef
    flat: Flat
    signature: Signature
    variables: dict[str, Variable]


def read_saved_model(folder: Path, key: str) -> SavedModel:
    """Raises ModelFormatError that names the signatures there are."""
    path = folder / "saved_model.pb"
    message = Message(map_file(path))
    metas = message.messages(fields.SavedModel.META_GRAPHS)
    serving = [m for m in metas if "serve" in _tags(m)] or metas
    if not serving:
        raise ModelFormatError(tr("holds no graph"), where=path)
    meta = serving[0]
    proto = meta.message(fields.MetaGraph.GRAPH_DEF)
    if proto is None:
        raise ModelFormatError(tr("holds no graph"), where=path)
    graph = read_graph(proto)
    flat = Flat(graph)
    return SavedModel(graph, flat, _signature(meta, key, path), _variables(flat, folder))


def _tags(meta: Message) -> list[str]:
    info = meta.message(fields.MetaGraph.META_INFO_DEF)
    return [] if info is None else info.texts(fields.MetaInfo.TAGS)


def _signature(meta: Message, key: str, path: Path) -> Signature:
    found = dict(map_entries(meta, fields.MetaGraph.SIGNATURE_DEF))
    usable = {
        k: m for k, m in found.items() if not k.startswith("__") and fields.Signature.OUTPUTS in m
    }
    if key not in usable:
        if key != "serving_default" or len(usable) != 1:
            names = ", ".join(usable) or "none"
            raise ModelFormatError(
                tr("no signature {key!r}", key=key),
                where=path,
                fix=tr("there are: {names}", names=names),
            )
        key = next(iter(usable))
    chosen = usable[key]
    return Signature(
        _tensors(chosen, fields.Signature.INPUTS), _tensors(chosen, fields.Signature.OUTPUTS)
    )


def _tensors(signature: Message, number: int) -> dict[str, Ref]:
    """Sorted by key, as serving does; entries without a tensor name are left out."""
    pairs = [(k, m.text(fields.TensorInfo.NAME)) for k, m in map_entries(signature, number)]
    return {k: split_ref(name) for k, name in sorted(pairs) if name}


def _variables(flat: Flat, folder: Path) -> dict[str, Variable]:
    """Contents of each variable, by the name of its handle node.

    Which entry of the bundle belongs to which variable is what the restoring part of the graph
    says: Assign(handle, RestoreV2(prefix, names, parts):i) means names[i], of a partitioned
    variable the part that parts[i] names. A variable that another one starts from,
    Assign(other, Read(handle)), was a copy when the model was saved.
    """
    prefix = folder / "variables" / "variables"
    if not prefix.with_name("variables.index").is_file():
        return {}
    bundle = Bundle(prefix)
    out: dict[str, Variable] = {}
    copies: list[tuple[str, str]] = []
    for name, node in flat.nodes.items():
        if node.op not in ("Assign", "AssignVariableOp") or len(flat.inputs[name]) < 2:
            continue
        handle, value = (_origin(flat, ref) for ref in flat.inputs[name][:2])
        if handle is None or value is None or flat.nodes[handle[0]].op not in _HANDLES:
            continue
        if flat.nodes[value[0]].op in _HANDLES:
            copies.append((handle[0], value[0]))
        if flat.nodes[value[0]].op != "RestoreV2":
            continue
        restore, at = value
        keys, parts = _strings(flat, restore, 1), _strings(flat, restore, 2)
        if at < len(keys):
            try:
                out[handle[0]] = bundle.read(keys[at], parts[at] if at < len(parts) else "")
            except LiteError as error:
                # counters and optimiser slots may be damaged or of odd types: only the operator
                # that reads a variable raises
                out[handle[0]] = error
    for copy, original in copies:
        if copy in out:
            out.setdefault(original, out[copy])
    return out


def _origin(flat: Flat, ref: Ref) -> Ref | None:
    """Where a value comes from, through what only passes it on."""
    for _ in range(64):
        ref = flat.resolve(ref)
        node = flat.nodes.get(ref[0])
        if node is None:
            return None
        if node.op not in _PASS or not flat.inputs[ref[0]]:
            return ref
        ref = flat.inputs[ref[0]][0]
    return None


def _strings(flat: Flat, name: str, index: int) -> list[str]:
    """Contents of a constant list of strings that a node reads; empty where it reads none."""
    refs = flat.inputs[name]
    found = _origin(flat, refs[index]) if index < len(refs) else None
    node = None if found is None else flat.nodes[found[0]]
    tensor = None if node is None or node.op != "Const" else node.attrs.tensor("value")
    return [] if tensor is None else tensor.texts(fields.TensorProto.STRING_VAL)
