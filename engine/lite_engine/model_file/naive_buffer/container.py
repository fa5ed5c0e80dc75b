"""Program → the bytes of a `.nb` file of meta version 2; the importer has its layout.

Attributes and slots are sorted by name, as Paddle-Lite's reader looks them up by bisection.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import UnsupportedOperatorError
from ...importers.paddle.program import (
    ATTR_TYPES,
    DENSE_TENSOR,
    DTYPE_NUMBERS,
    Block,
    Op,
    Program,
    Var,
)
from ...ir import DType
from .flatbuffer import Numbers, Raw, Scalar, Table, encode

META_VERSION = 2
#: What the 16 bytes for the version of opt say; Paddle-Lite only warns when it has another.
OPT_VERSION = b"v2.13-rc"
_MAX_PARAMS = 65535


class Long(int):
    """An attribute that Paddle-Lite reads as 64-bit although it is small."""


class Floats(list[float]):
    """A list of floats that may be empty."""


def encode_nb(program: Program) -> bytes:
    """Raises UnsupportedOperatorError for a type that Paddle-Lite cannot load."""
    topology = encode(_program(program))
    header = struct.pack("<H16sQ", META_VERSION, OPT_VERSION, len(topology))
    return b"".join([header, topology, *_params(program)])


def _program(program: Program) -> Table:
    blocks = [_block(i, b) for i, b in enumerate(program.blocks)]
    version = Table({0: Scalar("q", program.version)})
    return Table({0: blocks, 1: version})


def _block(index: int, block: Block) -> Table:
    return Table({
        0: Scalar("i", index), 1: Scalar("i", block.parent),
        2: [_var(v) for v in block.vars.values()], 3: [_op(o) for o in block.ops],
        4: Scalar("i", -1),
    })  # fmt: skip


def _var(var: Var) -> Table:
    kind: dict[int, Any] = {0: Scalar("i", var.kind)}
    if var.kind == DENSE_TENSOR:
        number = DTYPE_NUMBERS[var.dtype or DType.F32]
        dims = Numbers("q", list(var.shape or ()))
        kind[2] = Table({0: Table({0: Scalar("i", number), 1: dims})})
    return Table({0: var.name, 1: Table(kind), 2: Scalar("?", var.persistable)})


def _op(op: Op) -> Table:
    return Table({
        0: op.type, 1: _slots(op.inputs), 2: _slots(op.outputs),
        3: [_attr(name, op.attrs[name]) for name in sorted(op.attrs, key=str.encode)],
    })  # fmt: skip


def _slots(slots: dict[str, list[str]]) -> list[Table]:
    return [Table({0: s, 1: list(slots[s])}) for s in sorted(slots, key=str.encode)]


def _attr(name: str, value: Any) -> Table:
    """The type follows from the Python value: bool, int, float, str and lists of them."""
    first = value[0] if isinstance(value, (list, tuple)) and value else 0
    if isinstance(value, bool):
        kind, slot, stored = "BOOLEAN", 8, Scalar("?", value)
    elif isinstance(value, int):
        big = isinstance(value, Long) or not -(2**31) <= value < 2**31
        kind, slot = ("LONG", 11) if big else ("INT", 2)
        stored = Scalar("q" if big else "i", value)
    elif isinstance(value, float):
        kind, slot, stored = "FLOAT", 3, Scalar("f", value)
    elif isinstance(value, str):
        kind, slot, stored = "STRING", 4, value  # type: ignore[assignment]
    elif isinstance(first, str):
        kind, slot, stored = "STRINGS", 7, list(value)  # type: ignore[assignment]
    elif isinstance(first, bool):
        kind, slot, stored = "BOOLEANS", 9, Numbers("?", list(value))  # type: ignore[assignment]
    elif isinstance(first, float) or isinstance(value, Floats):
        kind, slot, stored = "FLOATS", 6, Numbers("f", list(value))  # type: ignore[assignment]
    else:
        kind, slot, stored = "INTS", 5, Numbers("i", list(value))  # type: ignore[assignment]
    return Table({0: name, 1: Scalar("i", ATTR_TYPES.index(kind)), slot: stored})


def _params(program: Program) -> list[bytes]:
    names = program.parameter_names()
    if len(names) > _MAX_PARAMS:
        raise UnsupportedOperatorError(
            tr(
                "a .nb file holds at most {max_params} weights, the model has {count}",
                max_params=_MAX_PARAMS,
                count=len(names),
            )
        )
    largest = max((program.params[n].nbytes for n in names), default=0)
    parts = [struct.pack("<HHHHI", 0, 0, 6, len(names), largest)]
    for name in names:
        body = _param(name, program.params[name])
        parts += [struct.pack("<II", len(body) + 4, 4), body]
    return parts


def _param(name: str, array: np.ndarray) -> bytes:
    dtype = DType.of(array)
    if dtype is DType.F64 or dtype not in DTYPE_NUMBERS:
        raise UnsupportedOperatorError(
            tr(
                "weight {name!r} is {dtype}, which Paddle-Lite does not load",
                name=name,
                dtype=dtype,
            ),
            (name,),
            fix=tr("cast it to f32"),
        )
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    tensor = Table({
        2: Numbers("q", list(array.shape)), 3: Scalar("i", DTYPE_NUMBERS[dtype]),
        4: Raw(little.tobytes()),
    })  # fmt: skip
    return encode(Table({1: name, 2: Scalar("B", 1), 3: tensor}))
