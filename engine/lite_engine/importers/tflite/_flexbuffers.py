"""Reader of FlexBuffers maps of scalars: the options of TFLite's custom operators.

The last byte is the root's width, the one before it the root's packed type (type << 2 | width); the
root itself lies right before them. A map is a sorted vector of values with a key vector and, after
the
values, one packed type byte each; in front of it lie its size, the key vector's width and offset.
Offsets go backwards. Source: FlatBuffers "FlexBuffers" document.
"""

from __future__ import annotations

import struct

from lite_messages import tr

from ...errors import ModelFormatError

Scalar = int | float | bool
_INTS = {1: "b", 2: "h", 4: "i", 8: "q"}
_FLOATS = {2: "e", 4: "f", 8: "d"}
_MAP, _BOOL = 9, 26


def read_map(data: bytes) -> dict[str, Scalar]:
    """Scalars of the root map by key; nested values are left out. Raises ModelFormatError."""
    try:
        return _read_map(data)
    except (struct.error, IndexError, KeyError, UnicodeDecodeError):
        raise ModelFormatError(
            tr("flexbuffer: the options of a custom operator are damaged")
        ) from None


def _unsigned(data: bytes, at: int, width: int) -> int:
    if at < 0 or at + width > len(data):
        raise IndexError
    return int.from_bytes(data[at : at + width], "little")


def _read_map(data: bytes) -> dict[str, Scalar]:
    if len(data) < 3:
        return {}
    packed, root_width = data[-2], data[-1]
    if packed >> 2 != _MAP or root_width not in _INTS:
        raise KeyError
    width = 1 << (packed & 3)
    root = len(data) - 2 - root_width
    start = root - _unsigned(data, root, root_width)
    count = _unsigned(data, start - width, width)
    if count > len(data):
        raise IndexError
    key_width = _unsigned(data, start - 2 * width, width)
    keys = start - 3 * width - _unsigned(data, start - 3 * width, width)
    if key_width not in _INTS:
        raise KeyError
    out: dict[str, Scalar] = {}
    for i in range(count):
        slot = keys + i * key_width
        key_at = slot - _unsigned(data, slot, key_width)
        if key_at < 0:
            raise IndexError
        key = data[key_at : data.index(0, key_at)].decode() if 0 in data[key_at:] else ""
        value = _scalar(data, start + i * width, width, data[start + count * width + i])
        if value is not None:
            out[key] = value
    return out


def _scalar(data: bytes, at: int, width: int, packed: int) -> Scalar | None:
    """An inline or indirect number; None for strings, vectors and maps."""
    kind, child = packed >> 2, 1 << (packed & 3)
    if kind in (6, 7, 8):  # indirect int, uint, float: an offset to the number
        at, width, kind = at - _unsigned(data, at, width), child, kind - 5
    if kind == 1:
        return int(struct.unpack_from("<" + _INTS[width], data, at)[0])
    if kind == 2:
        return _unsigned(data, at, width)
    if kind == 3:
        return float(struct.unpack_from("<" + _FLOATS[width], data, at)[0])
    if kind == _BOOL:
        return bool(_unsigned(data, at, width))
    return None
