"""C kernels of custom operators: compiled from source on the spot, or libraries that are there.

A library exports what `lite_plugin.h` describes. It is loaded into this process when it is given,
and named to the runner of a device with `--library`.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from lite_messages import tr

from ... import settings
from ..._native import header_path, host_arch
from ...errors import BackendUnavailableError, UsageError
from ...ops import OpDef, is_custom
from .native import library as runtime

#: The name that plans give to kernels of libraries.
KERNEL = "plugin"
_COMPILERS = {"aarch64": "aarch64-linux-gnu-gcc", "armv7": "arm-linux-gnueabihf-gcc",
              "x86_64": "x86_64-linux-gnu-gcc"}  # fmt: skip
_FLAGS = ("-O3", "-shared", "-fPIC", "-fvisibility=hidden")
_ERROR_BYTES = 1024

#: operator → C text, or libraries by architecture
_given: dict[str, str | dict[str, Path]] = {}


def c_kernel(
    op: OpDef,
    source: str = "",
    *,
    library: str | Path | Mapping[str, str | Path] | None = None,
    dtype: str = "f32",
) -> None:
    """Gives a custom operator a kernel for CPUs: C text, or a shared library (by architecture, like
    `{"x86_64": "a.so", "aarch64": "b.so"}`, where there are several).

    `dtype` lists the types of the first input that it takes, like "f32,i8". The library's code runs
    in this process. Where there is no library for this machine, or no compiler, NumPy computes the
    operator, and plans give the reason. Raises UsageError for text that does not compile or an
    operator that is not custom, BackendUnavailableError for a library that cannot be loaded.
    """
    if not is_custom(op.name):
        raise UsageError(tr("{op} is not a custom operator", op=op.name))
    if bool(source) == (library is not None):
        raise UsageError(tr("{op}: pass either C text or a library", op=op.name))
    if isinstance(library, Mapping):
        given: str | dict[str, Path] = {arch: Path(path) for arch, path in library.items()}
    else:
        given = {host_arch(): Path(library)} if library is not None else source
    missing = ""
    try:
        made = _library(op.name, given, host_arch())
    except BackendUnavailableError as error:
        missing = str(error)
    else:
        load(made)
    _given[op.name] = given
    op.kernels[:] = [k for k in op.kernels if k.backend != "cpu"]
    op.kernel("cpu", KERNEL, dtype=dtype, when=(lambda node, types: missing) if missing else None)


def libraries_of(ops: Iterable[str], arch: str) -> list[Path]:
    """The libraries that a program with these operators needs on an architecture. Raises
    BackendUnavailableError where there is none."""
    return list(dict.fromkeys(_library(op, _given[op], arch) for op in ops if op in _given))


def _library(op: str, given: str | dict[str, Path], arch: str) -> Path:
    if isinstance(given, str):
        return _compiled(op, given, arch)
    path = given.get(arch)
    if path is None or not path.is_file():
        raise BackendUnavailableError(
            tr("{op}: there is no library for {arch}", op=op, arch=arch)
            if path is None
            else tr("{op}: {path} does not exist", op=op, path=path),
            fix=tr("pass `library`, or the C text"),
        )
    return path.absolute()


def _compiler(arch: str) -> str:
    """Raises BackendUnavailableError when there is none."""
    own = arch == host_arch()
    names = [os.environ.get("CC", "cc"), "gcc", "clang"] if own else [_COMPILERS.get(arch, "")]
    found = next((name for name in names if name and shutil.which(name)), None)
    if found is None:
        package = "gcc" if own else f"gcc-{names[0].removesuffix('-gcc')}"
        raise BackendUnavailableError(
            tr("no C compiler for {arch} is installed", arch=arch),
            command=f"sudo apt-get install {package}",
        )
    return found


def _compiled(op: str, source: str, arch: str) -> Path:
    """The library of a text, kept in the cache folder by what it was made of."""
    compiler, header = _compiler(arch), header_path("lite_plugin.h")
    digest = hashlib.blake2b(digest_size=16)
    for part in (source, header.read_text(), compiler, arch, *_FLAGS):
        digest.update(part.encode() + b"\0")
    path = settings.cache_dir() / "custom" / f"{digest.hexdigest()}.so"
    if path.is_file():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        text, made = Path(folder) / "kernel.c", Path(folder) / "kernel.so"
        text.write_text(source)
        command = [compiler, *_FLAGS, "-I", str(header.parent), str(text), "-o", str(made), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode:
            lines = done.stderr.replace(f"{text}:", "").splitlines()
            said = next((line for line in lines if "error" in line), tr("no reason given"))
            raise UsageError(
                tr("{op}: {compiler} says: {error}", op=op, compiler=compiler, error=said.strip())
            )
        made.replace(path)
    return path


def load(path: Path) -> None:
    """Gives the runtime a library, or the text of an OpenCL kernel (a `.cl` file). Raises
    BackendUnavailableError."""
    error = ctypes.create_string_buffer(_ERROR_BYTES)
    if runtime().lite_plugin_load(os.fsencode(path), error, _ERROR_BYTES):
        raise BackendUnavailableError(error.value.decode(errors="replace"))
