"""ProgramDesc: the protobuf of `.pdmodel` and `__model__` files → Program.

Source: Paddle framework.proto (proto2); the field numbers are noted beside their use.
"""

from __future__ import annotations

from typing import Any

from lite_messages import tr

from ...errors import ModelFormatError
from .._protobuf import Buffer, Message
from . import fields
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
    blocks = message.messages(fields.ProgramDesc.BLOCKS)
    if not 1 <= len(blocks) <= MAX_BLOCKS:
        raise ModelFormatError(
            tr(
                "a Paddle program has 1 to {max_blocks} blocks, not {count}",
                max_blocks=MAX_BLOCKS,
                count=len(blocks),
            )
        )
    version = message.message(fields.ProgramDesc.VERSION)
    program = Program(version=version.int(fields.Version.VERSION) if version else 0)
    program.blocks = [_block(b) for b in blocks]
    return program


def _block(message: Message) -> Block:
    out = Block(parent=message.int(fields.BlockDesc.PARENT_IDX, -1))
    for item in message.messages(fields.BlockDesc.VARS):
        var = _var(item)
        out.vars[var.name] = var
    out.ops = [_op(item) for item in message.messages(fields.BlockDesc.OPS)]
    return out


def _var(message: Message) -> Var:
    name = message.text(fields.VarDesc.NAME)
    kind_message = message.message(fields.VarDesc.TYPE)
    if not name or kind_message is None:
        raise ModelFormatError(tr("a Paddle variable has no name or no type"))
    kind = kind_message.int(fields.VarType.TYPE)
    var = Var(name, kind, persistable=bool(message.int(fields.VarDesc.PERSISTABLE)))
    holder = kind_message.message(4 if kind == TENSOR_ARRAY else 3)
    tensor = holder.message(fields.DenseTensor.TENSOR) if holder else None
    if tensor is not None:
        var.dtype, var.shape = tensor_desc(tensor, name)
    return var


def tensor_desc(message: Message, where: str) -> tuple[Any, tuple[int, ...]]:
    """TensorDesc {1: data_type, 2: dims} → (DType, shape with -1)."""
    dims = tuple(message.ints(fields.TensorDesc.DIMS))
    if len(dims) > MAX_RANK:
        raise ModelFormatError(
            tr("{dimensions} dimensions are more than are supported", dimensions=len(dims)),
            where=where,
        )
    return dtype_of(message.int(fields.TensorDesc.DATA_TYPE), where), dims


def _op(message: Message) -> Op:
    op = Op(message.text(fields.OpDesc.TYPE))
    if not op.type:
        raise ModelFormatError(tr("a Paddle operator has no type"))
    for number, slots in ((1, op.inputs), (2, op.outputs)):
        for item in message.messages(number):
            slots[item.text(fields.OpVar.PARAMETER)] = item.texts(fields.OpVar.ARGUMENTS)
    for item in message.messages(fields.OpDesc.ATTRS):
        op.attrs[item.text(fields.OpAttr.NAME)] = _attr(item)
    return op


def _attr(message: Message) -> Any:
    kind = message.int(fields.OpAttr.TYPE)
    if not 0 <= kind < len(ATTR_TYPES):
        raise ModelFormatError(
            tr(
                "attribute {text!r} has type {kind}, which is not known",
                text=message.text(fields.OpAttr.NAME),
                kind=kind,
            )
        )
    readers = {
        "INT": lambda: message.int(fields.OpAttr.I),
        "FLOAT": lambda: message.float(fields.OpAttr.F),
        "STRING": lambda: message.text(fields.OpAttr.S),
        "INTS": lambda: message.ints(fields.OpAttr.INTS),
        "FLOATS": lambda: message.fixed(fields.OpAttr.FLOATS, "f4").tolist(),
        "STRINGS": lambda: message.texts(fields.OpAttr.STRINGS),
        "BOOLEAN": lambda: bool(message.int(fields.OpAttr.B)),
        "BOOLEANS": lambda: [bool(v) for v in message.ints(fields.OpAttr.BOOLS)],
        "BLOCK": lambda: message.int(fields.OpAttr.BLOCK_IDX),
        "LONG": lambda: message.int(fields.OpAttr.L),
        "BLOCKS": lambda: message.ints(fields.OpAttr.BLOCKS_IDX),
        "LONGS": lambda: message.ints(fields.OpAttr.LONGS),
        "FLOAT64S": lambda: message.fixed(fields.OpAttr.FLOAT64S, "f8").tolist(),
        "VAR": lambda: message.text(fields.OpAttr.VAR_NAME),
        "VARS": lambda: message.texts(fields.OpAttr.VARS_NAME),
        "FLOAT64": lambda: message.float(fields.OpAttr.FLOAT64),
    }
    return readers[ATTR_TYPES[kind]]()
