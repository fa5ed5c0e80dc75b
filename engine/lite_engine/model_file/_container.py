"""The `.lite` container: magic, version, section table, aligned sections. Little-endian.

    char magic[8] "LITE\\r\\n\\x1a\\n"; u32 format version; u32 section count
    section: char tag[8] (zero-padded); u64 offset; u64 size; u32 crc32; u32 flags
    sections start at multiples of 64, in table order, zero-filled between; equal ones lie once

Flag 1: the bytes (those that offset, size and crc32 are of) are a zlib stream of the section.

A reader, this one and native/src/runtime/lite_file.cc, refuses another magic or version, more than
64 sections, a table or section that does not end within the file, a section that starts within
the table or not at a multiple of 64, two sections of one name, flags other than 1, flag 1 on others
than META, GRAPH and GRAPH.n, and a section that it reads with another checksum.

Sections: NEEDS (needs.py), META and GRAPH (JSON, compressed; GRAPH.1 and so on: META names the
precision whose graph it is), WEIGHTS (raw blobs, each 64-byte aligned), WINDEX (u64 offset in
WEIGHTS, u64 size; one row per weight), PROG.x86, PROG.arm and PROG.web (plan/program.py), HALF.x86
and HALF.arm (the program for CPUs with bf16 or fp16 arithmetic, where it is another), OCL.0
and so on (backends/opencl/native_plan.py). PROG and OCL stand in the file's order of preference.
LIB0.x86, LIB0.arm and so on are libraries of kernels (lite_plugin.h), CLTEXT.0 and so on texts of
OpenCL kernels; nothing loads them unless it is told to trust the file.
PLUG.0 and so on are programs for this machine's kind of CPU with sub-graphs of another package's
backend, whose name stands in their first 64 bytes (model_file/plugin_programs.py).
SIZE.0 and so on are files of this kind with NEEDS and programs only, for inputs of another size;
their weights are those of this file.
A bundle (pipeline/bundle.py) has others: PIPE (JSON, as docs/pipelines.md says) and MODEL.0 and so
on, each a whole file of this kind.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from lite_messages import tr

from ..errors import LiteError, ModelFormatError, VersionError
from ..files import LITE_MAGIC, writing
from ..mapped import map_file, states

VERSION = 1
MAX_SECTIONS = 64
ALIGN = 64
COMPRESSED = 1
#: A compressed section may not become larger: a damaged one must not fill the memory.
MAX_TEXT_BYTES = 1 << 30
_HEAD = struct.Struct("<8sII")
_ROW = struct.Struct("<8sQQII")


def aligned(size: int) -> int:
    return -(-size // ALIGN) * ALIGN


def write_container(
    path: Path,
    sections: Mapping[str, Iterable[bytes | memoryview]],
    *,
    compressed: Collection[str] = (),
) -> Path:
    """Writes sections, each a list of buffers, and returns the path.

    Those named in `compressed` are stored as zlib streams. Raises WriteError when the disk is full
    or the folder cannot be written; nothing is left behind (files.py).
    """
    if path.exists() and not path.is_file():
        raise LiteError(tr("not a regular file"), where=path, fix=tr("give another name"))
    buffers = container(sections, compressed=compressed)
    with writing(path) as file:
        for buffer in buffers:
            file.write(buffer)
        file.flush()
        os.fsync(file.fileno())
    return path


def container(
    sections: Mapping[str, Iterable[bytes | memoryview]], *, compressed: Collection[str] = ()
) -> list[bytes | memoryview]:
    """The bytes that `write_container` writes, as buffers one after the other."""
    rows, at = [], aligned(_HEAD.size + _ROW.size * len(sections))
    content: list[bytes | memoryview] = []
    places: dict[bytes, int] = {}  # small sections that are there already → offset
    for tag, given in sections.items():
        buffers = list(given)
        if tag in compressed:
            buffers = [zlib.compress(b"".join(buffers))]
        size, crc = 0, 0
        for buffer in buffers:
            size += len(buffer)
            crc = zlib.crc32(buffer, crc)
        place = places.setdefault(bytes(buffers[0]), at) if len(buffers) == 1 else at
        rows.append((tag.encode(), place, size, crc, COMPRESSED if tag in compressed else 0))
        if place == at:
            end = aligned(at + size)
            content += [*buffers, b"\0" * (end - at - size)]
            at = end
    if content:
        content.pop()  # nothing follows the last section
    table = _HEAD.pack(LITE_MAGIC, VERSION, len(rows)) + b"".join(_ROW.pack(*row) for row in rows)
    return [table, b"\0" * (aligned(len(table)) - len(table)), *content]


class Sections(Mapping[str, memoryview]):
    """Sections by tag, as views of the mapped file, compressed ones unpacked. A section is
    verified (checksum) and unpacked when it is first read, which raises ModelFormatError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rows: dict[str, tuple[memoryview, int, int, int]] = {}
        self._read: dict[str, memoryview] = {}

    def add(self, tag: str, view: memoryview, crc: int, flags: int, offset: int) -> None:
        self._rows[tag] = view, crc, flags, offset

    def place(self, tag: str) -> str:
        """Where a section is, for messages."""
        at = self._rows[tag][3]
        return tr("{path}: section {tag!r} at byte {at}", path=self.path, tag=tag, at=at)

    def sizes(self) -> dict[str, int]:
        """Bytes in the file by tag; of sections that lie at one place, the others have 0."""
        first: dict[int, str] = {}
        for tag, (view, _, _, offset) in self._rows.items():
            if len(view):
                first.setdefault(offset, tag)
        return {t: len(r[0]) if first.get(r[3]) == t else 0 for t, r in self._rows.items()}

    def __getitem__(self, tag: str) -> memoryview:
        if tag not in self._read:
            view, crc, flags, _ = self._rows[tag]
            for state in states([view]):
                state.check()
            if zlib.crc32(view) != crc:
                raise ModelFormatError(
                    tr("damaged (checksum)"),
                    where=self.place(tag),
                    fix=tr("convert the model again"),
                )
            self._read[tag] = _unpacked(self.place(tag), view) if flags & COMPRESSED else view
        return self._read[tag]

    def __contains__(self, tag: object) -> bool:
        return tag in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def read_container(path: Path, data: memoryview | None = None) -> Sections:
    """The sections of a file, or of `data`, which lies in that file. Raises ModelFormatError,
    VersionError."""
    data = map_file(path) if data is None else data
    if len(data) < _HEAD.size:
        raise ModelFormatError(tr("too short for a .lite file"), where=path)
    magic, version, count = _HEAD.unpack(data[: _HEAD.size])
    if magic != LITE_MAGIC:
        raise ModelFormatError(
            tr("not a .lite file"), where=path, fix=tr("make one with `lite convert`")
        )
    if version != VERSION:
        raise VersionError(
            tr(
                "format version {version}, this engine reads {reads}",
                version=version,
                reads=VERSION,
            ),
            where=path,
            fix=tr("install a newer lite-workbench or convert the model again"),
        )
    table_end = _HEAD.size + count * _ROW.size
    if count > MAX_SECTIONS or table_end > len(data):
        raise ModelFormatError(
            tr(
                "the table of {count} sections at byte {start} is damaged or cut off",
                count=count,
                start=_HEAD.size,
            ),
            where=path,
        )
    sections = Sections(path)
    for i in range(count):
        start = _HEAD.size + i * _ROW.size
        raw, offset, size, crc, flags = _ROW.unpack(data[start : start + _ROW.size])
        tag = raw.rstrip(b"\0").decode("latin-1")
        if tag in sections:
            raise ModelFormatError(
                tr("two sections {tag!r}", tag=tag), where=path, fix=tr("convert the model again")
            )
        if flags & ~COMPRESSED:
            raise VersionError(
                tr("section {tag!r} uses a newer form of storage", tag=tag),
                where=path,
                fix=tr("install a newer lite-workbench"),
            )
        if flags and tag not in ("META", "GRAPH") and not tag.startswith("GRAPH."):
            raise ModelFormatError(
                tr("section {tag!r} is compressed, which only text may be", tag=tag),
                where=path,
                fix=tr("convert again"),
            )
        if offset % ALIGN or offset < table_end or size > len(data) - offset:
            raise ModelFormatError(
                tr(
                    "section {tag!r} at byte {offset} lies outside the file, which is cut off or "
                    "damaged",
                    tag=tag,
                    offset=offset,
                ),
                where=path,
                fix=tr("copy or download it again"),
            )
        sections.add(tag, data[offset : offset + size], crc, flags, offset)
    return sections


def _unpacked(place: str, data: memoryview) -> memoryview:
    stream = zlib.decompressobj()
    try:
        text = stream.decompress(data, MAX_TEXT_BYTES)
    except zlib.error as error:
        raise ModelFormatError(tr("damaged ({error})", error=error), where=place) from None
    if not stream.eof:
        raise ModelFormatError(tr("cut off or larger than 1 GiB"), where=place)
    return memoryview(text)
