"""TensorProto and TypeProto → arrays and types. Weights stay views of the file where aligned.

Source: onnx.proto3, messages TensorProto, SparseTensorProto, TypeProto, StringStringEntryProto.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError, UnsupportedOperatorError
from ...files import inside, is_file
from ...ir import Dim, DType, Shape
from ...mapped import aligned, map_file
from .._protobuf import Buffer, Message
from .._shaped import shaped
from . import fields

#: TensorProto.DataType → DType.
DTYPES = {
    1: DType.F32, 2: DType.U8, 3: DType.I8, 4: DType.U16, 5: DType.I16, 6: DType.I32, 7: DType.I64,
    9: DType.BOOL, 10: DType.F16, 11: DType.F64, 12: DType.U32, 13: DType.U64, 16: DType.BF16,
    17: DType.F8E4M3FN, 18: DType.F8E4M3FNUZ, 19: DType.F8E5M2, 20: DType.F8E5M2FNUZ, 21: DType.U4,
    22: DType.I4, 23: DType.F4E2M1, 24: DType.F8E8M0, 25: DType.U2, 26: DType.I2,
}  # fmt: skip
#: Bits of the types that share bytes in a file, the first element in the lowest bits.
PACKED = {DType.U4: 4, DType.I4: 4, DType.F4E2M1: 4, DType.U2: 2, DType.I2: 2}
_OTHER = {8: "string", 14: "complex64", 15: "complex128"}
_INT32_DATA = (
    DType.U8,
    DType.I8,
    DType.U16,
    DType.I16,
    DType.I32,
    DType.BOOL,
    DType.F16,
    DType.BF16,
)


def dtype_of(code: int, where: str) -> DType:
    """The DType of an ONNX element type. Raises UnsupportedOperatorError for one not held."""
    found = DTYPES.get(code)
    if found is not None:
        return found
    if code in _OTHER:
        raise UnsupportedOperatorError(
            tr("element type {other} is not supported", other=_OTHER[code]),
            (where,),
            where=where,
            fix=tr("export with float, integer or bool types"),
        )
    raise ModelFormatError(tr("element type {code} does not exist in ONNX", code=code), where=where)


class TensorReader:
    """Reads TensorProtos; keeps the mapped files of external data."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[Path, memoryview] = {}

    def read(self, tensor: Message) -> tuple[np.ndarray, DType]:
        """Array (read-only when it is a view of the file) and element type."""
        name = tensor.text(fields.Tensor.NAME) or "constant"
        code = tensor.int(fields.Tensor.DATA_TYPE)
        dtype = dtype_of(code, name)
        dims = tuple(tensor.ints(fields.Tensor.DIMS))
        if any(d < 0 for d in dims) or len(dims) > 64:
            raise ModelFormatError(
                tr("tensor dimensions {dims} are not valid", dims=dims[:8]), where=name
            )
        count = math.prod(dims)
        if dtype in PACKED:
            return shaped(self._unpacked(tensor, name, count, dtype), dims, name), dtype
        raw = self._raw(tensor, name)
        if raw is not None:
            if len(raw) != count * dtype.itemsize:
                raise ModelFormatError(
                    tr(
                        "{bytes} bytes of data are not {elements} elements of {dtype}",
                        bytes=len(raw),
                        elements=count,
                        dtype=dtype,
                    ),
                    where=name,
                )
            array = np.frombuffer(raw, dtype.np)
        else:
            array = _typed_fields(tensor, dtype)
        return shaped(aligned(array), dims, name), dtype

    def _unpacked(self, tensor: Message, name: str, count: int, dtype: DType) -> np.ndarray:
        """Several elements per byte, the first in the lowest bits → one per byte."""
        raw, bits = self._raw(tensor, name), PACKED[dtype]
        packed = (
            np.frombuffer(raw, np.uint8)
            if raw is not None
            else np.array([v & 0xFF for v in tensor.ints(fields.Tensor.INT32_DATA)], np.uint8)
        )
        if packed.size != -(-count * bits // 8):
            raise ModelFormatError(
                tr(
                    "{bytes} bytes of data are not {elements} elements of {dtype}",
                    bytes=packed.size,
                    elements=count,
                    dtype=dtype,
                ),
                where=name,
            )
        parts = [packed >> at & ((1 << bits) - 1) for at in range(0, 8, bits)]
        codes = np.stack(parts, -1).ravel()[:count]
        if dtype.np.kind == "u":
            return codes
        sign = 1 << (bits - 1)
        return (codes ^ sign).astype(np.int8) - np.int8(sign)

    def _raw(self, tensor: Message, name: str) -> Buffer | None:
        if tensor.int(fields.Tensor.DATA_LOCATION) == 1:
            return self._external(tensor, name)
        return tensor.bytes(fields.Tensor.RAW_DATA)

    def _external(self, tensor: Message, name: str) -> Buffer:
        keys = {
            e.text(fields.Entry.KEY): e.text(fields.Entry.VALUE)
            for e in tensor.messages(fields.Tensor.EXTERNAL_DATA)
        }
        location = keys.get("location", "")
        if not location:
            raise ModelFormatError(tr("the external data has no location"), where=name)
        path = inside(self._folder, location)
        if not is_file(path):
            raise ModelFormatError(
                tr("external data file {location!r} is missing", location=location),
                where=name,
                fix=tr("put it beside the model"),
            )
        if path not in self._files:
            self._files[path] = map_file(path)
        data = self._files[path]
        try:
            offset = int(keys.get("offset") or 0)
            length = int(keys.get("length") or len(data) - offset)
        except ValueError:
            raise ModelFormatError(
                tr("the offset of the external data is not a number"), where=name
            ) from None
        if offset < 0 or length < 0 or offset + length > len(data):
            raise ModelFormatError(
                tr(
                    "external data [{offset}, {end}) lies outside {location!r} of {bytes} bytes",
                    offset=offset,
                    end=offset + length,
                    location=location,
                    bytes=len(data),
                ),
                where=name,
            )
        return data[offset : offset + length]

    def read_sparse(self, sparse: Message) -> tuple[np.ndarray, DType, str]:
        """A SparseTensorProto, made dense; its name is that of the values."""
        values_proto, indices_proto = (
            sparse.message(fields.SparseTensor.VALUES),
            sparse.message(fields.SparseTensor.INDICES),
        )
        if values_proto is None:
            raise ModelFormatError(tr("sparse tensor without values"))
        values, dtype = self.read(values_proto)
        name = values_proto.text(fields.Tensor.NAME)
        dims = tuple(sparse.ints(fields.SparseTensor.DIMS))
        count = math.prod(dims) if all(d >= 0 for d in dims) else -1
        # a dense form may be larger than the file, but not absurdly so
        if not 0 <= count <= 1 << 28:
            raise ModelFormatError(
                tr("sparse tensor of dimensions {dims} is too large", dims=dims), where=name
            )
        indices = (
            self.read(indices_proto)[0] if indices_proto is not None else np.empty(0, np.int64)
        )
        fits = indices.dtype == np.int64 and indices.ndim in (1, 2)
        if fits and indices.ndim == 2:  # coordinates
            fits = indices.shape[1] == len(dims) and bool(np.all((indices >= 0) & (indices < dims)))
            whole = fits and indices.size > 0
            indices = np.ravel_multi_index(tuple(indices.T), dims) if whole else indices.ravel()
        if not (fits and indices.size == values.size) or (
            indices.size and not 0 <= indices.min() <= indices.max() < count
        ):
            raise ModelFormatError(
                tr("sparse indices do not fit dimensions {dims}", dims=dims), where=name
            )
        dense = np.zeros(count, dtype.np)
        dense[indices] = values.ravel()
        return shaped(dense, dims, name), dtype, name


def _typed_fields(tensor: Message, dtype: DType) -> np.ndarray:
    """The *_data field of the element type (the form without raw_data)."""
    if dtype is DType.F32:
        return tensor.fixed(fields.Tensor.FLOAT_DATA, np.float32)
    if dtype is DType.F64:
        return tensor.fixed(fields.Tensor.DOUBLE_DATA, np.float64)
    if dtype is DType.I64:
        return np.array(tensor.ints(fields.Tensor.INT64_DATA), np.int64)
    if dtype in (DType.U32, DType.U64):
        return np.array(
            [v & 0xFFFFFFFFFFFFFFFF for v in tensor.ints(fields.Tensor.UINT64_DATA)], np.uint64
        ).astype(dtype.np)
    assert dtype in _INT32_DATA or dtype.is_narrow
    values = np.array(tensor.ints(fields.Tensor.INT32_DATA), np.int64)
    if dtype is DType.F16:
        return values.astype(np.uint16).view(np.float16)
    return values.astype(dtype.np)


def read_type(type_proto: Message | None, where: str) -> tuple[DType | None, Shape | None]:
    """TypeProto → element type and shape; (None, None) when it says nothing.

    Raises UnsupportedOperatorError for sequences, maps and optionals.
    """
    if type_proto is None:
        return None, None
    for number, kind in (
        (fields.Type.SEQUENCE_TYPE, "sequence"),
        (fields.Type.MAP_TYPE, "map"),
        (fields.Type.OPTIONAL_TYPE, "optional"),
        (fields.Type.SPARSE_TENSOR_TYPE, tr("sparse tensor")),
    ):
        if number in type_proto:
            raise UnsupportedOperatorError(
                tr("values of type {kind} are not supported", kind=kind),
                (where,),
                where=where,
                fix=tr("export with tensors only"),
            )
    tensor = type_proto.message(fields.Type.TENSOR_TYPE)
    if tensor is None:
        return None, None
    code = tensor.int(fields.TensorType.ELEM_TYPE)
    dtype = dtype_of(code, where) if code else None
    shape = tensor.message(fields.TensorType.SHAPE)
    if shape is None:
        return dtype, None
    return dtype, tuple(_dim(d) for d in shape.messages(fields.Shape.DIM))


def _dim(dim: Message) -> Dim:
    """A number, a symbol, or None. Exporters also write −1 for "unknown"."""
    if fields.Dimension.DIM_VALUE in dim:
        value = dim.int(fields.Dimension.DIM_VALUE)
        return value if value >= 0 else None
    return dim.text(fields.Dimension.DIM_PARAM) or None
