"""What a native file needs of the system that loads it, read from ELF, PE or Mach-O without a tool.

binaries.py FILE...     one line each
"""

from __future__ import annotations

import re
import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MACHINES = {
    ("elf", 62): "x86_64", ("elf", 183): "aarch64", ("pe", 0x8664): "x86_64",
    ("pe", 0xAA64): "aarch64", ("macho", 0x01000007): "x86_64", ("macho", 0x0100000C): "aarch64",
}  # fmt: skip
_PT_LOAD, _PT_DYNAMIC = 1, 2
_DT_NEEDED, _DT_STRTAB, _DT_VERNEED, _DT_VERNEEDNUM = 1, 5, 0x6FFFFFFE, 0x6FFFFFFF
_LC_LOADS = {0xC, 0x80000018, 0x8000001F}  # dylib, weak, re-exported
_LC_SYSTEM, _LC_SYSTEM_MACOS, _MACOS = 0x32, 0x24, 1
#: A source or header by its absolute path, which differs from one build machine to the next.
_SOURCE = re.compile(rb"(?<![\w.])/(?:[\w.+@-]+/)+[\w.+-]+\.(?:cc|cpp|c|h|hpp|zig|S)\b")


@dataclass(frozen=True)
class Binary:
    """`needs` are the libraries that its loader opens. `minimum` is the oldest system: the newest
    glibc version of a symbol (elf; () without glibc), macOS (macho), the subsystem (pe)."""

    format: str  # elf, pe or macho
    machine: str  # x86_64 or aarch64
    needs: tuple[str, ...]
    minimum: tuple[int, ...]

    def __str__(self) -> str:
        oldest = ".".join(map(str, self.minimum)) or "-"
        return f"{self.format} {self.machine}, needs {oldest}: {', '.join(self.needs) or 'nothing'}"


def read(data: bytes) -> Binary:
    """Raises ValueError for a damaged file, or one that is not ELF, PE or Mach-O."""
    try:
        if data[:4] == b"\x7fELF":
            return _elf(data)
        if data[:2] == b"MZ":
            return _pe(data)
        if data[:4] == b"\xcf\xfa\xed\xfe":
            return _macho(data)
    except (struct.error, IndexError, KeyError) as error:
        raise ValueError(f"damaged or of another machine: {error!r}") from None
    raise ValueError("neither ELF, PE nor Mach-O with 64 bits")


def source_paths(data: bytes) -> list[str]:
    """Absolute paths of sources in the file, sorted."""
    return sorted({found.decode() for found in _SOURCE.findall(data)})


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


def _elf(data: bytes) -> Binary:
    if data[4:6] != b"\x02\x01":
        raise ValueError("not a little-endian file of 64 bits")
    (machine,) = struct.unpack_from("<H", data, 18)
    table, size, count = (*struct.unpack_from("<Q", data, 32), *struct.unpack_from("<HH", data, 54))
    loads, dynamic = [], b""
    for index in range(count):
        row = struct.unpack_from("<IIQQQQ", data, table + index * size)
        kind, _, offset, address, _, filled = row
        if kind == _PT_LOAD:
            loads.append((address, offset, filled))
        elif kind == _PT_DYNAMIC:
            dynamic = data[offset : offset + filled]

    def place(address: int) -> int:
        return next(o + address - a for a, o, n in loads if a <= address < a + n)

    rows = list(struct.iter_unpack("<QQ", dynamic[: len(dynamic) // 16 * 16]))
    one = dict(rows)
    names = place(one[_DT_STRTAB]) if rows else 0
    needs = tuple(_text(data, names + value) for tag, value in rows if tag == _DT_NEEDED)
    versions = [(0,)]
    at = place(one[_DT_VERNEED]) if _DT_VERNEED in one else 0
    for _ in range(one.get(_DT_VERNEEDNUM, 0)):
        _, entries, _, first, following = struct.unpack_from("<HHIII", data, at)
        entry = at + first
        for _ in range(entries):
            _, _, _, name, step = struct.unpack_from("<IHHII", data, entry)
            word = re.fullmatch(r"GLIBC_([0-9.]+)", _text(data, names + name))
            if word:
                versions.append(tuple(map(int, word[1].split("."))))
            entry += step
        at += following
    newest = max(versions)
    return Binary("elf", _MACHINES["elf", machine], needs, newest if newest != (0,) else ())


def _pe(data: bytes) -> Binary:
    (start,) = struct.unpack_from("<I", data, 60)
    machine, sections = struct.unpack_from("<HH", data, start + 4)
    (optional,) = struct.unpack_from("<H", data, start + 20)
    head = start + 24
    if struct.unpack_from("<H", data, head)[0] != 0x20B:
        raise ValueError("not a PE file of 64 bits")
    tables = [
        struct.unpack_from("<IIII", data, head + optional + 40 * i + 8) for i in range(sections)
    ]

    def place(address: int) -> int:
        return next(o + address - a for s, a, n, o in tables if a <= address < a + max(s, n))

    def imports(directory: int, size: int, name_at: int) -> Iterator[str]:
        (address,) = struct.unpack_from("<I", data, head + 112 + 8 * directory)
        at = place(address) if address else 0
        while at and any(data[at : at + size]):
            yield _text(data, place(struct.unpack_from("<I", data, at + name_at)[0])).lower()
            at += size

    needs = sorted({*imports(1, 20, 12), *imports(13, 32, 4)})  # at loading, and delayed
    oldest = struct.unpack_from("<HH", data, head + 48)
    return Binary("pe", _MACHINES["pe", machine], tuple(needs), oldest)


def _macho(data: bytes) -> Binary:
    (machine,) = struct.unpack_from("<I", data, 4)
    (count,) = struct.unpack_from("<I", data, 16)
    needs, minimum, at = [], (), 32
    for _ in range(count):
        kind, size = struct.unpack_from("<II", data, at)
        if size < 8:
            raise ValueError("a load command without a size")
        if kind in _LC_LOADS:
            needs.append(_text(data, at + struct.unpack_from("<I", data, at + 8)[0]))
        elif kind in (_LC_SYSTEM, _LC_SYSTEM_MACOS):
            platform, version = struct.unpack_from("<II", data, at + 8)
            if kind == _LC_SYSTEM_MACOS:
                version = platform
            elif platform != _MACOS:
                raise ValueError(f"made for platform {platform}, not for macOS")
            minimum = (version >> 16, version >> 8 & 255)
        at += size
    return Binary("macho", _MACHINES["macho", machine], tuple(needs), minimum)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        print(f"{name}: {read(Path(name).read_bytes())}")
