"""GraphDef's messages as plain records: nodes, attributes, tensors, functions.

Field numbers from TensorFlow's graph.proto, node_def.proto, attr_value.proto, tensor.proto,
tensor_shape.proto, function.proto, types.proto.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError, UnsupportedOperatorError
from ...ir import DType, Shape
from .._protobuf import Message
from .._shaped import shaped
from . import fields

#: DataType → DType; strings, complex numbers, resources and variants are not tensors here. 11 to 16
#: are integers of the old quantized operators, which bring their range with them.
DTYPES = {
    1: DType.F32, 2: DType.F64, 3: DType.I32, 4: DType.U8, 5: DType.I16, 6: DType.I8, 9: DType.I64,
    10: DType.BOOL, 11: DType.I8, 12: DType.U8, 13: DType.I32, 14: DType.BF16, 15: DType.I16,
    16: DType.U16, 17: DType.U16, 19: DType.F16, 22: DType.U32, 23: DType.U64,
}  # fmt: skip
STRING, RESOURCE = 7, 20
#: a constant given as one repeated number may not be larger
MAX_SPLAT_BYTES = 1 << 28
MAX_RANK = 8


class Attrs:
    """Attributes of a node, decoded when asked for."""

    def __init__(self, message: Message) -> None:
        self._values = dict(map_entries(message, 5))

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def number(self, name: str, default: int = 0) -> int:
        value = self._values.get(name)
        return (
            default
            if value is None or fields.AttrValue.I not in value
            else value.int(fields.AttrValue.I)
        )

    def float(self, name: str, default: float = 0.0) -> float:
        value = self._values.get(name)
        return (
            default
            if value is None or fields.AttrValue.F not in value
            else value.float(fields.AttrValue.F)
        )

    def flag(self, name: str, default: bool = False) -> bool:
        value = self._values.get(name)
        return (
            default
            if value is None or fields.AttrValue.B not in value
            else bool(value.int(fields.AttrValue.B))
        )

    def text(self, name: str, default: str = "") -> str:
        value = self._values.get(name)
        return default if value is None else value.text(fields.AttrValue.S, default)

    def type(self, name: str) -> int:
        value = self._values.get(name)
        return 0 if value is None else value.int(fields.AttrValue.TYPE)

    def dtype(self, name: str, default: DType) -> DType:
        return DTYPES.get(self.type(name), default) if name in self else default

    def ints(self, name: str) -> list[int]:
        value = self._values.get(name)
        items = None if value is None else value.message(fields.AttrValue.LIST)
        return [] if items is None else items.ints(fields.ListValue.I)

    def shape(self, name: str) -> Shape | None:
        value = self._values.get(name)
        message = None if value is None else value.message(fields.AttrValue.SHAPE)
        return None if message is None else read_shape(message)

    def shapes(self, name: str) -> list[Shape | None]:
        value = self._values.get(name)
        items = None if value is None else value.message(fields.AttrValue.LIST)
        return (
            [] if items is None else [read_shape(m) for m in items.messages(fields.ListValue.SHAPE)]
        )

    def tensor(self, name: str) -> Message | None:
        value = self._values.get(name)
        return None if value is None else value.message(fields.AttrValue.TENSOR)

    def function(self, name: str) -> str:
        """Name of a function attribute."""
        value = self._values.get(name)
        message = None if value is None else value.message(fields.AttrValue.FUNC)
        return "" if message is None else message.text(fields.NameAttrList.NAME)


@dataclass
class NodeDef:
    """One node; `inputs` are "node", "node:1" or, in functions, "node:output:0"; `controls` are
    the nodes that it only waits for."""

    name: str
    op: str
    inputs: list[str]
    attrs: Attrs
    controls: list[str] = field(default_factory=list)


@dataclass
class FunctionDef:
    name: str
    args: list[str]
    #: outputs in order: a reference to a node of the body each
    returns: list[str]
    nodes: list[NodeDef]


@dataclass
class GraphDef:
    nodes: list[NodeDef]
    functions: dict[str, FunctionDef] = field(default_factory=dict)
    producer: int = 0


def map_entries(message: Message, number: int) -> Iterator[tuple[str, Message]]:
    """A protobuf map: entries with key 1 and value 2."""
    for entry in message.messages(number):
        value = entry.message(fields.MapEntry.VALUE)
        if value is not None:
            yield entry.text(fields.MapEntry.KEY), value


def read_graph(message: Message) -> GraphDef:
    functions = {}
    library = message.message(fields.GraphDef.LIBRARY)
    if library is not None:
        for entry in library.messages(fields.FunctionLibrary.FUNCTION):
            function = _function(entry)
            functions[function.name] = function
    versions = message.message(fields.GraphDef.VERSIONS)
    return GraphDef(
        [_node(m) for m in message.messages(fields.GraphDef.NODE)],
        functions,
        0 if versions is None else versions.int(fields.Versions.PRODUCER),
    )


def _node(message: Message) -> NodeDef:
    inputs = list(message.texts(fields.NodeDef.INPUT))
    return NodeDef(
        message.text(fields.NodeDef.NAME),
        message.text(fields.NodeDef.OP),
        [i for i in inputs if not i.startswith("^")],
        Attrs(message),
        [i[1:] for i in inputs if i.startswith("^")],
    )


def _function(message: Message) -> FunctionDef:
    signature = message.message(fields.FunctionDef.SIGNATURE)
    if signature is None:
        raise ModelFormatError(tr("tensorflow: a function has no signature"))
    returned = {}
    for entry in message.messages(fields.FunctionDef.RET):
        returned[entry.text(fields.MapEntry.KEY)] = entry.text(fields.MapEntry.VALUE)
    outputs = [m.text(fields.ArgDef.NAME) for m in signature.messages(fields.OpDef.OUTPUT_ARG)]
    missing = [o for o in outputs if o not in returned]
    if missing:
        raise ModelFormatError(
            tr(
                "tensorflow: {text} does not return {missing!r}",
                text=signature.text(fields.OpDef.NAME),
                missing=missing[0],
            )
        )
    return FunctionDef(
        signature.text(fields.OpDef.NAME),
        [m.text(fields.ArgDef.NAME) for m in signature.messages(fields.OpDef.INPUT_ARG)],
        [returned[o] for o in outputs],
        [_node(m) for m in message.messages(fields.FunctionDef.NODE_DEF)],
    )


def read_shape(message: Message) -> Shape | None:
    """None when the rank is unknown; None for a size of -1."""
    if message.int(fields.TensorShape.UNKNOWN_RANK):
        return None
    sizes = [m.int(fields.Dim.SIZE) for m in message.messages(fields.TensorShape.DIM)]
    if len(sizes) > MAX_RANK:
        raise ModelFormatError(
            tr("tensorflow: a tensor has {axes} axes, more than are supported", axes=len(sizes))
        )
    return tuple(None if d < 0 else d for d in sizes)


_OF = fields.TensorProto
#: Field of TensorProto that holds the numbers of a type, and its form on the wire
_VALUE_FIELDS = {
    DType.F32: (_OF.FLOAT_VAL, np.float32),
    DType.F64: (_OF.DOUBLE_VAL, np.float64),
    DType.I32: (_OF.INT_VAL, None),
    DType.U8: (_OF.INT_VAL, None),
    DType.I16: (_OF.INT_VAL, None),
    DType.I8: (_OF.INT_VAL, None),
    DType.U16: (_OF.INT_VAL, None),
    DType.I64: (_OF.INT64_VAL, None),
    DType.BOOL: (_OF.BOOL_VAL, None),
    DType.U32: (_OF.UINT32_VAL, None),
    DType.U64: (_OF.UINT64_VAL, None),
    DType.F16: (_OF.HALF_VAL, None),
    DType.BF16: (_OF.HALF_VAL, None),
}


def read_tensor(message: Message, where: str) -> tuple[np.ndarray, DType]:
    """The array of a TensorProto (a view of the file where possible). Raises ModelFormatError,
    UnsupportedOperatorError for strings and complex numbers."""
    code = message.int(fields.TensorProto.DTYPE)
    dtype = DTYPES.get(code)
    if dtype is None:
        what = tr("a string") if code == STRING else tr("of type {code}", code=code)
        raise UnsupportedOperatorError(
            tr("the constant is {what}", what=what), (where,), where=where
        )
    proto = message.message(fields.TensorProto.TENSOR_SHAPE)
    dims = () if proto is None else read_shape(proto)
    if dims is None or any(d is None for d in dims):
        raise ModelFormatError(
            tr("tensorflow: the shape of the constant {where} is not fixed", where=where)
        )
    shape = tuple(int(d) for d in dims)  # type: ignore[arg-type]
    count = math.prod(shape)
    content = message.bytes(fields.TensorProto.TENSOR_CONTENT)
    if content is not None and len(content):
        if len(content) != count * dtype.itemsize:
            raise ModelFormatError(
                tr(
                    "tensorflow: {where} has {bytes} bytes, which is not {dtype}{shape}",
                    where=where,
                    dtype=dtype,
                    shape=list(shape),
                    bytes=len(content),
                )
            )
        array = np.frombuffer(content, dtype.np.newbyteorder("<"))
        return shaped(array, shape, where), dtype
    number, wire = _VALUE_FIELDS[dtype]
    values = np.array(message.ints(number)) if wire is None else message.fixed(number, wire)
    if dtype in (DType.F16, DType.BF16):
        values = values.astype(np.uint16).view(dtype.np)
    else:
        values = values.astype(dtype.np)
    return _filled(values, shape, count, dtype, where), dtype


def _filled(
    values: np.ndarray, shape: tuple[int, ...], count: int, dtype: DType, where: str
) -> np.ndarray:
    """The last number is repeated to fill the shape; no number at all means zeros."""
    if len(values) == count:
        return shaped(values, shape, where)
    if len(values) > count or count * dtype.itemsize > MAX_SPLAT_BYTES:
        raise ModelFormatError(
            tr(
                "tensorflow: {where} has {numbers} numbers, which do not fill {shape}",
                where=where,
                numbers=len(values),
                shape=list(shape),
            )
        )
    out = np.full(count, values[-1] if len(values) else 0, dtype.np)
    out[: len(values)] = values
    return shaped(out, shape, where)
