"""A small writer of FlatBuffers: plain values in, the same bytes every time out.

    encode(Table({0: Scalar("i", 0), 1: "name", 2: [Table(…), …], 3: Numbers("q", [1, 2])}))

Fields are keyed by slot. Everything is written front to back, so that references point forward as
the format demands; vtables are shared. Layout: see the FlatBuffers "Internals" document.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Scalar:
    """A number; `code` is struct's letter (? B b i I q Q f d)."""

    code: str
    value: Any


@dataclass(frozen=True)
class Numbers:
    """A vector of numbers."""

    code: str
    values: Sequence[Any]


@dataclass(frozen=True)
class Raw:
    """A vector of bytes."""

    data: bytes | memoryview


@dataclass
class Table:
    """Slot → Scalar, Numbers, Raw, str, Table, or a list of str or Table. None is left out."""

    fields: dict[int, Any] = field(default_factory=dict)


def encode(root: Table) -> bytes:
    """A buffer whose root is this table (no file identifier)."""
    out = _Writer()
    out.reference(0, root)
    out.data += b"\0" * 4
    out.run()
    return bytes(out.data)


class _Writer:
    def __init__(self) -> None:
        self.data = bytearray()
        self.vtables: dict[bytes, int] = {}
        #: (where the reference is stored, what it points to), in the order they were met
        self.pending: list[tuple[int, Any]] = []

    def reference(self, at: int, target: Any) -> None:
        self.pending.append((at, target))

    def run(self) -> None:
        next_up = 0
        while next_up < len(self.pending):
            at, target = self.pending[next_up]
            next_up += 1
            place = self.write(target)
            struct.pack_into("<I", self.data, at, place - at)

    def align(self, size: int, ahead: int = 0) -> None:
        """Pads so that the position `ahead` bytes from here is a multiple of `size`."""
        self.data += b"\0" * (-(len(self.data) + ahead) % size)

    def write(self, target: Any) -> int:
        if isinstance(target, Table):
            return self.table(target)
        if isinstance(target, str):
            return self.vector(len(encoded := target.encode()), encoded + b"\0", 1)
        if isinstance(target, Raw):
            return self.vector(len(target.data), bytes(target.data), 1)
        if isinstance(target, Numbers):
            size = struct.calcsize("<" + target.code)
            packed = struct.pack(f"<{len(target.values)}{target.code}", *target.values)
            return self.vector(len(target.values), packed, size)
        self.align(4)
        start = len(self.data)
        self.data += struct.pack("<I", len(target)) + b"\0" * (4 * len(target))
        for i, item in enumerate(target):
            self.reference(start + 4 + 4 * i, item)
        return start

    def vector(self, count: int, body: bytes, size: int) -> int:
        self.align(max(4, size), ahead=4)
        start = len(self.data)
        self.data += struct.pack("<I", count) + body
        return start

    def table(self, table: Table) -> int:
        fields = {s: v for s, v in sorted(table.fields.items()) if v is not None}
        at, places = 4, {}
        for slot, value in fields.items():
            size = struct.calcsize("<" + value.code) if isinstance(value, Scalar) else 4
            at += -at % size
            places[slot] = at
            at += size
        last = max(fields, default=-1)
        slots = [places.get(s, 0) for s in range(last + 1)]
        vtable = struct.pack(f"<{len(slots) + 2}H", 4 + 2 * len(slots), at, *slots)
        if vtable not in self.vtables:
            self.align(2)
            self.vtables[vtable] = len(self.data)
            self.data += vtable
        self.align(8)
        start = len(self.data)
        self.data += struct.pack("<i", start - self.vtables[vtable]) + b"\0" * (at - 4)
        for slot, value in fields.items():
            if isinstance(value, Scalar):
                struct.pack_into("<" + value.code, self.data, start + places[slot], value.value)
            else:
                self.reference(start + places[slot], value)
        return start
