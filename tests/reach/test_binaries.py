"""What scripts/binaries.py reads of native files, against readelf and files made by hand, and the
platform tags that follow."""

from __future__ import annotations

import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from lite_engine._native import library_path, runner_path

from scripts import binaries
from scripts.binaries import Binary

KERNEL = "kernel32.dll"


@pytest.fixture(scope="module")
def tags(root):
    """tag_wheel.py is a script, which finds its neighbours by its own folder."""
    import sys

    sys.path.insert(0, str(root / "scripts"))
    try:
        import tag_wheel

        yield tag_wheel
    finally:
        sys.path.remove(str(root / "scripts"))


def readelf(path: Path) -> tuple[tuple[str, ...], tuple[int, ...]]:
    tool = shutil.which("readelf")
    if tool is None:
        pytest.skip("no readelf; sudo apt-get install binutils")
    command = [tool, "--wide", "-d", "-V", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    versions = [tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", text)]
    return tuple(re.findall(r"\(NEEDED\).*\[(.+)\]", text)), max(versions, default=())


@pytest.mark.cpu
def test_an_elf_file_is_read_as_readelf_reads_it():
    for path in (library_path(), runner_path(), runner_path(opencl=True)):
        found = binaries.read(path.read_bytes())
        assert found.format == "elf"
        assert (found.needs, found.minimum) == readelf(path)


@pytest.mark.arm
def test_the_machine_of_an_elf_file():
    assert binaries.read(runner_path("aarch64").read_bytes()).machine == "aarch64"


def pe(*dlls: str, delayed: tuple[str, ...] = (), machine: int = 0x8664) -> bytes:
    """A PE file of one section, which lies at address 0x1000 and offset 0x400."""
    section = bytearray(0x400)

    def table(at: int, names: tuple[str, ...], size: int, name_at: int) -> None:
        for index, name in enumerate(names):
            text = 0x200 + at + 32 * index
            section[text : text + len(name) + 1] = name.encode() + b"\0"
            struct.pack_into("<I", section, at + size * index + name_at, 0x1000 + text)

    table(0, dlls, 20, 12)
    table(0x100, delayed, 32, 4)
    optional = bytearray(240)
    struct.pack_into("<H", optional, 0, 0x20B)
    struct.pack_into("<HH", optional, 48, 6, 0)
    struct.pack_into("<I", optional, 112 + 8, 0x1000)
    struct.pack_into("<I", optional, 112 + 8 * 13, 0x1100 if delayed else 0)
    head = bytearray(0x400)
    head[:2] = b"MZ"
    struct.pack_into("<I", head, 60, 64)
    head[64:68] = b"PE\0\0"
    struct.pack_into("<HHIIIHH", head, 68, machine, 1, 0, 0, 0, len(optional), 0)
    head[88 : 88 + len(optional)] = optional
    struct.pack_into("<8sIIII", head, 88 + len(optional), b".idata", 0x400, 0x1000, 0x400, 0x400)
    return bytes(head + section)


def macho(*dylibs: str, minimum: int = 0xB0000, platform: int = 1, cpu: int = 0x0100000C) -> bytes:
    commands = [struct.pack("<IIIIII", 0x32, 24, platform, minimum, 0, 0)]
    for name in dylibs:
        text = name.encode() + b"\0" * (8 - len(name) % 8)
        commands.append(struct.pack("<IIIIII", 0xC, 24 + len(text), 24, 0, 0, 0) + text)
    sizes = sum(map(len, commands))
    head = struct.pack("<IIIIIIII", 0xFEEDFACF, cpu, 0, 6, len(commands), sizes, 0, 0)
    return head + b"".join(commands)


def test_a_windows_file_and_what_it_loads_late():
    found = binaries.read(pe("KERNEL32.dll", "ucrtbase.dll", delayed=("OpenCL.dll",)))
    assert found == Binary("pe", "x86_64", (KERNEL, "opencl.dll", "ucrtbase.dll"), (6, 0))
    assert binaries.read(pe(KERNEL, machine=0xAA64)).machine == "aarch64"


def test_a_file_of_macos():
    system = "/usr/lib/libSystem.B.dylib"
    assert binaries.read(macho(system)) == Binary("macho", "aarch64", (system,), (11, 0))
    assert binaries.read(macho(system, minimum=0xC0300)).minimum == (12, 3)
    with pytest.raises(ValueError, match="platform 2"):
        binaries.read(macho(system, platform=2))


@pytest.mark.parametrize(
    "data",
    [b"", b"MZ", b"\x7fELF\x01\x01", b"\x7fELF\x02\x01", b"\xcf\xfa\xed\xfe", b"#!/bin/sh\n",
     pe(KERNEL)[:90], macho("/usr/lib/x.dylib")[:40], pe(KERNEL, machine=0x14C)],
)  # fmt: skip
def test_a_damaged_file_is_refused(data):
    with pytest.raises(ValueError):
        binaries.read(data)


def test_paths_of_the_build_machine_are_found():
    data = b"\0/home/me/lite/src/runtime/load.cc:12\0lib/x.h\0a/b.h\0/proc/self/exe\0"
    assert binaries.source_paths(data) == ["/home/me/lite/src/runtime/load.cc"]


@pytest.mark.parametrize(
    ("binary", "tag"),
    [
        (Binary("elf", "x86_64", ("libc.so.6", "libm.so.6"), (2, 28)), "manylinux_2_28_x86_64"),
        (Binary("elf", "aarch64", ("libc.so.6",), (2, 4)), "manylinux_2_17_aarch64"),
        (Binary("elf", "aarch64", ("libc.so",), ()), "musllinux_1_2_aarch64"),
        (Binary("macho", "aarch64", ("/usr/lib/libSystem.B.dylib",), (11, 0)), "macosx_11_0_arm64"),
        (Binary("macho", "x86_64", ("/usr/lib/libSystem.B.dylib",), (13, 1)), "macosx_13_1_x86_64"),
        (Binary("pe", "x86_64", (KERNEL, "api-ms-win-crt-math-l1-1-0.dll"), (6, 0)), "win_amd64"),
        (Binary("pe", "aarch64", (KERNEL,), (6, 2)), "win_arm64"),
    ],
)  # fmt: skip
def test_the_tag_of_a_library(tags, binary, tag):
    assert tags.tag_of(binary) == tag


@pytest.mark.parametrize(
    "binary",
    [
        Binary("elf", "x86_64", ("libc.so.6", "libstdc++.so.6"), (2, 17)),
        Binary("macho", "aarch64", ("/opt/homebrew/lib/libomp.dylib",), (11, 0)),
        Binary("pe", "x86_64", (KERNEL, "libc++.dll"), (6, 0)),
    ],
)
def test_a_library_that_needs_more_is_refused(tags, binary):
    with pytest.raises(ValueError, match="link it statically"):
        tags.tag_of(binary)


def unpacked(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = folder / "lite_engine" / "_native" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def test_a_wheel_is_tagged_by_all_of_its_own_files(tags, tmp_path):
    system = "/usr/lib/libSystem.B.dylib"
    files = {"liblite_runtime.dylib": macho(system), "bin/host/lite_run": macho(system)}
    wheel = unpacked(tmp_path, {**files, "include/lite_runtime.h": b"#pragma once\n"})
    assert tags.inspect(wheel) == "macosx_11_0_arm64"
    unpacked(tmp_path, {"bin/host/lite_run": macho(system, minimum=0xC0000)})
    assert tags.inspect(wheel) == "macosx_12_0_arm64"
    unpacked(tmp_path, {"bin/host/lite_run": macho("/usr/local/lib/libx.dylib")})
    with pytest.raises(ValueError, match="bin/host/lite_run needs /usr/local"):
        tags.inspect(wheel)


def test_a_path_of_the_build_machine_in_a_wheel_is_refused(tags, tmp_path):
    library = pe(KERNEL) + b"\0/home/me/src/dispatch.cc\0"
    wheel = unpacked(tmp_path, {"liblite_runtime.dll": library})
    with pytest.raises(ValueError, match=r"liblite_runtime.dll has a path .*/home/me/src/dispatch"):
        tags.inspect(wheel)
