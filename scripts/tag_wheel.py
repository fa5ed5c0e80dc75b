"""Gives a wheel the platform tag that its library deserves (manylinux_2_N by measured symbols) and
a bill of materials (sbom.py).

    tag_wheel.py WHEEL FOLDER     writes the new wheel into FOLDER and prints its path

A library that needs nothing but glibc up to version 2.N may carry manylinux_2_N (PEP 600).
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import sbom

LIBRARY = "lite_engine/_native/liblite_runtime.so"
# What every glibc system has; ld-linux-* is the loader.
ALLOWED = re.compile(r"^(libc|libm|libpthread|libdl|librt)\.so\.\d+$|^ld-linux-.*\.so\.\d+$")
MACHINES = {"X86-64": "x86_64", "AArch64": "aarch64"}


def platform_tag(library: Path) -> str:
    """ "manylinux_2_34_x86_64" and the like; fails when the library needs more than glibc."""
    text = subprocess.run(
        ["readelf", "--wide", "-h", "-d", "-V", str(library)],
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    machine = next(tag for name, tag in MACHINES.items() if re.search(f"Machine:.*{name}", text))
    foreign = [n for n in re.findall(r"\(NEEDED\).*\[(.+)\]", text) if not ALLOWED.match(n)]
    if foreign:
        sys.exit(f"error: {library.name} needs {', '.join(foreign)}; link it statically")
    minors = [int(n) for n in re.findall(r"GLIBC_2\.(\d+)", text)]
    return f"manylinux_2_{max([17, *minors])}_{machine}"


def wheel_tool(*words: object) -> str:
    command = [sys.executable, "-m", "wheel", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main(wheel: Path, folder: Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        wheel_tool("unpack", "--dest", scratch, wheel)
        (unpacked,) = Path(scratch).iterdir()
        tag = platform_tag(unpacked / LIBRARY)
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
