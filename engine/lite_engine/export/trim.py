"""A runner and library, or a page's module, with only the kernels that a model or pipeline uses.

A list names every file of kernels; a build with a shorter one leaves the others out, and the linker
drops what nothing refers to. It needs the runtime's sources (a source checkout or the sdist) and a
compiler; wheels carry neither.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import zlib
from collections.abc import Sequence
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
#: Target → its architecture, as a folder of the runtime is named.
ARCHITECTURES = {"arm": "aarch64", "x86": "x86_64", "web": "wasm32"}
BUILD_TIMEOUT_S = 1800
_ROW = re.compile(r"LITE_(?:BASE|ISA|ONE_ISA)_KERNELS\((?:(\w+), )?(\w+)\)")
_TABLE = re.compile(r"^LITE_(BASE_)?KERNEL_TABLE\((\w+),", re.MULTILINE)
#: Of the shared sources these instruction sets have the kernels of one type only.
_HALVES = {"neonfp16": "f16_", "avx512bf16": "bf16_"}


@dataclass
class Trimmed:
    """The folder of what was built, and the kernels that the models need."""

    folder: Path
    kernels: list[str]

    @property
    def runner(self) -> Path:
        return self.folder / "lite_run"

    @property
    def library(self) -> Path:
        return self.folder / "liblite_runtime.so"

    @property
    def module(self) -> Path:
        """For a page."""
        return self.folder / "lite.wasm"


def trim(models: Sequence[Model], target: str, *, pipelines: bool = False) -> Trimmed:
    """Builds a runtime for these models, with `pipelines` one that runs the steps between them; a
    page's always does. Raises BackendUnavailableError without sources or tools, LiteError when the
    build fails."""
    arch, pipelines = ARCHITECTURES[target], pipelines or target == "web"
    options = _tools(arch)
    kernels: set[str] = set()
    for model in models:
        plans = cpu_plans(model, "wasm" if target == "web" else target).values()
        kernels |= {step.kernel for plan in plans for step in plan.steps}
        if "opencl" in model.targets and target != "web":
            kernels |= opencl_host_kernels(model)
    wanted = sorted(kernels)
    rows = short_list(kernel_list(), wanted)
    sources = zlib.crc32(str(SOURCES).encode())  # CMake keeps one folder to one source tree
    kind = "-pipeline" if pipelines else ""
    build = settings.cache_dir() / f"trimmed-{arch}{kind}-{sources:08x}"
    build.mkdir(parents=True, exist_ok=True)
    listed = build / "kernel_list.inc"
    if not listed.is_file() or listed.read_text() != rows:
        listed.write_text(rows)
    options += [f"-DLITE_KERNEL_LIST={listed}", f"-DLITE_PIPELINES={'ON' if pipelines else 'OFF'}"]
    _build(build, options)
    return Trimmed(build, wanted)


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
                tr("no source file of the runtime contains the kernel {kernel}", kernel=kernel),
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


def _tools(arch: str) -> list[str]:
    """CMake's options for its compiler. Raises BackendUnavailableError without one."""
    if not (SOURCES / "CMakeLists.txt").is_file():
        raise BackendUnavailableError(
            tr("--trim builds from the runtime's sources, which a wheel does not carry"),
            fix=tr("use a source checkout, or leave --trim out"),
        )
    own = arch == host_arch()
    compiler = "c++" if own else f"{arch}-linux-gnu-g++"
    tools = {"cmake": "sudo apt-get install cmake"}
    zig = _zig() if arch == "wasm32" else None
    if arch == "wasm32":
        tools["zig"] = "pip install ziglang"
    else:
        package = "g++" if own else f"g++-{arch}-linux-gnu".replace("_", "-")
        tools[compiler] = f"sudo apt-get install {package}"
    for tool, command in tools.items():
        if not (zig if tool == "zig" else shutil.which(tool)):
            raise BackendUnavailableError(tr("--trim needs {tool}", tool=tool), command=command)
    if zig:
        return [f"-DCMAKE_TOOLCHAIN_FILE={SOURCES}/cmake/zig.cmake", f"-DLITE_ZIG={zig}",
                "-DLITE_ZIG_TARGET=wasm32-wasi"]  # fmt: skip
    return [] if own else [f"-DCMAKE_TOOLCHAIN_FILE={SOURCES}/cmake/{arch}-linux-gnu.cmake"]


def _zig() -> str | None:
    """Of the path, or that of the wheel `ziglang`."""
    if found := shutil.which("zig"):
        return found
    wheel = importlib.util.find_spec("ziglang")
    beside = Path(wheel.origin).parent / "zig" if wheel and wheel.origin else None
    return str(beside) if beside and beside.is_file() else None


def _build(build: Path, options: Sequence[str]) -> None:
    configure = ["cmake", "-S", str(SOURCES), "-B", str(build), *options]
    if shutil.which("ninja"):
        configure += ["-G", "Ninja"]
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
