"""Both readers of the container, Python's and the native runtime's, refuse the same files."""

from __future__ import annotations

import random
import struct
import zlib
from pathlib import Path

import pytest
from lite_engine.backends.cpu.native import NativeFile
from lite_engine.errors import LiteError, ModelFormatError
from lite_engine.files import LITE_MAGIC
from lite_engine.model_file._container import read_container

pytestmark = pytest.mark.cpu
BODY = b"a section".ljust(64, b".")
Row = tuple[bytes, int, int, int, int]  # tag, offset, size, crc32, flags


def _row(tag: str, at: int, *, size: int = 64, crc: int | None = None, flags: int = 0) -> Row:
    return tag.encode(), at, size, zlib.crc32(BODY) if crc is None else crc, flags


def _file(
    rows: list[Row], *, magic: bytes = LITE_MAGIC, version: int = 1, count: int = -1
) -> bytes:
    """Header, table, and the one section in each 64 bytes behind it."""
    table = b"".join(struct.pack("<8sQQII", *row) for row in rows)
    head = struct.pack("<8sII", magic, version, len(rows) if count < 0 else count) + table
    return head.ljust(-(-len(head) // 64) * 64, b"\0") + 3 * BODY


def _refused(path: Path, data: bytes) -> list[str]:
    """What Python's reader says, then the native one; "" where the file is read."""
    path.write_bytes(data)
    said = []
    for read in (lambda: [*read_container(path).values()], lambda: NativeFile(path)):
        try:
            read()
            said.append("")
        except LiteError as error:
            assert "\n" not in str(error) and str(path) in str(error)
            said.append(str(error))
    return said


TWO = [_row("META", 128), _row("MORE", 192)]
GOOD = {
    "two sections": _file(TWO),
    "equal ones share": _file([_row("META", 128), _row("MORE", 128)]),
    "none": _file([]),
    "an unknown one": _file([_row("LATER.1", 64)]),
    "64 of them": _file([_row(f"S{i}", 2112) for i in range(64)]),
    "an empty one at the end": _file([_row("META", 64 * 4, size=0, crc=0)]),
}
BAD = {
    "version 0": _file(TWO, version=0),
    "version 2": _file(TWO, version=2),
    "another magic": _file(TWO, magic=b"LITE\n\n\x1a\n"),
    "65 of them": _file([_row(f"S{i}", 2112) for i in range(65)]),
    "more rows than bytes": _file(TWO, count=20),
    "endless rows": _file(TWO, count=0xFFFFFFFF),
    "in the table": _file([_row("META", 0)]),
    "at the table's last row": _file([_row("META", 64), _row("MORE", 128), _row("LAST", 128)]),
    "not aligned": _file([_row("META", 96)]),
    "behind the end": _file([_row("META", 1 << 20)]),
    "past the end": _file([_row("META", 128, size=1 << 20)]),
    "past 2^64": _file([_row("META", 128, size=(1 << 64) - 64)]),
    "twice": _file([_row("META", 128), _row("META", 192)]),
    "newer flag": _file([_row("META", 128, flags=2)]),
    "compressed numbers": _file([_row("WEIGHTS", 128, flags=1)]),
    "compressed GRAPHS": _file([_row("GRAPHS", 128, flags=1)]),
    "checksum": _file([_row("META", 128, crc=1)]),
    "short": _file([])[:15],
    "nothing": b"",
}


@pytest.mark.parametrize("name", GOOD)
def test_read(tmp_path: Path, name: str) -> None:
    assert _refused(tmp_path / "m.lite", GOOD[name]) == ["", ""]


@pytest.mark.parametrize("name", BAD)
def test_refused(tmp_path: Path, name: str) -> None:
    assert all(_refused(tmp_path / "m.lite", BAD[name]))


def test_any_byte_of_header_and_table(tmp_path: Path) -> None:
    """Another value of a byte is accepted by both or by neither."""
    rng, seen = random.Random(0), set()
    for at in range(80):
        data = bytearray(_file([_row("NOTE", 128), _row("MORE", 192)]))
        data[at] = rng.choice([0, 1, 63, 64, 65, 127, 255, data[at] ^ 1])
        python, native = _refused(tmp_path / "m.lite", bytes(data))
        assert bool(python) == bool(native), (at, data[at], python, native)
        seen.add(bool(python))
    assert seen == {True, False}


def test_a_stream_that_is_none_is_told_when_it_is_read(tmp_path: Path) -> None:
    """The native runtime reads no text: damage inside a compressed section is Python's to tell."""
    path = tmp_path / "m.lite"
    assert _refused(path, _file([_row("GRAPH.1", 128, flags=1)]))[1] == ""
    with pytest.raises(ModelFormatError, match=r"GRAPH\.1"):
        read_container(path)["GRAPH.1"]
