"""Reader of TensorFlow's variable bundles: `variables.index` and `variables.data-xxxxx-of-xxxxx`.

The index is a LevelDB-like table: its last 48 bytes hold the place of the index block (two
varint pairs) and a magic number; a block holds entries whose keys share a prefix with the key
before,
then the restart offsets. The key "" holds the header, every other key an entry with type, shape,
shard, offset and size.
Source: tensor_bundle.proto, LevelDB "table format".
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError
from ...ir import DType
from ...mapped import map_file
from .._protobuf import Message, read_varint
from .._shaped import shaped
from . import fields
from .graphdef import DTYPES, read_shape
from .slices import Extent, cut, extents, slice_key

_MAGIC = 0xDB4775248B80FB57
_FOOTER, _TRAILER = 48, 5
MAX_SHARDS = 4096


class Bundle:
    """Variables by key; arrays are views of the mapped shards."""

    def __init__(self, prefix: Path) -> None:
        self._prefix = prefix
        index = prefix.with_name(prefix.name + ".index")
        entries = dict(_table(map_file(index), index))
        header = Message(entries.pop(b"", b""))
        self._shards = header.int(fields.BundleHeader.NUM_SHARDS, 1)
        if not 0 < self._shards <= MAX_SHARDS:
            raise ModelFormatError(
                tr("the index names {shards} shards, which is not valid", shards=self._shards),
                where=index,
            )
        if header.int(fields.BundleHeader.ENDIANNESS):
            raise ModelFormatError(
                tr("the variables were written on a big-endian machine"),
                where=index,
                fix=tr("save them again on a little-endian machine"),
            )
        self._entries = {k.decode("utf-8", "surrogateescape"): v for k, v in entries.items()}
        self._maps: dict[int, memoryview] = {}

    def keys(self) -> list[str]:
        return list(self._entries)

    def read(self, key: str, part: str = "") -> tuple[np.ndarray, DType]:
        """A variable, or the `part` of one ("7 6 0,3:-"), however it is stored. Raises
        ModelFormatError for an unknown key and for what is not a plain tensor."""
        places = self._places(key, part)
        entry = self._entry(key)
        if places and (entry is None or fields.BundleEntry.SLICES in entry):
            entry = self._entry(slice_key(key, places).decode("utf-8", "surrogateescape"))
            places = []
        if entry is not None:
            array, dtype = self._tensor(key, entry)
            found = cut(array, places) if places else array
            if found is not None:
                return found, dtype
        wanted = f"{key} {part}".rstrip()
        raise ModelFormatError(tr("no variable {key!r}", key=wanted), where=self._prefix)

    def _entry(self, key: str) -> Message | None:
        return Message(self._entries[key]) if key in self._entries else None

    def _tensor(self, key: str, entry: Message) -> tuple[np.ndarray, DType]:
        if fields.BundleEntry.SLICES in entry:
            raise ModelFormatError(
                tr("{key!r} is stored in slices", key=key),
                where=self._prefix,
                fix=tr("save it whole"),
            )
        dtype = DTYPES.get(entry.int(fields.BundleEntry.DTYPE))
        proto = entry.message(fields.BundleEntry.SHAPE)
        shape = () if proto is None else read_shape(proto)
        if dtype is None or shape is None or None in shape:
            raise ModelFormatError(
                tr("{key!r} is not a tensor of numbers", key=key), where=self._prefix
            )
        sizes = tuple(int(d) for d in shape)  # type: ignore[arg-type]
        view = self._shard(entry.int(fields.BundleEntry.SHARD_ID))
        offset, size = entry.int(fields.BundleEntry.OFFSET), entry.int(fields.BundleEntry.SIZE)
        if size != math.prod(sizes) * dtype.itemsize or not 0 <= offset <= len(view) - size:
            raise ModelFormatError(
                tr("{key!r} lies outside its shard", key=key), where=self._prefix
            )
        data = np.frombuffer(view[offset : offset + size], dtype.np.newbyteorder("<"))
        return shaped(data, sizes, key), dtype

    def _places(self, key: str, part: str) -> list[Extent]:
        try:
            return extents(part) if part else []
        except ValueError as error:
            raise ModelFormatError(
                tr("{part!r} does not say which part of {key!r} it is", part=part, key=key),
                where=self._prefix,
            ) from error

    def _shard(self, number: int) -> memoryview:
        if not 0 <= number < self._shards:
            raise ModelFormatError(
                tr(
                    "shard {number} does not exist: there are {shards}",
                    number=number,
                    shards=self._shards,
                ),
                where=self._prefix,
            )
        if number not in self._maps:
            name = f"{self._prefix.name}.data-{number:05d}-of-{self._shards:05d}"
            self._maps[number] = map_file(self._prefix.with_name(name))
        return self._maps[number]


def _table(view: memoryview, path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Every (key, value) of the table."""
    if len(view) < _FOOTER or struct.unpack_from("<Q", view, len(view) - 8)[0] != _MAGIC:
        raise ModelFormatError(tr("not the index of a variable bundle"), where=path)
    footer = view[len(view) - _FOOTER :]
    _, at = _handle(footer, 0)
    place, _ = _handle(footer, at)
    for _, value in _entries(_block(view, *place, path), path):
        place, _ = _handle(memoryview(value), 0)
        yield from _entries(_block(view, *place, path), path)


def _handle(data: memoryview, at: int) -> tuple[tuple[int, int], int]:
    offset, at = read_varint(data, at)
    size, at = read_varint(data, at)
    return (offset, size), at


def _block(view: memoryview, offset: int, size: int, path: Path) -> memoryview:
    if offset + size + _TRAILER > len(view):
        raise ModelFormatError(tr("a block lies outside the file"), where=path)
    if view[offset + size] != 0:
        raise ModelFormatError(
            tr("the index has a compressed block, which is not supported"),
            where=path,
            fix=tr("save the variables again"),
        )
    return view[offset : offset + size]


def _entries(block: memoryview, path: Path) -> Iterator[tuple[bytes, bytes]]:
    if len(block) < 4:
        raise ModelFormatError(tr("a block is too short"), where=path)
    restarts = struct.unpack_from("<I", block, len(block) - 4)[0]
    end = len(block) - 4 - 4 * restarts
    if end < 0:
        raise ModelFormatError(
            tr("a block is too short for its {restarts} restart points", restarts=restarts),
            where=path,
        )
    at, key = 0, b""
    while at < end:
        shared, at = read_varint(block, at)
        own, at = read_varint(block, at)
        size, at = read_varint(block, at)
        if shared > len(key) or at + own + size > end:
            raise ModelFormatError(tr("an entry is cut off"), where=path)
        key = key[:shared] + bytes(block[at : at + own])
        yield key, bytes(block[at + own : at + own + size])
        at += own + size
