"""Meta version 0: Paddle-Lite's first format (before 2.7), plain structures without tags.

Every structure is its fields in order; lists and strings start with a u64 count. Element types have
numbers of their own. Source: Paddle-Lite naive_buffer/proto/framework.nb.h.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError
from ...ir import DType
from ...mapped import aligned
from .._shaped import shaped
from ..paddle.program import (
    DENSE_TENSOR,
    FEED_LIST,
    FETCH_LIST,
    MAX_RANK,
    RAW,
    TENSOR_ARRAY,
    Block,
    Op,
    Program,
    Var,
)

_DTYPES = {0: DType.BOOL, 1: DType.I16, 2: DType.I32, 3: DType.I64, 4: DType.F16, 5: DType.F32,
           6: DType.F64, 8: DType.U8, 9: DType.I8}  # fmt: skip
_KINDS = {10: DENSE_TENSOR, 12: FEED_LIST, 13: FETCH_LIST, 16: TENSOR_ARRAY, 20: RAW}
_WAY_OUT = tr("convert the original Paddle model again, or with opt 2.7 or newer")


class _Reader:
    """A cursor over bytes that never leaves them."""

    def __init__(self, data: memoryview, version: str) -> None:
        self.data, self.at, self.version = data, 0, version

    def take(self, fmt: str) -> Any:
        size = struct.calcsize("<" + fmt)
        return struct.unpack("<" + fmt, self.bytes(size))[0]

    def bytes(self, size: int) -> memoryview:
        if size > len(self.data) - self.at:
            raise ModelFormatError(
                tr("the file ends too early"),
                where=tr("naive buffer of meta version 0 (opt {version})", version=self.version),
                fix=_WAY_OUT,
            )
        out = self.data[self.at : self.at + size]
        self.at += size
        return out

    def text(self) -> str:
        try:
            return str(self.bytes(self.take("Q")), "utf-8")
        except UnicodeDecodeError:
            raise ModelFormatError(tr("naive buffer: a string is not UTF-8 text")) from None

    def items(self, item: Callable[[], Any]) -> list[Any]:
        count = self.take("Q")
        if count > len(self.data) - self.at:
            raise ModelFormatError(
                tr(
                    "naive buffer: a list of {elements} elements does not fit the file",
                    elements=count,
                )
            )
        return [item() for _ in range(count)]

    def numbers(self, fmt: str) -> list[Any]:
        return self.items(lambda: self.take(fmt))


def read_tlv(topology: memoryview, params: memoryview, version: str) -> Program:
    """Raises ModelFormatError that names the version and the way out."""
    reader = _Reader(topology, version)
    program = Program(blocks=reader.items(lambda: _block(reader)), reuses_variables=True)
    if not program.blocks:
        raise ModelFormatError(tr("naive buffer: the program has no blocks"))
    weights = _Reader(params, version)
    for name, array in weights.items(lambda: _param(weights)):
        program.params[name] = array
    return program


def _block(r: _Reader) -> Block:
    r.take("i")
    out = Block(parent=r.take("i"))
    for var in r.items(lambda: _var(r)):
        out.vars[var.name] = var
    out.ops = r.items(lambda: _op(r))
    r.take("i")
    return out


def _tensor(r: _Reader) -> tuple[DType | None, tuple[int, ...]]:
    dtype = _DTYPES.get(r.take("i"))
    dims = tuple(r.numbers("q"))
    if len(dims) > MAX_RANK:
        raise ModelFormatError(
            tr(
                "naive buffer: a tensor has {dimensions} dimensions, more than are supported",
                dimensions=len(dims),
            )
        )
    return dtype, dims


def _var(r: _Reader) -> Var:
    name = r.text()
    var = Var(name, _KINDS.get(r.take("i"), RAW))
    _tensor(r)  # selected rows
    var.dtype, shape = _tensor(r)
    r.take("i")
    if shape:
        var.shape = shape
    else:  # opt left the description empty
        var.dtype = None
    _tensor(r)  # tensor array
    r.take("i")
    r.items(lambda: (_tensor(r), r.take("i")))  # reader
    r.numbers("i")  # tuple
    var.persistable = bool(r.take("B"))
    return var


def _op(r: _Reader) -> Op:
    op = Op(r.text())
    for target in (op.inputs, op.outputs):
        for slot, names in r.items(lambda: (r.text(), r.items(r.text))):
            target[slot] = names
    op.attrs = dict(r.items(lambda: _attr(r)))
    r.take("B")
    return op


def _attr(r: _Reader) -> tuple[str, Any]:
    """Every attribute stores a field of every type; `type` says which one counts."""
    name, kind = r.text(), r.take("i")
    fields = {
        0: r.take("i"), 1: r.take("f"), 2: r.text(), 3: r.numbers("i"), 4: r.numbers("f"),
        5: r.items(r.text), 6: bool(r.take("B")), 7: [bool(v) for v in r.numbers("B")],
        8: r.take("i"), 9: r.take("q"), 10: r.numbers("i"), 11: r.numbers("q"),
    }  # fmt: skip
    if kind not in fields:
        raise ModelFormatError(
            tr(
                "naive buffer: attribute {name!r} has type {kind}, which is not known",
                name=name,
                kind=kind,
            )
        )
    return name, fields[kind]


def _param(r: _Reader) -> tuple[str, np.ndarray]:
    name = r.text()
    r.take("I")
    r.take("Q")
    r.items(lambda: r.numbers("Q"))
    r.take("I")
    dtype, dims = _tensor(r)
    raw = r.bytes(r.take("Q"))
    return name, array_of(name, dtype, dims, raw)


def array_of(name: str, dtype: DType | None, dims: Sequence[int], raw: memoryview) -> np.ndarray:
    """The values of a parameter in any version of the format. Raises ModelFormatError."""
    if dtype is None or any(d < 0 for d in dims) or math.prod(dims) * dtype.itemsize != len(raw):
        raise ModelFormatError(
            tr(
                "naive buffer: {name!r} has {bytes} bytes, which is not shape {dims}",
                name=name,
                dims=dims,
                bytes=len(raw),
            )
        )
    return shaped(aligned(np.frombuffer(raw, dtype.np.newbyteorder("<"))), dims, name)
