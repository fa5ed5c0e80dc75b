"""Where the compiled parts lie: built by CMake, found here, loaded elsewhere.

    liblite_runtime.so               the runtime for this machine's Python (.dylib, .dll elsewhere)
    bin/<arch>/lite_run              static runners for Linux; <arch> is x86_64, aarch64 or armv7
    bin/host/lite_run                this machine's where that is macOS or Windows (.exe)
    bin/wasm32/lite_run.wasm         the same for engines of WebAssembly with files (WASI)
    bin/wasm32/lite.wasm             the runtime for web pages
    bin/wasm32/lite_threads.wasm     the same with threads
    bin/<arch>/lite_run_opencl       the same, linked with the C library there: it opens OpenCL
    lib/<arch>/liblite_runtime.so    the runtime of another architecture, for `lite export`
    include/lite_runtime.h           its C interface
    include/lite_plugin.h            the interface of libraries with kernels for it
    liblite_count.so                 counts instructions under qemu-user (not on AArch64)

A wheel carries them (those for AArch64 where it was built beside a cross compiler); in a source
tree `make native` and `make native-arm` put them here.
"""

from __future__ import annotations

import platform
from pathlib import Path

from lite_messages import tr

from .. import system
from ..errors import BackendUnavailableError

_HERE = Path(__file__).parent
_BUILD = {
    "x86_64": "make native", "aarch64": "make native-arm", "armv7": "make native-armhf",
    "wasm32": "make native-wasm",
}  # fmt: skip
#: What this system's loader takes.
LIBRARY = f"liblite_runtime{system.LIBRARY_SUFFIX}"


def host_arch() -> str:
    """This machine's architecture as the folders are named: "x86_64", "aarch64", …"""
    machine = platform.machine().lower()
    return {"amd64": "x86_64", "arm64": "aarch64", "armv7l": "armv7"}.get(machine, machine)


def library_path(arch: str | None = None) -> Path:
    """The shared library of Linux on an architecture, by default this machine's own.

    Raises BackendUnavailableError when it was not built.
    """
    own = arch is None or (arch == host_arch() and system.LINUX)
    path = _HERE / LIBRARY if own else _HERE / "lib" / str(arch) / "liblite_runtime.so"
    return _existing(path, tr("runtime library"), arch or host_arch())


def runner_path(arch: str | None = None, *, opencl: bool = False) -> Path:
    """The `lite_run` executable of Linux on an architecture, by default this machine's own; with
    `opencl` the one that opens OpenCL, which a static executable cannot.

    Raises BackendUnavailableError when it was not built.
    """
    if arch is None and not system.LINUX:  # one runner, which is not static
        name = "lite_run"
        own = _HERE / "bin" / "host" / f"{name}{system.PROGRAM_SUFFIX}"
        return _existing(own, f"runner {name}", host_arch())
    arch, name = arch or host_arch(), "lite_run_opencl" if opencl else "lite_run"
    ending = ".wasm" if arch == "wasm32" else ""
    return _existing(_HERE / "bin" / arch / f"{name}{ending}", f"runner {name}", arch)


def web_module_path(*, threads: bool = False) -> Path:
    """lite.wasm, the runtime for pages, or the one with threads. Raises BackendUnavailableError
    when it was not built."""
    name = "lite_threads.wasm" if threads else "lite.wasm"
    return _existing(_HERE / "bin" / "wasm32" / name, tr("web runtime"), "wasm32")


def counter_path() -> Path:
    """The plugin that counts instructions under the emulator. Raises BackendUnavailableError."""
    return _existing(_HERE / "liblite_count.so", tr("counting plugin"), host_arch())


def header_path(name: str = "lite_runtime.h") -> Path:
    """lite_runtime.h, the C interface of the library, or lite_plugin.h, that of kernels for it."""
    return _existing(_HERE / "include" / name, tr("header {name}", name=name), host_arch())


def _existing(path: Path, what: str, arch: str) -> Path:
    if path.is_file():
        return path
    build = "make native" if arch == host_arch() else _BUILD.get(arch)
    missing = tr("the {what} for {arch} is not at {path}", what=what, arch=arch, path=path)
    if not build:
        raise BackendUnavailableError(missing, fix=tr("{arch} is not supported", arch=arch))
    fix = tr("install a wheel that carries it, or build it in a source tree")
    raise BackendUnavailableError(missing, fix=fix, command=build)
