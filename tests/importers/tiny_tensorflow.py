"""Tiny TensorFlow graphs, SavedModels and variable bundles, written field by field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.importers.wire import field, leveldb_table, message

TYPES = {"float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int64": 9, "bool": 10}
#: What the old quantized operators call their integers.
QUANTIZED = {"int8": 11, "uint8": 12, "int32": 13, "int16": 15, "uint16": 16}


def shape_proto(shape: tuple[int | None, ...]) -> bytes:
    return message(*((2, message((1, -1 if d is None else d))) for d in shape))


def tensor_proto(array: Any, types: dict[str, int] = TYPES) -> bytes:
    array = np.asarray(array)
    return message(
        (1, types[array.dtype.name]), (2, shape_proto(array.shape)), (4, array.tobytes())
    )


def strings_proto(values: list[str]) -> bytes:
    return message((1, 7), (2, shape_proto((len(values),))), *((8, v) for v in values))


def attr(value: Any) -> bytes:
    """An AttrValue: bytes are taken as made, NumPy types are element types."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, bool):
        return message((5, value))
    if isinstance(value, int):
        return message((3, value))
    if isinstance(value, float):
        return message((4, value))
    if isinstance(value, str):
        return message((2, value))
    if isinstance(value, list):
        return message((1, message(*((3, v) for v in value))))
    return message((6, TYPES[np.dtype(value).name]))


def node(name: str, op: str, *inputs: str, **attrs: Any) -> bytes:
    pairs = [(5, message((1, k), (2, attr(v)))) for k, v in attrs.items()]
    return message((1, name), (2, op), *((3, i) for i in inputs), *pairs)


def const(name: str, array: Any) -> bytes:
    array = np.asarray(array)
    return node(name, "Const", dtype=array.dtype, value=message((8, tensor_proto(array))))


def quantized_const(name: str, array: Any) -> bytes:
    array = np.asarray(array)
    kind = message((6, QUANTIZED[array.dtype.name]))
    return node(name, "Const", dtype=kind, value=message((8, tensor_proto(array, QUANTIZED))))


def placeholder(name: str, shape: tuple[int | None, ...], dtype: Any = np.float32) -> bytes:
    return node(name, "Placeholder", dtype=dtype, shape=message((7, shape_proto(shape))))


def function(name: str, args: list[str], returns: dict[str, str], nodes: list[bytes]) -> bytes:
    signature = message(
        (1, name),
        *((2, message((1, a), (3, 1))) for a in args),
        *((3, message((1, r), (3, 1))) for r in returns),
    )
    mapped = [(4, message((1, k), (2, v))) for k, v in returns.items()]
    return message((1, signature), *((3, n) for n in nodes), *mapped)


def graph_def(nodes: list[bytes], functions: list[bytes] = ()) -> bytes:
    library = [(2, message(*((1, f) for f in functions)))] if functions else []
    return message(*((1, n) for n in nodes), *library, (4, message((1, 27))))


def signature_map(number: int, names: dict[str, str]) -> list[tuple[int, bytes]]:
    return [(number, message((1, k), (2, message((1, v))))) for k, v in names.items()]


def saved_model(
    folder: Path,
    graph: bytes,
    inputs: dict[str, str],
    outputs: dict[str, str],
    variables: dict[str, np.ndarray],
) -> None:
    """A folder with saved_model.pb and the bundle of its variables."""
    signature = message(*signature_map(1, inputs), *signature_map(2, outputs))
    meta = message(
        (1, message((4, "serve"))), (2, graph), (5, message((1, "serving_default"), (2, signature)))
    )
    folder.mkdir(exist_ok=True)
    (folder / "saved_model.pb").write_bytes(message((1, 1), (2, meta)))
    write_bundle(folder / "variables", variables)


def write_bundle(folder: Path, variables: dict[str, np.ndarray]) -> None:
    folder.mkdir(exist_ok=True)
    entries, data = {b"": message((1, 1))}, b""
    for key, array in variables.items():
        entries[key.encode("utf-8", "surrogateescape")] = message(
            (1, TYPES[array.dtype.name]),
            (2, shape_proto(array.shape)),
            (4, len(data)),
            (5, array.nbytes),
        )
        data += array.tobytes()
    (folder / "variables.index").write_bytes(leveldb_table(entries))
    (folder / "variables.data-00000-of-00001").write_bytes(data)


def restoring(
    names: dict[str, str], parts: list[str] | None = None, assign: str = "AssignVariableOp"
) -> list[bytes]:
    """The part of a graph that restores: handle node → key in the bundle; which part of each."""
    keys = list(names.values())
    strings = message((8, strings_proto(keys)))
    nodes = [
        const("prefix", np.int32(0)),
        node("save/names", "Const", value=strings),
        node("save/slices", "Const", value=message((8, strings_proto(parts or [""] * len(keys))))),
        node("save/RestoreV2", "RestoreV2", "prefix", "save/names", "save/slices"),
    ]
    for index, handle in enumerate(names):
        ref = f"save/RestoreV2:{index}" if index else "save/RestoreV2"
        nodes.append(node(f"save/Identity_{index}", "Identity", ref))
        nodes.append(node(f"save/Assign_{index}", assign, handle, f"save/Identity_{index}"))
    return nodes


KERNEL = np.random.default_rng(1).standard_normal((3, 3, 3, 4)).astype(np.float32)


def small_graph() -> bytes:
    return graph_def([
        placeholder("x", (1, 6, 7, 3)), const("w", KERNEL),
        node("c", "Conv2D", "x", "w", strides=[1, 2, 2, 1], padding="SAME"),
        const("shape", np.int32([1, -1])), node("r", "Reshape", "c", "shape"),
        node("y", "Softmax", "r"),
    ])  # fmt: skip


def small_saved_model(folder: Path, **keys: str) -> None:
    """Convolution with KERNEL and bias 0…3; `keys` say which entry of the bundle each variable
    gets."""
    graph = graph_def([
        placeholder("serving_x", (None, 6, 7, 3)), node("w", "VarHandleOp", shared_name="w"),
        node("b", "VarHandleOp", shared_name="b"), node("read", "ReadVariableOp", "w"),
        node("conv", "Conv2D", "serving_x", "read", strides=[1, 1, 1, 1], padding="SAME"),
        node("read_b", "ReadVariableOp", "b"), node("out", "BiasAdd", "conv", "read_b"),
        *restoring(keys or {"w": "layer/kernel", "b": "layer/bias"}),
    ])  # fmt: skip
    saved_model(
        folder, graph, {"image": "serving_x:0"}, {"feature": "out:0"},
        {"layer/kernel": KERNEL, "layer/bias": np.arange(4, dtype=np.float32)},
    )  # fmt: skip


__all__ = ["KERNEL", "const", "field", "function", "graph_def", "node", "placeholder", "restoring",
           "saved_model", "small_graph", "small_saved_model", "write_bundle"]  # fmt: skip
