"""The outer layout of `.nb` files and the FlatBuffers in them → Program.

Header (header.py) · topology. Then the parameters:
meta 2 a table of small FlatBuffers, meta 1 one FlatBuffer, meta 0 Paddle-Lite's first own format.
Sources: Paddle-Lite model_parser.cc, flatbuffers/framework.fbs and param.fbs (slots noted at use).
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError, VersionError
from .._flatbuffers import Table, root
from ..paddle.program import (
    ATTR_TYPES,
    DENSE_TENSOR,
    MAX_RANK,
    Block,
    Op,
    Program,
    Var,
    dtype_of,
)
from .header import read_header
from .tlv import array_of, read_tlv

_DENSE_PARAM = 1  # ParamDesc.variable is a union; 1 is LoDTensorDesc


def read_nb(data: memoryview) -> Program:
    """Raises ModelFormatError, VersionError."""
    header = read_header(data)
    if header.meta_version == 0:
        return read_tlv(header.topology, header.params, header.opt_version)
    program = _program(root(header.topology))
    read = _params_v2 if header.meta_version == 2 else _params_v1
    for name, array in read(header.params):
        program.params[name] = array
    missing = [n for n in program.parameter_names() if n not in program.params]
    if missing:
        raise ModelFormatError(
            tr("naive buffer: the weights of {missing!r} are not in the file", missing=missing[0])
        )
    return program


# ---- topology


def _program(table: Table) -> Program:
    blocks = table.tables(0)
    if not blocks:
        raise ModelFormatError(tr("naive buffer: the program has no blocks"))
    version = table.table(1)
    program = Program(version=int(version.number(0, "q")) if version else 0, reuses_variables=True)
    program.blocks = [_block(b) for b in blocks]
    return program


def _block(table: Table) -> Block:
    out = Block(parent=int(table.number(1, "i", -1)))
    for item in table.tables(2):
        var = _var(item)
        out.vars[var.name] = var
    out.ops = [_op(item) for item in table.tables(3)]
    return out


def _var(table: Table) -> Var:
    kind = table.table(1)
    if kind is None:
        raise ModelFormatError(tr("naive buffer: a variable has no type"))
    var = Var(table.text(0), int(kind.number(0, "i", DENSE_TENSOR)))
    var.persistable = bool(table.number(2, "B"))
    dense = kind.table(2)
    tensor = dense.table(0) if dense else None
    if tensor is not None:
        dims = tensor.array(1, "i8")
        var.shape = tuple(int(d) for d in dims) if dims is not None else ()
        if len(var.shape) > MAX_RANK:
            raise ModelFormatError(
                tr(
                    "naive buffer: {var} has {dimensions} dimensions, more than are supported",
                    var=var.name,
                    dimensions=len(var.shape),
                )
            )
        if var.kind == DENSE_TENSOR:
            var.dtype = dtype_of(int(tensor.number(0, "i")), var.name)
    return var


def _op(table: Table) -> Op:
    op = Op(table.text(0))
    if not op.type:
        raise ModelFormatError(tr("naive buffer: an operator has no type"))
    for slot, target in ((1, op.inputs), (2, op.outputs)):
        for item in table.tables(slot):
            target[item.text(0)] = item.texts(1)
    for item in table.tables(3):
        op.attrs[item.text(0)] = _attr(item)
    return op


def _list(table: Table, slot: int, dtype: str) -> list[Any]:
    values = table.array(slot, dtype)
    return [] if values is None else values.tolist()


def _attr(table: Table) -> Any:
    kind = int(table.number(1, "i"))
    readers = {
        "INT": lambda: int(table.number(2, "i")),
        "FLOAT": lambda: float(table.number(3, "f")),
        "STRING": lambda: table.text(4),
        "INTS": lambda: _list(table, 5, "i4"),
        "FLOATS": lambda: _list(table, 6, "f4"),
        "STRINGS": lambda: table.texts(7),
        "BOOLEAN": lambda: bool(table.number(8, "B")),
        "BOOLEANS": lambda: [bool(v) for v in _list(table, 9, "u1")],
        "BLOCK": lambda: int(table.number(10, "i")),
        "LONG": lambda: int(table.number(11, "q")),
        "BLOCKS": lambda: _list(table, 12, "i4"),
        "LONGS": lambda: _list(table, 13, "i8"),
        "FLOAT64S": lambda: _list(table, 15, "f8"),
        "FLOAT64": lambda: float(table.number(14, "d")),
    }
    name = ATTR_TYPES[kind] if 0 <= kind < len(ATTR_TYPES) else ""
    if name not in readers:
        raise ModelFormatError(
            tr(
                "naive buffer: attribute {text!r} has type {kind}, which is not known",
                text=table.text(0),
                kind=kind,
            )
        )
    return readers[name]()


# ---- parameters


def _params_v2(data: memoryview) -> Any:
    """u16 0 · u16 meta size · meta · u16 6 · u16 count · u32 largest; then size, offset, table."""
    version, meta = struct.unpack("<HH", _slice(data, 0, 4))
    if version != 0:
        raise VersionError(
            tr("naive buffer: parameter format {version} is not known", version=version)
        )
    _, count, _ = struct.unpack("<HHI", _slice(data, 4 + meta, 8))
    at = 12 + meta
    for _ in range(count):
        total, offset = struct.unpack("<II", _slice(data, at, 8))
        if not 4 <= offset <= total:
            raise ModelFormatError(tr("naive buffer: a parameter has an impossible size"))
        yield _param(root(_slice(data, at + 4 + offset, total - offset)))
        at += 4 + total


def _params_v1(data: memoryview) -> Any:
    for table in root(data).tables(0):
        yield _param(table)


def _slice(data: memoryview, at: int, size: int) -> memoryview:
    if at + size > len(data):
        raise ModelFormatError(tr("naive buffer: the file ends inside the weights"))
    return data[at : at + size]


def _param(table: Table) -> tuple[str, np.ndarray]:
    """ParamDesc {1 name, 2 kind, 3 LoDTensorDesc {2 dims, 3 type, 4 data}}"""
    name, tensor = table.text(1), table.table(3)
    if int(table.number(2, "B")) != _DENSE_PARAM or tensor is None:
        raise ModelFormatError(tr("naive buffer: {name!r} is not a dense tensor", name=name))
    dims = [int(d) for d in _list(tensor, 2, "i8")]
    dtype = dtype_of(int(tensor.number(3, "i")), name)
    raw = tensor.bytes(4)
    raw = memoryview(b"") if raw is None else raw
    return name, array_of(name, dtype, dims, raw)
