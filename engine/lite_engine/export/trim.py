"""A runner and library with only the kernels that one model uses.

A list names every file of kernels; a build with a shorter one leaves the others out, and the linker
drops what nothing refers to. It needs the runtime's sources (a source checkout or the sdist) and a
compiler; wheels carry neither.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import zlib
from dataclasses import dataclass
from pathlib import Path

from lite_messages import tr

from .. import settings, system
from .._native import host_arch
from ..errors import BackendUnavailableError, LiteError
from ..model_file import Model
from ..model_file.opencl_programs import opencl_host_kernels
from ..model_file.writer import cpu_plans

SOURCES = Path(__file__).parents[2] / "native"
ARCHITECTURES = {"arm": "aarch64", "x86": "x86_64"}
BUILD_TIMEOUT_S = 1800
_ROW = re.compile(r"LITE_(?:BASE|ISA|ONE_ISA)_KERNELS\((?:(\w+), )?(\w+)\)")
_TABLE = re.compile(r"^LITE_(BASE_)?KERNEL_TABLE\((\w+),", re.MULTILINE)
#: Of the shared sources these instruction sets have the kernels of one type only.
_HALVES = {"neonfp16": "f16_", "avx512bf16": "bf16_"}


@dataclass
class Trimmed:
    """What was built, and the kernels that the model needs."""

    runner: Path
    library: Path
    kernels: list[str]


def trim(model: Model, target: str) -> Trimmed:
    """Builds runner and library for one model. Raises BackendUnavailableError without
    sources or tools, LiteError when the build fails."""
    arch = ARCHITECTURES[target]
    _check_tools(arch)
    plans = cpu_plans(model, target).values()
    kernels = {step.kernel for plan in plans for step in plan.steps}
    if "opencl" in model.targets:
        kernels |= opencl_host_kernels(model)
    wanted = sorted(kernels)
    rows = short_list(kernel_list(), wanted)
    sources = zlib.crc32(str(SOURCES).encode())  # CMake keeps one folder to one source tree
    build = settings.cache_dir() / f"trimmed-{arch}-{sources:08x}"
    build.mkdir(parents=True, exist_ok=True)
    listed = build / "kernel_list.inc"
    if not listed.is_file() or listed.read_text() != rows:
        listed.write_text(rows)
    _build(build, listed, arch)
    return Trimmed(build / "lite_run", build / "liblite_runtime.so", wanted)


def kernel_list() -> str:
    """kernel_list.inc, then the files that it leaves to the table they end with, like CMake's."""
    rows = (SOURCES / "src" / "kernel_list.inc").read_text()
    for source in (p for f in ("ops", "isa") for p in sorted((SOURCES / "src" / f).glob("*.cc"))):
        for base, name in _TABLE.findall(source.read_text()):
            row = f"LITE_{base or 'ISA_'}KERNELS({name})\n"
            rows += row if row.strip() not in rows else ""
    return rows


def short_list(full: str, kernels: list[str]) -> str:
    """The lines of the list that these kernels need, with the conditions around them.

    Raises LiteError for a kernel that no listed file registers."""
    files = {row: _registers(*row) for row in _ROW.findall(full)}
    needed: set[tuple[str, str]] = set()
    # Kernels of bf16 may hand their step to that of floats (isa/bf16.cc).
    floats = ["f32" + k.removeprefix("bf16") for k in kernels if k.startswith("bf16_")]
    for kernel in (*kernels, *floats):
        having = [row for row, known in files.items() if kernel in known]
        if not having and kernel in kernels:
            raise LiteError(
                tr("kernel {kernel} is in no file of the runtime", kernel=kernel),
                fix=tr("run without --trim"),
            )
        needed.update(having)
    lines = []
    for line in full.splitlines():
        row = _ROW.search(line)
        if line.startswith("#") or (row and (row[1] or "", row[2]) in needed):
            lines.append(line)
    return re.sub(r"^#if.*\n#endif\n", "", "\n".join(lines) + "\n", flags=re.MULTILINE)


def _registers(isa: str, file: str) -> set[str]:
    """Kernel names in the sources of a list entry: they are string literals there."""
    texts = [p.read_text() for p in (SOURCES / "src").rglob(f"{file}.cc")]
    names = {name for text in texts for name in re.findall(r'"([a-z]\w*)"', text)}
    return {name for name in names if name.startswith(_HALVES.get(isa, ""))}


def _check_tools(arch: str) -> None:
    if not (SOURCES / "CMakeLists.txt").is_file():
        raise BackendUnavailableError(
            tr("--trim builds from the runtime's sources, which a wheel does not carry"),
            fix=tr("use a source checkout, or leave --trim out"),
        )
    compiler = "c++" if arch == host_arch() else f"{arch}-linux-gnu-g++"
    packages = {"c++": "g++", "cmake": "cmake", f"{arch}-linux-gnu-g++": f"g++-{arch}-linux-gnu"}
    for tool in ("cmake", compiler):
        if not shutil.which(tool):
            raise BackendUnavailableError(
                tr("--trim needs {tool}", tool=tool),
                command=f"sudo apt-get install {packages[tool].replace('_', '-')}",
            )


def _build(build: Path, listed: Path, arch: str) -> None:
    configure = ["cmake", "-S", str(SOURCES), "-B", str(build), f"-DLITE_KERNEL_LIST={listed}"]
    if shutil.which("ninja"):
        configure += ["-G", "Ninja"]
    if arch != host_arch():
        configure.append(f"-DCMAKE_TOOLCHAIN_FILE={SOURCES}/cmake/{arch}-linux-gnu.cmake")
    jobs = str(system.processors())
    for command in (configure, ["cmake", "--build", str(build), "--parallel", jobs]):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise LiteError(
                tr(
                    "the trimmed build took more than {build_timeout_s} s",
                    build_timeout_s=BUILD_TIMEOUT_S,
                )
            ) from None
        if done.returncode:
            log = build / "build.log"
            log.write_text(done.stdout + done.stderr)
            raise LiteError(
                tr("the trimmed build failed"), fix=tr("its messages are in {log}", log=log)
            )
