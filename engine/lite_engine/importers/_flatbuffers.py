"""A bounds-checked reader of FlatBuffers, without schemas or generated code; nothing is copied.

    model = root(view)                       # Table
    model.u32(0); model.text(3); model.tables(2)

Fields are named by their slot, the position in the schema's table (a union takes two slots: its
type and its value). Every offset is checked before it is followed; tables are read only when asked
for, so an offset cycle costs nothing.

Layout: all numbers little-endian. A table starts with an i32 distance back to its vtable; the
vtable
holds its own size, the table's size, then one u16 offset per slot (0: absent). Vectors and strings
are a u32 count followed by the elements; references are u32 distances forward.
Source: FlatBuffers "Internals" document.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ModelFormatError

_U16, _U32, _I32 = struct.Struct("<H"), struct.Struct("<I"), struct.Struct("<i")


def root(view: memoryview) -> Table:
    """The root table of a buffer."""
    if len(view) < 8:
        raise ModelFormatError(tr("flatbuffer: the file is too short"))
    return Table(view, _follow(view, 0))


def _follow(view: memoryview, at: int) -> int:
    """Target of the forward reference stored at `at`."""
    if at < 0 or at + 4 > len(view):
        raise ModelFormatError(tr("flatbuffer: a reference lies outside the file"))
    target = at + int(_U32.unpack_from(view, at)[0])
    if target + 4 > len(view) or target == at:
        raise ModelFormatError(tr("flatbuffer: an offset leads outside the file"))
    return target


class Table:
    """One table; `slot` is the position of a field in the schema."""

    __slots__ = ("_at", "_slots", "_view")

    def __init__(self, view: memoryview, at: int) -> None:
        if at + 4 > len(view):
            raise ModelFormatError(tr("flatbuffer: a table lies outside the file"))
        vtable = at - int(_I32.unpack_from(view, at)[0])
        if not 0 <= vtable <= len(view) - 4:
            raise ModelFormatError(tr("flatbuffer: a vtable lies outside the file"))
        size = int(_U16.unpack_from(view, vtable)[0])
        if size < 4 or size % 2 or vtable + size > len(view):
            raise ModelFormatError(tr("flatbuffer: a vtable has an impossible size"))
        self._view = view
        self._at = at
        self._slots = np.frombuffer(view[vtable + 4 : vtable + size], "<u2").tolist()

    def _position(self, slot: int, size: int) -> int | None:
        """Where a field lies in the file, None when it has its default."""
        if slot >= len(self._slots) or not self._slots[slot]:
            return None
        at = self._at + int(self._slots[slot])
        if at + size > len(self._view):
            raise ModelFormatError(tr("flatbuffer: field {slot} lies outside the file", slot=slot))
        return at

    def has(self, slot: int) -> bool:
        return self._position(slot, 1) is not None

    def number(self, slot: int, code: str, default: Any = 0) -> Any:
        """A scalar; `code` is struct's letter (b B h H i I q Q f d ?)."""
        at = self._position(slot, struct.calcsize("<" + code))
        return default if at is None else struct.unpack_from("<" + code, self._view, at)[0]

    def table(self, slot: int) -> Table | None:
        at = self._position(slot, 4)
        return None if at is None else Table(self._view, _follow(self._view, at))

    def tables(self, slot: int) -> list[Table]:
        """A vector of tables, empty when absent."""
        return [Table(self._view, at) for at in self._references(slot)]

    def text(self, slot: int, default: str = "") -> str:
        data = self.bytes(slot)
        return default if data is None else _decode(data)

    def texts(self, slot: int) -> list[str]:
        return [_decode(self._vector(at, 1)) for at in self._references(slot)]

    def _references(self, slot: int) -> list[int]:
        at = self._position(slot, 4)
        if at is None:
            return []
        start = _follow(self._view, at)
        count = len(self._vector(start, 4)) // 4
        return [_follow(self._view, start + 4 + 4 * i) for i in range(count)]

    def bytes(self, slot: int) -> memoryview | None:
        """A vector of bytes as a view of the file, None when absent."""
        at = self._position(slot, 4)
        return None if at is None else self._vector(_follow(self._view, at), 1)

    def array(self, slot: int, dtype: str) -> np.ndarray | None:
        """A vector of numbers as a view of the file, None when absent."""
        at = self._position(slot, 4)
        if at is None:
            return None
        item = np.dtype(dtype).newbyteorder("<")
        return np.frombuffer(self._vector(_follow(self._view, at), item.itemsize), item)

    def _vector(self, start: int, itemsize: int) -> memoryview:
        count = int(_U32.unpack_from(self._view, start)[0])
        if count * itemsize > len(self._view) - start - 4:
            raise ModelFormatError(
                tr("flatbuffer: a vector of {elements} elements is cut off", elements=count)
            )
        return self._view[start + 4 : start + 4 + count * itemsize]


def _decode(data: memoryview) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        raise ModelFormatError(tr("flatbuffer: a string is not UTF-8 text")) from None
