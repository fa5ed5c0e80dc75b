"""A lowered Graph → ModelProto. Source: onnx.proto3 of the ONNX project."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np
from lite_messages import tr

from ..._version import __version__
from ...errors import UnsupportedOperatorError
from ...importers.onnx import fields
from ...importers.onnx.attributes import DTYPE_ATTRS
from ...importers.onnx.tensors import DTYPES, PACKED
from ...ir import DType, Graph, Node, Value, walk
from ...ops import find_op
from ._forms import ir_version
from ._lower import domain_of
from ._wire import Fields

_CODES = {dtype: code for code, dtype in DTYPES.items()}
#: Smaller tensors stay in the model where the others lie in a file of their own, so that tools
#: can read shapes and axes from the model alone.
INLINE_BYTES = 1024
#: Data in an external file begins at multiples of this (a page).
_ALIGNMENT = 4096
#: Attributes that ONNX wants to be written even where a Graph leaves them to their default.
_REQUIRED = ("direction", "num_groups", "size")


class External:
    """The file of weights beside a model: its arrays in order, and where the next begins."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.arrays: list[tuple[int, memoryview]] = []
        self.end = 0

    def add(self, data: memoryview) -> dict[str, str]:
        at = -(-self.end // _ALIGNMENT) * _ALIGNMENT
        self.arrays.append((at, data))
        self.end = at + len(data)
        return {"location": self.location, "offset": str(at), "length": str(len(data))}


class ModelWriter:
    """Writes one lowered graph."""

    def __init__(self, graph: Graph, opset: int, external: External | None = None) -> None:
        self.graph, self.opset, self.external = graph, opset, external
        self._names: dict[int, str] = {}
        self._taken: set[str] = set()
        self._node_names: set[str] = set()

    def model(self) -> Fields:
        out = Fields()
        out.int(fields.Model.IR_VERSION, ir_version(self.opset))
        out.text(fields.Model.PRODUCER_NAME, "lite_engine")
        out.text(fields.Model.PRODUCER_VERSION, __version__)
        for domain, version in sorted(self._opsets().items()):
            opset = Fields()
            opset.text(fields.OperatorSet.DOMAIN, domain)
            opset.int(fields.OperatorSet.VERSION, version)
            out.message(fields.Model.OPSET_IMPORT, opset)
        for key in ("preprocess", "labels", "adapter"):
            if key in self.graph.metadata:
                entry = _entry(key, json.dumps(self.graph.metadata[key], ensure_ascii=False))
                out.message(fields.Model.METADATA_PROPS, entry)
        for value in (*self.graph.inputs, *self.graph.outputs):  # these keep their names
            self._name(value)
        out.message(fields.Model.GRAPH, self._graph(self.graph, set()))
        return out

    def _opsets(self) -> dict[str, int]:
        found = {"": self.opset}

        def visit(node: Node) -> None:
            if node.domain:
                op = find_op(node.op)
                version = domain_of(op)[1] if op is not None else 1
                found[node.domain] = max(found.get(node.domain, 1), version)

        walk(self.graph, visit)
        return found

    def _name(self, value: Value | None) -> str:
        """The value's name, made different where two values of the graph share one."""
        if value is None:
            return ""
        if id(value) not in self._names:
            self._names[id(value)] = _unique(value.name or "value", self._taken)
        return self._names[id(value)]

    # ---- graphs

    def _graph(self, graph: Graph, outer: set[int]) -> Fields:
        """`outer`: constants that a surrounding graph has written already."""
        out = Fields()
        written = set(outer)
        for value in _constants(graph):
            if id(value) not in written:
                written.add(id(value))
                out.message(fields.GraphProto.INITIALIZER, self._tensor(value, self._name(value)))
        for node in graph.nodes:
            out.message(fields.GraphProto.NODE, self._node(node, written))
        out.text(fields.GraphProto.NAME, graph.name or "graph")
        for value in graph.inputs:
            out.message(fields.GraphProto.INPUT, self._info(value))
        for value in graph.outputs:
            out.message(fields.GraphProto.OUTPUT, self._info(value))
        ends = {id(v) for v in graph.outputs}
        for value in (v for n in graph.nodes for v in n.outputs):
            if value.shape is not None and value.dtype is not None and id(value) not in ends:
                out.message(fields.GraphProto.VALUE_INFO, self._info(value))
        return out

    def _info(self, value: Value) -> Fields:
        info = Fields()
        info.text(fields.ValueInfo.NAME, self._name(value))
        if value.dtype is None:
            return info
        tensor, kind = Fields(), Fields()
        tensor.int(fields.TensorType.ELEM_TYPE, _CODES[value.dtype])
        if value.shape is not None:
            shape = Fields()
            for size in value.shape:
                dim = Fields()
                if isinstance(size, int):
                    dim.int(fields.Dimension.DIM_VALUE, size)
                elif size is not None:
                    dim.text(fields.Dimension.DIM_PARAM, size)
                shape.message(fields.Shape.DIM, dim)
            tensor.message(fields.TensorType.SHAPE, shape)
        kind.message(fields.Type.TENSOR_TYPE, tensor)
        info.message(fields.ValueInfo.TYPE, kind)
        return info

    def _tensor(self, value: Value, name: str) -> Fields:
        assert value.const is not None and value.dtype is not None
        array = np.ascontiguousarray(value.const).reshape(value.const.shape)
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        out = Fields()
        out.ints(fields.Tensor.DIMS, array.shape)
        out.int(fields.Tensor.DATA_TYPE, _CODES[value.dtype])
        if name:
            out.text(fields.Tensor.NAME, name)
        if value.dtype in PACKED:
            array = _packed(array, PACKED[value.dtype])
        data = array.reshape(-1).view(np.uint8).data
        if self.external is None or len(data) < INLINE_BYTES:
            out.bytes(fields.Tensor.RAW_DATA, data)
            return out
        for key, text in self.external.add(data).items():
            out.message(fields.Tensor.EXTERNAL_DATA, _entry(key, text))
        out.int(fields.Tensor.DATA_LOCATION, 1)
        return out

    # ---- nodes

    def _node(self, node: Node, written: set[int]) -> Fields:
        out = Fields()
        inputs = list(node.inputs)
        while inputs and inputs[-1] is None:
            inputs.pop()
        for value in inputs:
            out.text(fields.NodeProto.INPUT, self._name(value))
        for value in node.outputs:
            out.text(fields.NodeProto.OUTPUT, self._name(value))
        out.text(fields.NodeProto.NAME, _unique(node.name or node.op, self._node_names))
        out.text(fields.NodeProto.OP_TYPE, node.op)
        op = find_op(node.op)
        defaults = op.attrs if op else {}
        # onnxruntime's schemas say "required" of attributes that have a usual value
        vendor = node.domain == "com.microsoft"
        always = {
            k for k, v in defaults.items() if k in _REQUIRED or (vendor and (v or k == "axis"))
        }
        attrs = {k: defaults[k] for k in always} | node.attrs
        for name, given in attrs.items():
            needless = name not in always and _is_default(given, defaults.get(name))
            if given is None or needless:
                continue
            where = f"{node.name} {name}"
            out.message(
                fields.NodeProto.ATTRIBUTE,
                self._attribute(node, name, given, defaults.get(name), written, where),
            )
        if node.domain:
            out.text(fields.NodeProto.DOMAIN, node.domain)
        return out

    def _attribute(
        self, node: Node, name: str, value: Any, default: Any, written: set[int], where: str
    ) -> Fields:
        of, out = fields.Attribute, Fields()
        out.text(of.NAME, name)
        if DTYPE_ATTRS.get(node.op) == name and not node.domain:
            value = _CODES[DType(value)]
        if isinstance(value, (bool, np.bool_)):
            value = int(value)
        if isinstance(value, np.ndarray) and isinstance(default, (list, tuple)):
            value = value.tolist()
        if isinstance(value, Graph):
            kind = 5
            out.message(of.G, self._graph(value, written))
        elif isinstance(value, np.ndarray):
            kind = 4
            out.message(of.T, self._tensor(Value("", const=value), ""))
        elif isinstance(value, str):
            kind = 3
            out.text(of.S, str(value))
        elif isinstance(value, (int, np.integer)) and not isinstance(default, float):
            kind = 2
            out.int(of.I, int(value))
        elif isinstance(value, (int, float, np.integer, np.floating)):
            kind = 1
            out.float(of.F, float(value))
        else:
            kind = self._list(out, value, default, where)
        out.int(of.TYPE, kind)
        return out

    def _list(self, out: Fields, value: Any, default: Any, where: str) -> int:
        of, items = fields.Attribute, list(value) if isinstance(value, (list, tuple)) else None
        if items is None:
            raise UnsupportedOperatorError(
                tr("ONNX has no attributes of type {type}", type=type(value).__name__), where=where
            )
        likes = [*items, *(default if isinstance(default, (list, tuple)) else ())]
        if any(isinstance(v, str) for v in items):
            for text in items:
                out.text(of.STRINGS, str(text))
            return 8
        if any(isinstance(v, (float, np.floating)) for v in likes):
            out.floats(of.FLOATS, [float(v) for v in items])
            return 6
        out.ints(of.INTS, (int(v) for v in items))
        return 7


def _packed(array: np.ndarray, bits: int) -> np.ndarray:
    """Numbers of 2 or 4 bits, one per byte → several per byte, the first in the lowest bits."""
    count = 8 // bits
    flat = array.reshape(-1).view(np.uint8) & ((1 << bits) - 1)
    parts = np.pad(flat, (0, -len(flat) % count)).reshape(-1, count)
    return np.bitwise_or.reduce(parts << (np.arange(count, dtype=np.uint8) * bits), axis=-1)


def _constants(graph: Graph) -> Iterable[Value]:
    """What the graph's own nodes read, and its constant outputs."""
    for node in graph.nodes:
        yield from (v for v in node.inputs if v is not None and v.is_const)
    yield from (v for v in graph.outputs if v.is_const)


def _is_default(value: Any, default: Any) -> bool:
    if isinstance(value, (np.ndarray, Graph)) or default is None:
        return False
    pair = [list(v) if isinstance(v, tuple) else v for v in (value, default)]
    return bool(pair[0] == pair[1])


def _unique(name: str, taken: set[str]) -> str:
    """The name, with a number where it is taken."""
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name}.{number}"
    taken.add(found)
    return found


def _entry(key: str, value: str) -> Fields:
    entry = Fields()
    entry.text(fields.Entry.KEY, key)
    entry.text(fields.Entry.VALUE, value)
    return entry
