"""The file's tables as plain records, every index checked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError, UnsupportedOperatorError
from ...ir import DType
from .._flatbuffers import Table, root
from .._shaped import shaped
from .schema import CUSTOM, INT4, OPERATORS, TENSOR_TYPES, TYPE_NAMES, read_options

MAX_RANK = 8
MAX_DIM = 1 << 31


@dataclass
class Quantization:
    """scale (1,) or (C,) f32, zero_point the same shape i64, axis of the C channels."""

    scale: np.ndarray
    zero_point: np.ndarray
    axis: int


@dataclass
class Tensor:
    """One tensor of a subgraph. `data` is the constant's array, a view of the file."""

    name: str
    dtype: DType | None
    type_name: str
    shape: tuple[int, ...]
    signature: tuple[int, ...]
    quant: Quantization | None
    is_variable: bool
    data: np.ndarray | None


@dataclass
class Operator:
    """One operator call; indices of tensors, -1 for an absent optional input."""

    index: int
    code: str
    inputs: list[int]
    outputs: list[int]
    options: dict[str, Any]
    custom: bytes
    is_custom: bool
    #: tensors that only say how numbers inside the operator are quantized
    intermediates: list[int]


@dataclass
class Subgraph:
    name: str
    tensors: list[Tensor]
    inputs: list[int]
    outputs: list[int]
    operators: list[Operator]


@dataclass
class File:
    """A whole model; `buffers` are views of the file, `metadata` names → buffer."""

    description: str
    version: int
    subgraphs: list[Subgraph]
    metadata: dict[str, memoryview]


def read_file(view: memoryview, path: Path) -> File:
    """Raises ModelFormatError when an offset, count, index or size does not fit."""
    model = root(view)
    version = model.number(0, "I")
    if version != 3:
        raise ModelFormatError(
            tr("TFLite schema version {version} is not supported", version=version),
            where=path,
            fix=tr("convert the model to version 3"),
        )
    buffers = [_buffer(view, table) for table in model.tables(4)]
    codes = [_operator_code(t) for t in model.tables(1)]
    subgraphs = [_subgraph(t, buffers, codes) for t in model.tables(2)]
    if not subgraphs:
        raise ModelFormatError(tr("the model holds no subgraph"), where=path)
    metadata = {}
    for table in model.tables(6):
        at = table.number(1, "I")
        if at < len(buffers):
            metadata[table.text(0)] = buffers[at]
    return File(model.text(3), version, subgraphs, metadata)


def _buffer(view: memoryview, table: Table) -> memoryview:
    """Data of a buffer; files over 2 GiB keep it behind the flatbuffer, by offset and size."""
    data = table.bytes(0)
    if data is not None:
        return data
    offset, size = table.number(1, "Q"), table.number(2, "Q")
    if offset <= 1:
        return view[:0]
    if offset + size > len(view):
        raise ModelFormatError(tr("tflite: a buffer lies outside the file"))
    return view[offset : offset + size]


def _operator_code(table: Table) -> tuple[str, bool]:
    """Name, and whether it is a custom operator. Old files use the 8-bit code."""
    code = max(table.number(0, "b"), table.number(3, "i"))
    if code == CUSTOM:
        return table.text(1) or "CUSTOM", True
    if 0 <= code < len(OPERATORS):
        return OPERATORS[code], False
    return tr("operator code {code}", code=code), False


def _subgraph(
    table: Table, buffers: Sequence[memoryview], codes: Sequence[tuple[str, bool]]
) -> Subgraph:
    tensors = [_tensor(t, buffers, i) for i, t in enumerate(table.tables(0))]
    operators = []
    for index, entry in enumerate(table.tables(3)):
        code = entry.number(0, "I")
        if code >= len(codes):
            raise ModelFormatError(
                tr(
                    "tflite: operator {index} has operator code {code}, but there are {count}",
                    index=index,
                    code=code,
                    count=len(codes),
                )
            )
        name, custom = codes[code]
        operators.append(
            Operator(
                index,
                name,
                _indices(entry, 1, len(tensors), f"{name} {index}", optional=True),
                _indices(entry, 2, len(tensors), f"{name} {index}"),
                {} if custom else read_options(name, entry.table(4) if entry.has(4) else None),
                bytes(entry.bytes(5) or b""),
                custom,
                _indices(entry, 8, len(tensors), f"{name} {index}"),
            )
        )
    return Subgraph(
        table.text(4),
        tensors,
        _indices(table, 1, len(tensors), tr("the subgraph's inputs")),
        _indices(table, 2, len(tensors), tr("the subgraph's outputs")),
        operators,
    )


def _indices(
    table: Table, slot: int, count: int, where: str, *, optional: bool = False
) -> list[int]:
    array = table.array(slot, "i4")
    out = [] if array is None else [int(i) for i in array]
    for i in out:
        if not (-1 if optional else 0) <= i < count:
            raise ModelFormatError(
                tr(
                    "tflite: {where} names tensor {i}, but there are {count}",
                    where=where,
                    i=i,
                    count=count,
                )
            )
    return out


def _tensor(table: Table, buffers: Sequence[memoryview], index: int) -> Tensor:
    name = table.text(3) or f"tensor{index}"
    shape = _dims(table, 0)
    signature = _dims(table, 7) if table.has(7) else shape
    code = table.number(1, "b")
    at = table.number(2, "I")
    if at >= len(buffers):
        raise ModelFormatError(
            tr(
                "tflite: tensor {name} names buffer {at}, but there are {count}",
                name=name,
                at=at,
                count=len(buffers),
            )
        )
    if len(shape) > MAX_RANK or any(not 0 <= d < MAX_DIM for d in shape):
        raise ModelFormatError(
            tr("tflite: tensor {name} has shape {shape}", name=name, shape=shape)
        )
    dtype = DType.I8 if code == INT4 else TENSOR_TYPES.get(code)
    if table.has(6):
        raise UnsupportedOperatorError(
            tr("the weight is stored sparse"),
            (name,),
            where=name,
            fix=tr("convert the model without sparsity"),
        )
    return Tensor(
        name,
        dtype,
        TYPE_NAMES.get(code) or (f"type {code}" if dtype is None else str(dtype)),
        shape,
        signature if len(signature) == len(shape) else shape,
        _quantization(table.table(4), name),
        bool(table.number(5, "?")),
        _data(buffers[at], code, shape, name),
    )


def _dims(table: Table, slot: int) -> tuple[int, ...]:
    array = table.array(slot, "i4")
    if array is not None and len(array) > MAX_RANK:
        raise ModelFormatError(
            tr("tflite: a tensor has {axes} axes, more than are supported", axes=len(array))
        )
    return () if array is None else tuple(int(d) for d in array)


def _data(buffer: memoryview, code: int, shape: tuple[int, ...], name: str) -> np.ndarray | None:
    """The constant's array, None when the tensor is computed."""
    dtype = TENSOR_TYPES.get(code)
    if not len(buffer) or (dtype is None and code != INT4):
        return None
    count = math.prod(shape)
    if code == INT4:
        if len(buffer) != (count + 1) // 2:
            raise ModelFormatError(
                tr(
                    "tflite: {name} needs {bytes} bytes, but its buffer has another size",
                    name=name,
                    bytes=(count + 1) // 2,
                )
            )
        packed = np.frombuffer(buffer, np.uint8)
        pairs = np.stack([packed & 15, packed >> 4], 1).ravel()[:count].astype(np.int8)
        return shaped(np.where(pairs > 7, pairs - 16, pairs).astype(np.int8), shape, name)
    assert dtype is not None
    if count * dtype.itemsize != len(buffer):
        raise ModelFormatError(
            tr(
                "tflite: {name} is {dtype}{shape}, which takes {bytes} bytes, but its "
                "buffer has {count}",
                name=name,
                dtype=dtype,
                shape=list(shape),
                bytes=count * dtype.itemsize,
                count=len(buffer),
            )
        )
    return shaped(np.frombuffer(buffer, dtype.np.newbyteorder("<")), shape, name)


def _quantization(table: Table | None, name: str) -> Quantization | None:
    if table is None:
        return None
    scale, zero = table.array(2, "f4"), table.array(3, "i8")
    if scale is None or not len(scale):
        return None
    zero = np.zeros(len(scale), np.int64) if zero is None or not len(zero) else zero
    if len(zero) != len(scale):
        if len(zero) != 1:
            raise ModelFormatError(
                tr(
                    "tflite: {name} has {scales} scales and {zero} zero points",
                    name=name,
                    scales=len(scale),
                    zero=len(zero),
                )
            )
        zero = np.repeat(zero, len(scale))
    if not np.isfinite(scale).all() or (scale < 0).any():
        raise ModelFormatError(
            tr("tflite: {name} has a quantization scale that is not positive", name=name)
        )
    return Quantization(scale, zero, table.number(6, "i"))
