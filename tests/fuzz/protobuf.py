"""Mutants of protobuf messages that stay messages, for what reads them (guided.py)."""

from __future__ import annotations

import random
from dataclasses import dataclass

#: Wire types (protobuf's encoding guide): varint, 8 bytes, length and bytes, 4 bytes.
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
_MOST_DEPTH = 12
#: Messages within each other, more than any reader takes.
_NESTED = 150
_ODD_NUMBERS = (0, 1, 2, 3, 7, 8, 11, 16, 127, 2**31, 2**32 - 1, 2**63, 2**64 - 1)
_ODD_BYTES = (b"", b"\0", b"x", b"../x", b"\xff" * 9, b"-1", b"x" * 300, b"a\0b", "é".encode())


@dataclass
class _Field:
    number: int
    wire: int
    value: int | bytes | list[_Field]

    def written(self) -> bytes:
        head = _varint(self.number << 3 | self.wire)
        if isinstance(self.value, int):
            return head + _varint(self.value)
        data = self.value if isinstance(self.value, bytes) else written(self.value)
        return head + (_varint(len(data)) if self.wire == _BYTES else b"") + data


def written(fields: list[_Field]) -> bytes:
    return b"".join(field.written() for field in fields)


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 127:
        made.append(value & 127 | 128)
        value >>= 7
    return bytes([*made, value])


def parse(data: bytes, depth: int = 0) -> list[_Field] | None:
    """The fields of a message, those of text and numbers as they are; None where it is not one."""
    found, at = list[_Field](), 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128 or shift > 63:
                return value

    try:
        while at < len(data):
            tag = number()
            field, wire = tag >> 3, tag & 7
            if not 0 < field < 1 << 20 or wire not in (_VARINT, _EIGHT, _BYTES, _FOUR):
                return None
            if wire == _VARINT:
                found.append(_Field(field, wire, number()))
                continue
            size = number() if wire == _BYTES else 8 if wire == _EIGHT else 4
            part = data[at : at + size]
            if len(part) < size:
                return None
            at += size
            inner = parse(part, depth + 1) if wire == _BYTES and depth < _MOST_DEPTH else None
            found.append(_Field(field, wire, inner or part))
    except IndexError:
        return None
    return found


def mutant(data: bytes, rng: random.Random) -> bytes | None:
    """One to three fields changed, left out, doubled, renumbered or put elsewhere; None where the
    bytes are no message."""
    message = parse(data)
    if not message:
        return None
    for _ in range(rng.randrange(1, 4)):
        lists, waiting = list[list[_Field]](), [message]
        while waiting:
            fields = waiting.pop()
            lists.append(fields)
            waiting += [f.value for f in fields if isinstance(f.value, list)]
        _change(rng.choice([fields for fields in lists if fields] or [message]), lists, rng)
    return written(message)


def _change(fields: list[_Field], lists: list[list[_Field]], rng: random.Random) -> None:
    if not fields:
        return
    at = rng.randrange(len(fields))
    field, kind = fields[at], rng.randrange(7)
    if kind == 0:
        del fields[at]
    elif kind == 1:
        fields.insert(at, _Field(field.number, field.wire, field.value))
    elif kind == 2:
        fields[at] = _Field(rng.randrange(1, 27), field.wire, field.value)
    elif kind == 3:
        other = rng.choice(rng.choice([each for each in lists if each] or [fields]))
        copy = parse(other.written())  # a message must not hold itself
        if copy:
            fields[at] = _Field(field.number, copy[0].wire, copy[0].value)
    elif kind == 4 and rng.random() < 0.5:
        fields[at] = _of_another_wire(field, rng)
    elif isinstance(field.value, int):
        fields[at] = _Field(field.number, field.wire, rng.choice(_ODD_NUMBERS))
    elif field.wire == _BYTES and not isinstance(field.value, list):
        fields[at] = _Field(field.number, field.wire, rng.choice(_ODD_BYTES))


def _of_another_wire(field: _Field, rng: random.Random) -> _Field:
    """The same number with a value of another kind, or nested deeper than anybody writes."""
    wire = rng.choice((_VARINT, _EIGHT, _BYTES, _FOUR))
    if isinstance(field.value, list) and rng.random() < 0.3:
        data = b""
        for _ in range(_NESTED):
            data = _Field(field.number, _BYTES, data).written()
        return _Field(field.number, _BYTES, data)
    if wire == _VARINT:
        return _Field(field.number, wire, rng.choice(_ODD_NUMBERS))
    size = {_EIGHT: 8, _FOUR: 4}.get(wire, rng.randrange(12))
    return _Field(field.number, wire, rng.randbytes(size))
