"""ProgramDesc: the protobuf of `.pdmodel` and `__model__` files → Program.

Source: Paddle framework.proto (proto2); the field numbers are noted beside their use.
"""

from __future__ import annotations

from typing import Any

from ...errors import ModelFormatError
from .._protobuf import Buffer, Message
from .program import ATTR_TYPES, MAX_RANK, TENSOR_ARRAY, Block, Op, Program, Var, dtype_of

MAX_BLOCKS = 4096


def looks_like_program(head: bytes) -> bool:
    """True when a file starts like ProgramDesc: field 1 is a message that starts `idx: 0`."""
    if len(head) < 16 or head[0] != 0x0A:
        return False
    at = 1
    while at < 8 and head[at] & 0x80:
        at += 1
    return head[at + 1 : at + 4] == b"\x08\x00\x10"


def read_program(data: Buffer) -> Program:
    """The program without its parameters. Raises ModelFormatError."""
    message = Message(data)
    blocks = message.messages(1)
    if not 1 <= len(blocks) <= MAX_BLOCKS:
        raise ModelFormatError(f"a Paddle program has 1 to {MAX_BLOCKS} blocks, not {len(blocks)}")
    version = message.message(4)
    program = Program(version=version.int(1) if version else 0)
    program.blocks = [_block(b) for b in blocks]
    return program


def _block(message: Message) -> Block:
    out = Block(parent=message.int(2, -1))
    for item in message.messages(3):
        var = _var(item)
        out.vars[var.name] = var
    out.ops = [_op(item) for item in message.messages(4)]
    return out


def _var(message: Message) -> Var:
    name = message.text(1)
    kind_message = message.message(2)
    if not name or kind_message is None:
        raise ModelFormatError("a Paddle variable has no name or no type")
    kind = kind_message.int(1)
    var = Var(name, kind, persistable=bool(message.int(3)))
    holder = kind_message.message(4 if kind == TENSOR_ARRAY else 3)
    tensor = holder.message(1) if holder else None
    if tensor is not None:
        var.dtype, var.shape = tensor_desc(tensor, name)
    return var


def tensor_desc(message: Message, where: str) -> tuple[Any, tuple[int, ...]]:
    """TensorDesc {1: data_type, 2: dims} → (DType, shape with -1)."""
    dims = tuple(message.ints(2))
    if len(dims) > MAX_RANK:
        raise ModelFormatError(f"{len(dims)} dimensions", where=where)
    return dtype_of(message.int(1), where), dims


def _op(message: Message) -> Op:
    op = Op(message.text(3))
    if not op.type:
        raise ModelFormatError("a Paddle operator has no type")
    for number, slots in ((1, op.inputs), (2, op.outputs)):
        for item in message.messages(number):
            slots[item.text(1)] = item.texts(2)
    for item in message.messages(4):
        op.attrs[item.text(1)] = _attr(item)
    return op


def _attr(message: Message) -> Any:
    kind = message.int(2)
    if not 0 <= kind < len(ATTR_TYPES):
        raise ModelFormatError(f"attribute {message.text(1)!r} has type {kind}")
    readers = {
        "INT": lambda: message.int(3),
        "FLOAT": lambda: message.float(4),
        "STRING": lambda: message.text(5),
        "INTS": lambda: message.ints(6),
        "FLOATS": lambda: message.fixed(7, "f4").tolist(),
        "STRINGS": lambda: message.texts(8),
        "BOOLEAN": lambda: bool(message.int(10)),
        "BOOLEANS": lambda: [bool(v) for v in message.ints(11)],
        "BLOCK": lambda: message.int(12),
        "LONG": lambda: message.int(13),
        "BLOCKS": lambda: message.ints(14),
        "LONGS": lambda: message.ints(15),
        "FLOAT64S": lambda: message.fixed(16, "f8").tolist(),
        "VAR": lambda: message.text(17),
        "VARS": lambda: message.texts(18),
        "FLOAT64": lambda: message.float(19),
    }
    return readers[ATTR_TYPES[kind]]()
