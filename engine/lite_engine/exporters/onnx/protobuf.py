"""Writing protobuf's wire format: a message is the bytes of its fields in order.

Source: protobuf's encoding specification (varint, 32-bit and length-delimited fields).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable


def varint(number: int) -> bytes:
    """Base 128, least significant group first; a negative number as 64-bit two's complement."""
    number &= (1 << 64) - 1
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def integer(field: int, number: int) -> bytes:
    return varint(field << 3) + varint(number)


def real(field: int, number: float) -> bytes:
    return varint(field << 3 | 5) + struct.pack("<f", number)


def data(field: int, content: bytes | memoryview) -> bytes:
    """Bytes, or an embedded message."""
    return b"".join((varint(field << 3 | 2), varint(len(content)), content))


def text(field: int, content: str) -> bytes:
    return data(field, content.encode())


def integers(field: int, numbers: Iterable[int]) -> bytes:
    """A packed repeated field."""
    return data(field, b"".join(varint(n) for n in numbers))
