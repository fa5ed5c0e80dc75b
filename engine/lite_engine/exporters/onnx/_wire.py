"""A writer of the protobuf wire format, the counterpart of `importers/_protobuf.py`.

    node = Fields()
    node.text(4, "Conv"); node.ints(7, [1, 2]); graph.message(1, node)

A message is a list of buffers and their length, so weights are never copied: they go from the
array (often a view of a mapped file) to the file that is written.
Source: protobuf encoding specification (wire types 0 varint, 2 length-delimited, 5 32-bit).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

Buffer = bytes | memoryview


def varint(value: int) -> bytes:
    """An int64 or uint64; negative numbers as two's complement in ten bytes."""
    value &= 0xFFFFFFFFFFFFFFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


class Fields:
    """The fields of one message in the order they were added; `size` is its length in bytes."""

    __slots__ = ("parts", "size")

    def __init__(self) -> None:
        self.parts: list[Buffer] = []
        self.size = 0

    def _put(self, *parts: Buffer) -> None:
        self.parts += parts
        self.size += sum(map(len, parts))

    # ---- repeated numbers, packed

    def ints(self, number: int, values: Iterable[int]) -> None:
        self.bytes(number, b"".join(map(varint, values)))

    def floats(self, number: int, values: list[float]) -> None:
        self.bytes(number, struct.pack(f"<{len(values)}f", *values))

    # ---- single fields

    def text(self, number: int, text: str) -> None:
        self.bytes(number, text.encode("utf-8", "surrogatepass"))

    def message(self, number: int, fields: Fields) -> None:
        self._put(varint(number << 3 | 2) + varint(fields.size))
        self.parts += fields.parts
        self.size += fields.size

    # ---- scalars (last in the class: their names hide types)

    def bytes(self, number: int, data: Buffer) -> None:
        """`data` is kept, not copied; a memoryview has one byte per element."""
        self._put(varint(number << 3 | 2) + varint(len(data)), data)

    def float(self, number: int, value: float) -> None:  # type: ignore[valid-type]
        self._put(varint(number << 3 | 5) + struct.pack("<f", value))

    def int(self, number: int, value: int) -> None:  # type: ignore[valid-type]
        self._put(varint(number << 3) + varint(value))
