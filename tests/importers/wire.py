"""Writers of the formats that importers read: FlatBuffers, protobuf, FlexBuffers, LevelDB table.

They are written from the formats' documents, not from the readers, and make tiny models for tests.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

# ---------------------------------------------------------------- FlatBuffers


class Num:
    """A scalar field; `code` is struct's letter."""

    def __init__(self, code: str, value: Any) -> None:
        self.data = struct.pack("<" + code, value)


class Table:
    """slot → Num, str, bytes, ndarray, Table, list of Tables or of str."""

    def __init__(self, **slots: Any) -> None:
        self.slots = {int(k[1:]): v for k, v in slots.items() if v is not None}


def flatbuffer(root: Table, identifier: bytes) -> bytes:
    out = bytearray(b"\0\0\0\0" + identifier)
    pending: list[tuple[int, Any]] = [(0, root)]
    while pending:
        at, item = pending.pop(0)
        while len(out) % 8:
            out.append(0)
        start, more = _write(out, item)
        struct.pack_into("<I", out, at, start - at)
        pending += more
    return bytes(out)


def _write(out: bytearray, item: Any) -> tuple[int, list[tuple[int, Any]]]:
    """Appends one object; (its position, references to fill)."""
    if isinstance(item, Table):
        return _write_table(out, item)
    if isinstance(item, str):
        item = item.encode()
    if isinstance(item, list):
        start = len(out)
        out += struct.pack("<I", len(item)) + b"\0" * (4 * len(item))
        return start, [(start + 4 + 4 * i, v) for i, v in enumerate(item)]
    data, count = (item, len(item)) if isinstance(item, bytes) else (item.tobytes(), item.size)
    if not isinstance(item, bytes) and item.dtype.itemsize == 8:
        out += b"\0\0\0\0"  # elements of 8 bytes begin at a multiple of 8
    start = len(out)
    out += struct.pack("<I", count) + data + b"\0"
    return start, []


def _write_table(out: bytearray, table: Table) -> tuple[int, list[tuple[int, Any]]]:
    count = max(table.slots, default=-1) + 1
    vtable = len(out)
    out += b"\0" * (4 + 2 * count)
    while len(out) % 8:
        out.append(0)
    start = len(out)
    out += struct.pack("<i", start - vtable)
    offsets, more = [0] * count, []
    for slot, value in table.slots.items():
        data = value.data if isinstance(value, Num) else b"\0\0\0\0"
        while (len(out) - start) % len(data):
            out.append(0)
        offsets[slot] = len(out) - start
        if not isinstance(value, Num):
            more.append((len(out), value))
        out += data
    struct.pack_into(f"<HH{count}H", out, vtable, 4 + 2 * count, len(out) - start, *offsets)
    return start, more


# ---------------------------------------------------------------- protobuf


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: Any) -> bytes:
    """int → varint, float → 32 bits, str, bytes and arrays (packed) → length-delimited."""
    if isinstance(value, (bool, int)):
        return varint(number << 3) + varint(int(value))
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else bytes(value)
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(*fields: tuple[int, Any]) -> bytes:
    return b"".join(field(n, v) for n, v in fields)


# ---------------------------------------------------------------- FlexBuffers


def flexbuffer_map(values: dict[str, int | float]) -> bytes:
    """A map of scalars with 4-byte width; keys sorted."""
    out = bytearray()
    places = []
    for key in sorted(values):
        places.append(len(out))
        out += key.encode() + b"\0"
    while len(out) % 4:
        out.append(0)
    out += struct.pack("<I", len(places))
    keys = len(out)
    for place in places:
        out += struct.pack("<I", len(out) - place)
    out += struct.pack("<I", len(out) - keys) + struct.pack("<I", 4)  # key vector, its width
    out += struct.pack("<I", len(values))
    start = len(out)
    kinds = bytearray()
    for key in sorted(values):
        value = values[key]
        if isinstance(value, bool):
            out += struct.pack("<I", value)
            kinds.append(26 << 2 | 2)
        elif isinstance(value, int):
            out += struct.pack("<i", value)
            kinds.append(1 << 2 | 2)
        else:
            out += struct.pack("<f", value)
            kinds.append(3 << 2 | 2)
    out += kinds
    return bytes(out + struct.pack("<B", len(out) - start) + bytes([9 << 2 | 2, 1]))


# ---------------------------------------------------------------- LevelDB table


def leveldb_table(entries: dict[bytes, bytes]) -> bytes:
    """One data block and one index block, keys sharing prefixes, no compression."""

    def block(pairs: list[tuple[bytes, bytes]]) -> bytes:
        out, last = bytearray(), b""
        for key, value in pairs:
            shared = 0
            while shared < min(len(last), len(key)) and last[shared] == key[shared]:
                shared += 1
            out += varint(shared) + varint(len(key) - shared) + varint(len(value))
            out += key[shared:] + value
            last = key
        return bytes(out) + struct.pack("<II", 0, 1)

    data = block(sorted(entries.items()))
    out = bytearray(data + b"\0" + b"\0" * 4)
    meta_at = len(out)
    meta = block([])
    out += meta + b"\0" + b"\0" * 4
    index_at = len(out)
    index = block([(b"\xff", varint(0) + varint(len(data)))])
    out += index + b"\0" + b"\0" * 4
    footer = varint(meta_at) + varint(len(meta)) + varint(index_at) + varint(len(index))
    return bytes(out + footer.ljust(40, b"\0") + struct.pack("<Q", 0xDB4775248B80FB57))


# ---------------------------------------------------------------- damage


def damaged(data: bytes, seed: int, count: int) -> list[bytes]:
    """Copies cut short or with a few bytes replaced, favouring values that are large as offsets."""
    rng = np.random.default_rng(seed)
    out = [data[: int(len(data) * f)] for f in np.linspace(0, 0.98, 12)]
    for _ in range(count):
        copy = bytearray(data)
        for at in rng.integers(0, len(data), rng.integers(1, 6)):
            copy[at] = int(rng.choice([0, 1, 0x7F, 0x80, 0xFF, int(rng.integers(256))]))
        if rng.random() < 0.3:
            at = int(rng.integers(0, max(1, len(data) - 4)))
            copy[at : at + 4] = struct.pack("<i", int(rng.choice([-1, 1 << 30, -(1 << 31), 0])))
        out.append(bytes(copy))
    return out
