"""Gives a wheel the platform tag that its native files deserve, and a bill of materials (sbom.py).

    tag_wheel.py WHEEL FOLDER     writes the new wheel into FOLDER and prints its path

The library's symbols, load commands or imports say what it needs (binaries.py): nothing but glibc
up to 2.N is manylinux_2_N (PEP 600), musl musllinux_1_2 (PEP 656), macOS 11 macosx_11_0. A file
that needs anything else, or that has a path of this machine in it, ends it with an error. The same
content gives the same bytes: files have one time, SOURCE_DATE_EPOCH or 1980.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import binaries
import sbom

NATIVE = "lite_engine/_native"
LIBRARIES = ("liblite_runtime.so", "liblite_runtime.dylib", "liblite_runtime.dll")
# What every glibc system has; ld-linux-* is the loader.
GLIBC = re.compile(r"^(libc|libm|libpthread|libdl|librt)\.so\.\d+$|^ld-linux-.*\.so\.\d+$")
MUSL = re.compile(r"^libc\.so$|^libc\.musl-.*\.so\.1$")
APPLE = re.compile(r"^/usr/lib/libSystem\.B\.dylib$")
# Windows 10 on; api-ms-win-* are its names for parts of the C library and the kernel.
WINDOWS = re.compile(r"^(kernel32|ntdll|ucrtbase)\.dll$|^api-ms-win-.*\.dll$")
APPLE_NAMES = {"aarch64": "arm64"}
WINDOWS_NAMES = {"x86_64": "amd64", "aarch64": "arm64"}


def tag_of(binary: binaries.Binary) -> str:
    """ "manylinux_2_17_x86_64" and the like. Raises ValueError when it needs what not every such
    system has."""
    if binary.format == "macho":
        allowed, major = APPLE, max(binary.minimum or (0, 0), (11, 0))
        tag = f"macosx_{major[0]}_{major[1]}_{APPLE_NAMES.get(binary.machine, binary.machine)}"
    elif binary.format == "pe":
        allowed, tag = WINDOWS, f"win_{WINDOWS_NAMES[binary.machine]}"
    elif any(MUSL.match(name) for name in binary.needs):
        allowed, tag = MUSL, f"musllinux_1_2_{binary.machine}"
    else:
        allowed = GLIBC
        _, minor = max((2, 17), binary.minimum[:2])
        tag = f"manylinux_2_{minor}_{binary.machine}"
    foreign = [name for name in binary.needs if not allowed.match(name)]
    if foreign:
        raise ValueError(f"needs {', '.join(foreign)}; link it statically")
    return tag


def inspect(folder: Path) -> str:
    """The tag of an unpacked wheel. Raises ValueError, naming the file at fault."""
    native = folder / NATIVE
    (library,) = [native / name for name in LIBRARIES if (native / name).is_file()]
    own = binaries.read(library.read_bytes())
    wheel_tag = tag_of(own)
    for path in sorted(p for p in native.rglob("*") if p.is_file()):
        data, name = path.read_bytes(), path.relative_to(folder).as_posix()
        if paths := binaries.source_paths(data):
            raise ValueError(f"{name} has a path of this machine in it: {paths[0]}")
        try:
            found = binaries.read(data)
        except ValueError:
            continue  # a header, a module of WebAssembly
        # A wheel may also carry what a board runs: those say by their folder what they are for.
        if found.format == own.format and found.machine == own.machine and found.needs:
            try:
                same = newest(tag_of(found), wheel_tag)
            except ValueError as error:
                raise ValueError(f"{name} {error}") from None
            wheel_tag = same
    return wheel_tag


def newest(one: str, other: str) -> str:
    """The tag of two files of one wheel: that of the newer system. Raises ValueError when no system
    loads both."""
    number = re.compile(r"(?<=_)\d+(?=_)")
    if number.sub("", one) != number.sub("", other):
        raise ValueError(f"is {one}, the library {other}")
    return max(one, other, key=lambda tag: [int(n) for n in number.findall(tag)])


def wheel_tool(*words: object) -> str:
    command = [sys.executable, "-m", "wheel", *map(str, words)]
    env = {**os.environ, "SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", "315532800")}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout


def main(wheel: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        wheel_tool("unpack", "--dest", scratch, wheel)
        (unpacked,) = Path(scratch).iterdir()
        try:
            tag = inspect(unpacked)
        except ValueError as error:
            sys.exit(f"error: {wheel.name}: {error}")
        sbom.write(unpacked)
        packed = Path(scratch) / "packed"
        packed.mkdir()
        wheel_tool("pack", "--dest-dir", packed, unpacked)
        (copy,) = packed.iterdir()
        name = wheel_tool("tags", "--remove", "--platform-tag", tag, copy).split()[-1]
        folder.mkdir(parents=True, exist_ok=True)
        print(shutil.copy(packed / name, folder / name))


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(Path(sys.argv[1]), Path(sys.argv[2]))
