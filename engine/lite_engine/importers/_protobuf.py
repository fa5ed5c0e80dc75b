"""A bounds-checked reader of the protobuf wire format, without schemas or generated code.

    node = Message(view)
    node.text(4); node.ints(7); [Message…] = node.messages(1)

Length-delimited fields stay memoryviews of the file, so weights are never copied here.
Source: protobuf encoding specification (wire types 0 varint, 1 64-bit, 2 length-delimited, 5
32-bit;
3 and 4, groups, are skipped).
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ModelFormatError

MAX_DEPTH = 64
_DAMAGED = tr("the file is damaged: copy or download it again")
Buffer = memoryview


def read_varint(data: Buffer, at: int) -> tuple[int, int]:
    """Unsigned varint at `at` → (value, next position). Raises ModelFormatError."""
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise ModelFormatError(
                tr("a number is cut off or too long"), where="protobuf", fix=_DAMAGED
            )
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7


def signed(value: int) -> int:
    """A varint read as two's-complement int64."""
    return value - (1 << 64) if value >> 63 else value


class Message:
    """The fields of one message, by number, in file order."""

    __slots__ = ("_fields", "_messages", "_texts", "depth")

    def __init__(self, data: Buffer | bytes, depth: int = 0) -> None:
        if depth > MAX_DEPTH:
            raise ModelFormatError(
                tr("nested deeper than {max_depth} messages", max_depth=MAX_DEPTH), where="protobuf"
            )
        self.depth = depth
        self._fields: dict[int, list[Any]] = {}
        self._messages: dict[int, list[Message]] = {}
        self._texts: dict[int, list[str]] = {}
        view = data if isinstance(data, memoryview) else memoryview(data)
        self._parse(view)

    def _parse(self, data: Buffer) -> None:
        at, end, fields = 0, len(data), self._fields
        while at < end:
            key = data[at]
            at += 1
            if key >= 0x80:  # most are of one byte, as most sizes and values are
                key, at = read_varint(data, at - 1)
            number, wire = key >> 3, key & 7
            if number == 0:
                raise ModelFormatError(tr("field number 0"), where="protobuf")
            value: Any
            if wire == 2:
                size = data[at] if at < end else 0x80
                at += 1
                if size >= 0x80:
                    size, at = read_varint(data, at - 1)
                if size > end - at:
                    raise ModelFormatError(
                        tr("field {number} is cut off", number=number),
                        where="protobuf",
                        fix=_DAMAGED,
                    )
                value = data[at : at + size]
                at += size
            elif wire == 0:
                value, at = read_varint(data, at)
            elif wire in (1, 5):
                size = 8 if wire == 1 else 4
                if size > end - at:
                    raise ModelFormatError(
                        tr("field {number} is cut off", number=number),
                        where="protobuf",
                        fix=_DAMAGED,
                    )
                value = bytes(data[at : at + size])
                at += size
            elif wire == 3:
                at = _skip_group(data, at, number, self.depth)
                continue
            else:
                raise ModelFormatError(
                    tr("wire type {wire} in field {number}", wire=wire, number=number),
                    where="protobuf",
                )
            if number in fields:
                fields[number].append(value)
            else:
                fields[number] = [value]

    def __contains__(self, number: int) -> bool:
        return number in self._fields

    def numbers(self) -> list[int]:
        return list(self._fields)

    # ---- length-delimited
    def text(self, number: int, default: str = "") -> str:
        values = self._fields.get(number)
        if values is None:
            return default
        alone = len(values) == 1 and type(values[0]) is memoryview  # mostly
        return _decode(values[0] if alone else self._views(number)[-1], number)

    def texts(self, number: int) -> list[str]:
        """Repeated texts, read once; the list is the caller's."""
        if number not in self._fields:
            return []
        if number not in self._texts:
            self._texts[number] = [_decode(v, number) for v in self._views(number)]
        return self._texts[number].copy()

    # ---- repeated
    def ints(self, number: int) -> list[int]:
        """Repeated varints, packed or not, signed."""
        out: list[int] = []
        for value in self._fields.get(number, ()):
            if isinstance(value, int):
                out.append(signed(value))
            elif isinstance(value, memoryview):
                at = 0
                while at < len(value):
                    v, at = read_varint(value, at)
                    out.append(signed(v))
            else:
                raise ModelFormatError(
                    tr("field {number} holds no varints", number=number), where="protobuf"
                )
        return out

    def fixed(self, number: int, dtype: Any) -> np.ndarray:
        """Repeated fixed-size numbers (float, double, fixed32/64), packed or not → 1-D array."""
        item = np.dtype(dtype).newbyteorder("<")
        parts = []
        for value in self._fields.get(number, ()):
            if isinstance(value, int) or len(value) % item.itemsize:
                raise ModelFormatError(
                    tr("field {number} is not a list of {item}", number=number, item=item.name),
                    where="protobuf",
                )
            parts.append(np.frombuffer(value, item))
        return np.concatenate(parts) if len(parts) > 1 else parts[0] if parts else np.empty(0, item)

    def message(self, number: int) -> Message | None:
        """A nested message (repeated occurrences are merged), None when absent."""
        views = self._views(number)
        if not views:
            return None
        if len(views) == 1:
            return Message(views[0], self.depth + 1)
        return Message(b"".join(views), self.depth + 1)

    def messages(self, number: int) -> list[Message]:
        """Nested messages of this field, read once."""
        if number not in self._fields:
            return []
        if number not in self._messages:
            self._messages[number] = [Message(v, self.depth + 1) for v in self._views(number)]
        return self._messages[number]

    def _views(self, number: int) -> list[Buffer]:
        values = self._fields.get(number, [])
        for v in values:
            if not isinstance(v, memoryview):
                raise ModelFormatError(
                    tr("field {number} is not length-delimited", number=number), where="protobuf"
                )
        return values

    # ---- scalars: the last one wins, as protobuf says (last in the class: their names hide types)
    def bytes(self, number: int) -> Buffer | None:
        """A length-delimited field as a view of the file, None when absent."""
        views = self._views(number)
        return views[-1] if views else None

    def float(self, number: int, default: float = 0.0) -> float:
        """float or double, told apart by its size."""
        values = self._fields.get(number)
        if not values:
            return default
        raw = values[-1]
        if not isinstance(raw, bytes):
            raise ModelFormatError(
                tr("field {number} is not a float", number=number), where="protobuf"
            )
        return float(struct.unpack("<f" if len(raw) == 4 else "<d", raw)[0])

    def int(self, number: int, default: int = 0) -> int:
        """Signed integer, enum or bool."""
        values = self._fields.get(number)
        if not values:
            return default
        if not isinstance(values[-1], int):
            raise ModelFormatError(
                tr("field {number} is not an integer", number=number), where="protobuf"
            )
        return signed(values[-1])


def _decode(data: Buffer, number: int) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        raise ModelFormatError(
            tr("field {number} is not UTF-8 text", number=number), where="protobuf"
        ) from None


def _skip_group(data: Buffer, at: int, number: int, depth: int) -> int:
    """Position after the matching end-group tag."""
    open_groups = [number]
    while open_groups:
        if depth + len(open_groups) > MAX_DEPTH:
            raise ModelFormatError(tr("groups nested too deeply"), where="protobuf")
        key, at = read_varint(data, at)
        inner, wire = key >> 3, key & 7
        if wire == 3:
            open_groups.append(inner)
        elif wire == 4:
            if open_groups.pop() != inner:
                raise ModelFormatError(tr("group ends do not match"), where="protobuf")
        elif wire == 0:
            _, at = read_varint(data, at)
        elif wire == 2:
            size, at = read_varint(data, at)
            at += size
        elif wire in (1, 5):
            at += 8 if wire == 1 else 4
        else:
            raise ModelFormatError(tr("wire type {wire} in a group", wire=wire), where="protobuf")
        if at > len(data):
            raise ModelFormatError(tr("a group is cut off"), where="protobuf", fix=_DAMAGED)
    return at
