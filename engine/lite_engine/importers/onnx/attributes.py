"""AttributeProto → Python values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from lite_messages import tr
from numpy.typing import DTypeLike

from ...errors import ModelFormatError, UnsupportedOperatorError
from ...ir import Graph, Value
from .._protobuf import Message
from . import fields
from .tensors import TensorReader

#: Attributes that hold a TensorProto.DataType.
DTYPE_ATTRS = {
    "Cast": "to",
    "BitCast": "to",
    "EyeLike": "dtype",
    "RandomNormal": "dtype",
    "RandomUniform": "dtype",
    "RandomNormalLike": "dtype",
    "RandomUniformLike": "dtype",
    "Bernoulli": "dtype",
    "Multinomial": "dtype",
    "HannWindow": "output_datatype",
    "HammingWindow": "output_datatype",
    "BlackmanWindow": "output_datatype",
    "MelWeightMatrix": "output_datatype",
    "Attention": "softmax_precision",
    "FlexAttention": "softmax_precision",
    "QuantizeLinear": "output_dtype",
    "DequantizeLinear": "output_dtype",
}


def read_attribute(
    attr: Message, tensors: TensorReader, read_graph: Callable[[Message], Graph], label: str
) -> Any:
    """The value of an AttributeProto; a tensor is a constant Value. Raises ModelFormatError,
    UnsupportedOperatorError."""
    name = attr.text(fields.Attribute.NAME)
    kind = attr.int(fields.Attribute.TYPE) or _guess_kind(attr)
    if kind == 1:
        return attr.float(fields.Attribute.F)
    if kind == 2:
        return attr.int(fields.Attribute.I)
    if kind == 3:
        held = attr.bytes(fields.Attribute.S) or b""  # may hold anything, where an exporter put it
        return str(held, "utf-8", "backslashreplace")
    if kind == 4:
        tensor = attr.message(fields.Attribute.T)
        if tensor is None:
            raise ModelFormatError(tr("attribute {name!r} has no tensor", name=name), where=label)
        array, dtype = tensors.read(tensor)
        return Value("", dtype, const=array)
    if kind == 5:
        graph = attr.message(fields.Attribute.G)
        if graph is None:
            raise ModelFormatError(tr("attribute {name!r} has no graph", name=name), where=label)
        return read_graph(graph)
    if kind == 6:
        return [float(v) for v in attr.fixed(fields.Attribute.FLOATS, np.float32)]
    if kind == 7:
        return attr.ints(fields.Attribute.INTS)
    if kind == 8:
        return attr.texts(fields.Attribute.STRINGS)
    if kind == 11:
        sparse = attr.message(fields.Attribute.SPARSE_TENSOR)
        if sparse is not None:
            array, dtype, _ = tensors.read_sparse(sparse)
            return Value("", dtype, const=array)
    raise UnsupportedOperatorError(
        tr(
            "attribute {name!r} has a type (kind {kind}) that is not supported",
            name=name,
            kind=kind,
        ),
        (label,),
        where=label,
    )


def _guess_kind(attr: Message) -> int:
    """The kind of an attribute written before `type` existed."""
    of = fields.Attribute
    kinds = (
        (of.F, 1), (of.I, 2), (of.S, 3), (of.T, 4), (of.G, 5), (of.FLOATS, 6), (of.INTS, 7),
        (of.STRINGS, 8), (of.SPARSE_TENSOR, 11),
    )  # fmt: skip
    return next((kind for number, kind in kinds if number in attr), 7)


def numbers(name: str, given: Any, dtype: DTypeLike, label: str) -> np.ndarray:
    """What the attribute of a Constant holds, as an array. Raises ModelFormatError where it is of
    another kind than its name says."""
    try:
        return np.array(given, dtype)
    except (OverflowError, TypeError, ValueError):
        raise ModelFormatError(
            tr("attribute {name!r} does not hold numbers", name=name), where=label
        ) from None
