"""A Paddle program in the older `.nb` forms, meta versions 0 and 1, which nothing writes today."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
from lite_engine.importers.naive_buffer.container import read_nb
from lite_engine.importers.naive_buffer.header import HEADER_BYTES
from lite_engine.importers.paddle.program import ATTR_TYPES, DTYPE_NUMBERS, Op, Var
from lite_engine.ir import DType
from lite_engine.model_file.naive_buffer.flatbuffer import Numbers, Raw, Scalar, Table, encode

_V0_TYPES = {DType.BOOL: 0, DType.I16: 1, DType.I32: 2, DType.I64: 3, DType.F16: 4, DType.F32: 5,
             DType.F64: 6, DType.U8: 8, DType.I8: 9}  # fmt: skip
_V0_KINDS = {7: 10, 9: 12, 10: 13, 13: 16, 17: 20}


def meta_1(data: bytes) -> bytes:
    """A meta version 2 file as version 1: the parameters in one FlatBuffer."""
    topology = struct.unpack_from("<Q", data, 18)[0]
    tables = [
        Table({1: name, 2: Scalar("B", 1), 3: Table({
            2: Numbers("q", array.shape), 3: Scalar("i", DTYPE_NUMBERS[DType.of(array)]),
            4: Raw(array.tobytes())})})
        for name, array in read_nb(memoryview(data)).params.items()
    ]  # fmt: skip
    return b"\1\0" + data[2 : HEADER_BYTES + topology] + encode(Table({0: tables}))


def meta_0(data: bytes) -> bytes:
    """A meta version 2 file as version 0: structures without tags, strings and lists counted."""
    program = read_nb(memoryview(data))
    blocks = b""
    for block in program.blocks:
        blocks += _numbers("ii", 0, block.parent)
        blocks += _list([_var(v) for v in block.vars.values()])
        blocks += _list([_op(op) for op in block.ops]) + _numbers("i", -1)
    topology = _numbers("Q", len(program.blocks)) + blocks
    params = _list([_param(name, array) for name, array in program.params.items()])
    return b"\0\0" + data[2:18] + _numbers("Q", len(topology)) + topology + params


def two_files(data: bytes, folder: Path) -> None:
    """A meta version 2 file as the two files that came before meta version 0."""
    whole = meta_0(data)
    end = HEADER_BYTES + struct.unpack_from("<Q", whole, 18)[0]
    (folder / "__model__.nb").write_bytes(whole[HEADER_BYTES:end])
    (folder / "param.nb").write_bytes(whole[end:])


def _numbers(fmt: str, *values: Any) -> bytes:
    return struct.pack("<" + fmt, *values)


def _list(items: list[bytes]) -> bytes:
    return _numbers("Q", len(items)) + b"".join(items)


def _text(text: str) -> bytes:
    return _numbers("Q", len(text.encode())) + text.encode()


def _tensor(dtype: DType | None = None, dims: Any = ()) -> bytes:
    code = _V0_TYPES[dtype] if dtype else 5
    return _numbers("i", code) + _list([_numbers("q", d) for d in dims])


def _var(var: Var) -> bytes:
    dense = _tensor(var.dtype, var.shape or ()) + _numbers("i", 0)
    array, reader = _tensor() + _numbers("i", 0), _list([])
    kind = _numbers("i", _V0_KINDS.get(var.kind, 20))
    out = _text(var.name) + kind + _tensor() + dense + array + reader + _list([])
    return out + _numbers("B", var.persistable)


def _op(op: Op) -> bytes:
    slots = [
        _list([_text(slot) + _list([_text(n) for n in names]) for slot, names in ports.items()])
        for ports in (op.inputs, op.outputs)
    ]
    return _text(op.type) + b"".join(slots) + _list([_attr(*a) for a in op.attrs.items()]) + b"\0"


def _attr(name: str, value: Any) -> bytes:
    """Every attribute holds a field of every type; the type says which one counts."""
    first = value[0] if isinstance(value, list) and value else None
    many = {bool: "BOOLEANS", int: "INTS", float: "FLOATS", str: "STRINGS"}
    one = {bool: "BOOLEAN", int: "INT", float: "FLOAT", str: "STRING"}
    kind = many.get(type(first), "INTS") if isinstance(value, list) else one[type(value)]

    def held(wanted: str, empty: Any) -> Any:
        return value if kind == wanted else empty

    def listed(wanted: str, fmt: str) -> bytes:
        return _list([_numbers(fmt, v) for v in held(wanted, [])])

    return b"".join((
        _text(name), _numbers("i", ATTR_TYPES.index(kind)), _numbers("i", held("INT", 0)),
        _numbers("f", held("FLOAT", 0.0)), _text(held("STRING", "")), listed("INTS", "i"),
        listed("FLOATS", "f"), _list([_text(v) for v in held("STRINGS", [])]),
        _numbers("B", held("BOOLEAN", 0)), listed("BOOLEANS", "B"), _numbers("i", 0),
        _numbers("q", 0), _list([]), _list([]),
    ))  # fmt: skip


def _param(name: str, array: np.ndarray) -> bytes:
    head = _text(name) + _numbers("IQ", 0, 0) + _list([]) + _numbers("I", 0)
    data = array.tobytes()
    return head + _tensor(DType.of(array), array.shape) + _numbers("Q", len(data)) + data
