"""Plan → program: the bytes that the native runtime (and `lite_run`) executes.

Format, version 1 or 2 (read by `native/src/runtime/program.cc`). Little-endian, packed:

    header   char magic[4] "LPRG"; u32 version; u64 arena_bytes; u32 strings_bytes, num_tensors,
             num_steps, num_inputs, num_outputs, num_weights; version 2: u32 samples, first, end;
             u64 whole_bytes
    strings  strings_bytes bytes of 0-terminated UTF-8; a name below is its offset here
    inputs   u32 tensor[num_inputs];  outputs  u32 tensor[num_outputs]
    tensor   u32 name; u8 dtype, role, rank, turns; i32 alias_of (-1: none); u32 weight (role 3
             only); u64 offset; i64 pitch; i32 halo[4]; i32 halo_value; i64 dims[rank]; version 2,
             role 4, no alias: u64 whole
    step     u32 name, op, kernel, num_inputs, num_outputs, num_attrs; i32 tensor[num_inputs +
             num_outputs] (-1: absent); num_attrs times: u32 name, kind, count and the values:
             i64[count] (kind 1), f64[count] (kind 2) or u8[count] (kind 3)

`offset` is in bytes: into the arena, or for an alias from the first byte of what it aliases. Roles
count from 1; the fifth, memory of a device, is refused in a program of the CPU alone.

In version 2, the steps [first, end) take turns over `samples` (`turns.py`). Their tensors, weights
aside, have `turns` 1, memory for the samples of one turn in the place of the batch that `dims`
name, or 2, an alias that moves over the samples of what it aliases and stands behind all others;
the tensors of other steps have 0. With 1, `offset` is into memory that only such tensors share, for
turns of one sample. Where a turn takes the whole batch, the arena has whole_bytes, with a tensor's
bytes at `whole`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from weakref import ReferenceType, ref

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import DType
from .model import ROLES, Plan, PlanTensor, Step, changed
from .turns import Turns, turns_of

VERSION, WITH_TURNS = 1, 2
_KEPT, _MOVING = 1, 2
DTYPE_CODES = {dtype: code for code, dtype in enumerate(DType, start=1)}
ROLE_CODES = {role: code for code, role in enumerate(ROLES, start=1)}
_INTS, _FLOATS, _STRING = 1, 2, 3
#: The header's numbers behind its magic; that of the weights is the last.
_NUMBERS = "<IQ6I"
_HEADER = 4 + struct.calcsize(_NUMBERS)
_OF_TURNS = "<3IQ"


@dataclass
class WeightTable:
    """The weights that programs refer to by index; equal bytes are kept once, where they are
    `compared`: for a program that stays in memory, reading them all would take longer than the few
    that are equal are worth."""

    compared: bool = True
    blobs: list[np.ndarray] = field(default_factory=list)
    _known: dict[bytes, int] = field(default_factory=dict)
    #: Index by the array itself: every program of a file names the same weights. An array that is
    #: no longer there frees its id for another.
    _indices: dict[int, tuple[ReferenceType[np.ndarray], int]] = field(default_factory=dict)

    def add(self, array: np.ndarray) -> int:
        reference, index = self._indices.get(id(array), (None, 0))
        if reference is not None and reference() is array:
            return index
        # A view of a file may be unaligned; NumPy leaves an empty one as it is.
        blob = np.require(array if array.size else array.copy(), requirements=("C", "A"))
        index = len(self.blobs)
        if self.compared:
            index = self._known.setdefault(_digest(blob), index)
        if index == len(self.blobs):
            self.blobs.append(blob)
        self._indices[id(array)] = ref(array), index
        return index

    def find(self, array: np.ndarray) -> int | None:
        """Index of a blob that is already kept, None when it is not."""
        return self._known.get(_digest(np.require(array, requirements=("C", "A"))))


def encode(plan: Plan, table: WeightTable) -> bytes:
    """The program of a plan whose steps all run on the CPU backend; its weights go into `table`.

    Raises ShapeError for a plan that the format cannot hold.
    """
    try:
        return _encode(plan, table)
    except (struct.error, OverflowError):
        raise ShapeError(
            tr("a size or an attribute of this model is too large for a native program")
        ) from None


def with_table(program: bytes, table: WeightTable) -> bytes:
    """A program that `encode` made, now that its table holds more weights."""
    return program[: _HEADER - 4] + struct.pack("<I", len(table.blobs)) + program[_HEADER:]


def _encode(plan: Plan, table: WeightTable) -> bytes:
    strings = Strings()
    turns = turns_of(plan)
    views = _moving(plan, turns)
    body = bytearray()
    body += struct.pack(f"<{len(plan.inputs)}I", *plan.inputs)
    body += struct.pack(f"<{len(plan.outputs)}I", *plan.outputs)
    for tensor in plan.tensors:
        kept = plan.root(tensor.index).index in turns.kept
        body += _tensor(plan, tensor, table, strings, _KEPT if kept else 0)
        if turns.end and tensor.alias_of is None and tensor.role == "arena":
            body += struct.pack("<Q", tensor.whole)
    for index in views:
        tensor = plan.tensors[index]
        view = changed(tensor, alias_of=index)
        body += _tensor(plan, view, table, strings, _MOVING)
    for step in plan.steps:
        body += _step(step, strings, views if step in turns else {})
    header = b"LPRG" + struct.pack(
        _NUMBERS,
        WITH_TURNS if turns.end else VERSION,
        plan.kept_at if turns.end else plan.arena_bytes,
        len(strings.data),
        len(plan.tensors) + len(views),
        len(plan.steps),
        len(plan.inputs),
        len(plan.outputs),
        len(table.blobs),
    )
    if turns.end:
        header += struct.pack(_OF_TURNS, turns.samples, turns.first, turns.end, plan.whole_bytes)
    return bytes(header + strings.data + body)


def _moving(plan: Plan, turns: Turns) -> dict[int, int]:
    """What steps that take turns share with others → the number of its view of one sample."""
    views: dict[int, int] = {}
    for step in plan.steps[turns.first : turns.end]:
        for index in (*step.inputs, *step.outputs):
            owner = plan.root(index) if index >= 0 else None
            if owner is None or owner.role == "weight" or owner.index in turns.kept:
                continue
            views.setdefault(index, len(plan.tensors) + len(views))
    return views


def _tensor(
    plan: Plan, tensor: PlanTensor, table: WeightTable, strings: Strings, turns: int
) -> bytes:
    # An alias has its root's role, except that a model output may be a view of anything.
    role = tensor.role if tensor.role == "output" else plan.root(tensor.index).role
    alias, offset, weight = -1, 0, 0
    if tensor.alias_of is not None:
        alias = tensor.alias_of
        offset = tensor.offset - plan.tensors[tensor.alias_of].offset
    elif role == "arena":
        offset = tensor.offset - (plan.kept_at if turns == _KEPT else 0)
    elif role == "weight":
        if tensor.data is None:
            raise ShapeError(tr("a weight has no data"), where=tensor.name)
        weight = table.add(tensor.data)
    if offset < 0:
        raise ShapeError(
            tr("it begins before the tensor whose memory it shares"), where=tensor.name
        )
    return struct.pack(
        f"<I4BiIQq4ii{len(tensor.dims)}q",
        strings.add(tensor.name),
        DTYPE_CODES[tensor.dtype],
        ROLE_CODES[role],
        len(tensor.dims),
        turns,
        alias,
        weight,
        offset,
        tensor.pitch,
        *tensor.halo,
        0,
        *tensor.dims,
    )


def _step(step: Step, strings: Strings, views: Mapping[int, int]) -> bytes:
    named = {**step.attrs, "band": step.band} if step.band else step.attrs
    attrs = [
        (name, *_attr(step, name, value))
        for name, value in sorted(named.items())
        if value is not None
    ]
    ports = [views.get(i, i) for i in (*step.inputs, *step.outputs)]
    out = bytearray(
        struct.pack(
            f"<6I{len(ports)}i",
            strings.add(step.name),
            strings.add(step.op),
            strings.add(step.kernel),
            len(step.inputs),
            len(step.outputs),
            len(attrs),
            *ports,
        )
    )
    for name, kind, count, payload in attrs:
        out += struct.pack("<3I", strings.add(name), kind, count) + payload
    return bytes(out)


def _attr(step: Step, name: str, value: Any) -> tuple[int, int, bytes]:
    """(kind, count, bytes). A list of strings becomes one string joined with commas."""
    if isinstance(value, (list, tuple)) and value and all(isinstance(v, str) for v in value):
        value = ",".join(str(v) for v in value)
    if isinstance(value, str):
        text = str(value).encode()
        return _STRING, len(text), text
    array = np.asarray(value)
    if name.endswith("_zero_point") and array.size > 1 and (array == array.flat[0]).all():
        array = array.flat[:1]  # one for all channels: a file has ten such programs
    if array.dtype.kind in "biu" or array.size == 0:
        return _INTS, array.size, array.astype("<i8").tobytes()
    if array.dtype.kind == "f":
        return _FLOATS, array.size, array.astype("<f8").tobytes()
    raise ShapeError(
        tr(
            "{step} ({op}): attribute {name!r} of type {kind} cannot be stored in a native program",
            step=step.name,
            op=step.op,
            name=name,
            kind=type(value).__name__,
        )
    )


class Strings:
    """String pool: each text once, 0-terminated."""

    def __init__(self) -> None:
        self.data = bytearray()
        self._at: dict[str, int] = {}

    def add(self, text: str) -> int:
        if text not in self._at:
            self._at[text] = len(self.data)
            self.data += text.replace("\0", "?").encode() + b"\0"
        return self._at[text]


def _digest(blob: np.ndarray) -> bytes:
    import hashlib  # only writing needs it

    return hashlib.blake2b(blob.data.cast("B") if blob.size else b"", digest_size=20).digest()
