"""Graph → ONNX model: the source graph or the optimized one, float or quantized.

No `onnx` package is needed. Operators are written in their opset-22 form (or a newer opset, where
one needs it), those of com.microsoft in that domain; expand.py spells out what only the engine has.
Weights are stored as raw data in the model itself. Source: onnx.proto3 and Operators.md of the
ONNX project.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from lite_messages import tr

from ..._version import __version__
from ...errors import UnsupportedOperatorError
from ...files import write_file
from ...importers.onnx import fields as f
from ...importers.onnx.attributes import DTYPE_ATTRS
from ...importers.onnx.tensors import DTYPES
from ...ir import DType, Graph, Value, node_reads
from . import protobuf as pb
from .expand import Call, expand, why_not

__all__ = ["OPSET", "why_not", "write", "write_bytes"]

OPSET = 22
#: Version of the file format in which opset 22 came.
_IR_VERSION = 10
_MAX_BYTES = 2**31 - 1
_CODES = {dtype: code for code, dtype in DTYPES.items()}
_FLOAT, _INT, _STRING, _TENSOR, _GRAPH, _FLOATS, _INTS, _STRINGS = range(1, 9)


def write(graph: Graph, path: Path) -> Path:
    """Writes the file and returns its path. Raises UnsupportedOperatorError for an operator that
    ONNX does not have, ShapeError for a value without a type, LiteError when it cannot be
    written."""
    return write_file(path, write_bytes(graph))


def write_bytes(graph: Graph) -> bytes:
    """The same as bytes of a ModelProto."""
    writer = _Writer()
    body = writer.graph(graph)
    out = b"".join(
        (
            pb.integer(f.Model.IR_VERSION, _IR_VERSION),
            pb.text(f.Model.PRODUCER_NAME, "lite-workbench"),
            pb.text(f.Model.PRODUCER_VERSION, __version__),
            pb.data(f.Model.GRAPH, body),
            *(
                pb.data(
                    f.Model.OPSET_IMPORT,
                    pb.text(f.OperatorSet.DOMAIN, domain)
                    + pb.integer(f.OperatorSet.VERSION, version),
                )
                for domain, version in sorted(writer.domains.items())
            ),
        )
    )
    if len(out) > _MAX_BYTES:
        raise UnsupportedOperatorError(tr("an ONNX file holds at most 2 GiB of weights"))
    return out


class _Writer:
    """Fields of a GraphProto, and of the subgraphs in it."""

    def __init__(self) -> None:
        self.domains: dict[str, int] = {"": OPSET}
        self._names: dict[int, str] = {}
        self._kept: list[Value] = []  # constants are told apart by id()
        self._taken: set[str] = set()
        self._tensors: list[bytes] = []

    def graph(self, graph: Graph) -> bytes:
        """Constants of subgraphs are written here, too, where every scope sees them."""
        self._taken |= {v.name for v in graph.values() if not v.is_const}
        for node in graph.nodes:
            for value in node_reads(node):
                self.name_of(value)
        outputs = [self._value_info(v) for v in graph.outputs]
        tensors, self._tensors = self._tensors, []
        nodes = [
            pb.data(f.GraphProto.NODE, self._node(call))
            for node in graph.nodes
            for call in expand(node, self.constant, self.name_of)
        ]
        return b"".join(
            (
                *nodes,
                pb.text(f.GraphProto.NAME, graph.name or "graph"),
                *(pb.data(f.GraphProto.INITIALIZER, t) for t in (*tensors, *self._tensors)),
                *(pb.data(f.GraphProto.INPUT, self._value_info(v)) for v in graph.inputs),
                *(pb.data(f.GraphProto.OUTPUT, o) for o in outputs),
            )
        )

    def name_of(self, value: Value) -> str:
        """A value's name in the file; a constant gets one that no other value has."""
        if value.const is None:
            return value.name
        if id(value) not in self._names:
            name = self._unique(value.name)
            self._names[id(value)] = name
            self._kept.append(value)
            self._tensors.append(_tensor(name, value.const, value.dtype))
        return self._names[id(value)]

    def constant(self, array: np.ndarray) -> str:
        name = self._unique("const")
        self._tensors.append(_tensor(name, array))
        return name

    def _unique(self, stem: str) -> str:
        name, count = stem, 0
        while name in self._taken:
            count += 1
            name = f"{stem}_{count}"
        self._taken.add(name)
        return name

    def _node(self, call: Call) -> bytes:
        self.domains[call.domain] = max(self.domains.get(call.domain, 1), call.version)
        while call.inputs and not call.inputs[-1]:
            call.inputs.pop()
        attrs = (
            self._attribute(call, name, value)
            for name, value in sorted(call.attrs.items())
            if value is not None and not (isinstance(value, (list, tuple, str)) and not value)
        )
        return b"".join(
            (
                *(pb.text(f.NodeProto.INPUT, name) for name in call.inputs),
                *(pb.text(f.NodeProto.OUTPUT, name) for name in call.outputs),
                pb.text(f.NodeProto.NAME, call.name),
                pb.text(f.NodeProto.OP_TYPE, call.op),
                *(pb.data(f.NodeProto.ATTRIBUTE, attr) for attr in attrs),
                *([pb.text(f.NodeProto.DOMAIN, call.domain)] if call.domain else []),
            )
        )

    def _attribute(self, call: Call, name: str, value: Any) -> bytes:
        of = f.Attribute
        if DTYPE_ATTRS.get(call.op) == name and isinstance(value, str):
            value = _CODES[DType(value)]
        if isinstance(value, Value):
            value = value.const
        if isinstance(value, Graph):
            kind, body = _GRAPH, pb.data(of.G, self.graph(value))
        elif isinstance(value, np.ndarray):
            kind, body = _TENSOR, pb.data(of.T, _tensor("", value))
        elif isinstance(value, str):
            kind, body = _STRING, pb.text(of.S, value)
        elif isinstance(value, (bool, int, np.integer)):
            kind, body = _INT, pb.integer(of.I, int(value))
        elif isinstance(value, (float, np.floating)):
            kind, body = _FLOAT, pb.real(of.F, float(value))
        elif all(isinstance(v, str) for v in value):
            kind, body = _STRINGS, b"".join(pb.text(of.STRINGS, v) for v in value)
        elif all(isinstance(v, (int, np.integer)) for v in value):
            kind, body = _INTS, b"".join(pb.integer(of.INTS, int(v)) for v in value)
        else:
            kind, body = _FLOATS, b"".join(pb.real(of.FLOATS, float(v)) for v in value)
        return pb.text(of.NAME, name) + body + pb.integer(of.TYPE, kind)

    def _value_info(self, value: Value) -> bytes:
        info = value.type
        inner = pb.integer(f.TensorType.ELEM_TYPE, _CODES[info.dtype])
        if info.shape is not None:
            dims = b"".join(pb.data(f.Shape.DIM, _dimension(d)) for d in info.shape)
            inner += pb.data(f.TensorType.SHAPE, dims)
        kind = pb.data(f.Type.TENSOR_TYPE, inner)
        return pb.text(f.ValueInfo.NAME, self.name_of(value)) + pb.data(f.ValueInfo.TYPE, kind)


def _tensor(name: str, array: np.ndarray, dtype: DType | None = None) -> bytes:
    dtype = dtype or DType.of(array)
    raw = np.ascontiguousarray(array).astype(dtype.np.newbyteorder("<"), copy=False)
    return b"".join(
        (
            pb.integers(f.Tensor.DIMS, array.shape) if array.ndim else b"",
            pb.integer(f.Tensor.DATA_TYPE, _CODES[dtype]),
            pb.text(f.Tensor.NAME, name),
            pb.data(f.Tensor.RAW_DATA, raw.tobytes()),
        )
    )


def _dimension(dim: Any) -> bytes:
    if isinstance(dim, int):
        return pb.integer(f.Dimension.DIM_VALUE, dim)
    return pb.text(f.Dimension.DIM_PARAM, dim) if dim else b""
