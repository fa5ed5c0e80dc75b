"""OpenCL compilers that need no device: clang's front ends, and PTX through NVIDIA's assembler.

Results are kept by content under build/opencl-texts: a text that has not changed is not compiled
again. Programs are checked as what drivers read without a `-cl-std` option, OpenCL C 1.2, and in
the long run as 2.0 and 3.0 too.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lite_engine.backends.opencl.programs import KERNELS, parts_of

from tests.opencl.texts import Text

_CACHE = Path(__file__).parents[2] / "build" / "opencl-texts"
_LIBCLC = "nvptx64--nvidiacl.bc"
#: Indices are ints, of size_t from get_global_id: no grid has 2^31 items. A kernel has one set of
#: parameters for all options: one that some options do not read is reported, not refused.
_WARNINGS = (
    "-Wall", "-Wextra", "-Werror", "-Wmacro-redefined", "-Wconversion", "-Wdouble-promotion",
    "-Wno-shorten-64-to-32", "-Wno-sign-conversion", "-Wno-error=unused-parameter",
    "-Wno-unused-but-set-parameter",
)  # fmt: skip
#: The oldest chip with all their instructions; newer ones run what is made for it.
_CHIP = "sm_80"
_UNREAD = re.compile(r":(\d+):\d+: warning: unused parameter '(\w+)'")
#: The line in which a function begins: `void name(` of a kernel, `inline type name(` of others.
_SIGNATURE = re.compile(r"^(?:kernel )?(?:void|inline \S+) \w+\(")
_TIMEOUT_S = 120


@dataclass(frozen=True)
class Result:
    """`error` is the first error, empty where it compiled; `report` what the assembler says, or
    "kernel(parameter)" lines of what a front end found unread."""

    error: str
    report: str = ""


@lru_cache(1)
def clang() -> str | None:
    """A clang that knows OpenCL, the newest of the usual names."""
    names = [f"clang-{v}" for v in range(22, 13, -1)] + ["clang"]
    return next((p for n in names if (p := shutil.which(n))), None)


@lru_cache(1)
def libclc() -> Path | None:
    """OpenCL's built-in functions for NVIDIA, as LLVM code that this clang reads."""
    places = [
        Path("/usr/lib/clc"),
        *Path("/usr/lib").glob("llvm-*/share/clc"),
        Path("/usr/share/clc"),
    ]
    return next((f / _LIBCLC for f in places if (f / _LIBCLC).is_file()), None)


@lru_cache(1)
def ptxas() -> str | None:
    """NVIDIA's assembler, of CUDA or of pip's nvidia-cuda-nvcc."""
    packaged = sorted(Path(sysconfig.get_path("purelib")).glob("nvidia/*/bin/ptxas"))
    return shutil.which("ptxas") or next((str(p) for p in packaged), None)


def missing() -> str | None:
    """What this machine lacks, None where everything is there."""
    if clang() is None:
        return "no clang; sudo apt-get install clang-15"
    if libclc() is None:
        return "no libclc; sudo apt-get install libclc-15-dev"
    return None if ptxas() else "no ptxas; pip install --no-deps nvidia-cuda-nvcc"


def front_ends(text: Text) -> tuple[str, ...]:
    """Targets whose front end must take a text: NVIDIA's own for PTX, otherwise what the compilers
    of Intel, ARM and Qualcomm start from, and AMD's for a GPU of any maker."""
    if text.file == "conv_mma":
        return ("nvptx64-nvidia-nvcl",)
    if text.device_class == "nvidia":
        return ("nvptx64-nvidia-nvcl",)
    return ("spir64", "amdgcn-amd-amdhsa") if text.device_class == "gpu" else ("spir64",)


def check(program: str, target: str, *, cpu: bool = False, standard: str = "CL1.2") -> Result:
    """Whether a front end takes the program without a warning."""
    flags = [*_WARNINGS, f"-cl-std={standard}", "-target", target, "-fsyntax-only", "-Dasm=__asm__"]
    flags += [
        "-nogpulib",
        "-Xclang",
        "-finclude-default-header",
        "-Xclang",
        "-cl-ext=+cl_khr_fp16",
        "-D__opencl_c_integer_dot_product_input_4x8bit_packed",  # of devices that have it
        *(["-DCPU"] if cpu else []),
    ]
    return _kept(program, flags, _run_clang)


def assemble(program: str, chip: str = _CHIP) -> Result:
    """The program as machine code of an NVIDIA chip; the report has registers, spills, memory."""
    flags = ["-cl-std=CL1.2", "-target", "nvptx64-nvidia-nvcl", "-O3", "-S", "-Dasm=__asm__"]
    for option in ("-target-feature", "+ptx75", "-target-cpu", _CHIP, "-finclude-default-header",
                   "-cl-ext=+cl_khr_fp16", "-mlink-builtin-bitcode", str(libclc())):  # fmt: skip
        flags += ["-Xclang", option]
    return _kept(program, [*flags, "-w", "-cl-mad-enable"], _run_ptxas, chip)


def many(jobs: Iterable[tuple], work) -> list[Result]:
    """`work(*job)` of every job, on all cores, in order."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda job: work(*job), jobs))


def _kept(program: str, flags: list[str], run, *more: str) -> Result:
    key = hashlib.sha256("\0".join([_versions(), *flags, *more, program]).encode()).hexdigest()
    path = _CACHE / key[:2] / key
    if path.is_file():
        error, _, report = path.read_text().partition("\0")
        return Result(error, report)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "program.cl"
        file.write_text(program)
        result = run(file, flags, *more)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(f"{result.error}\0{result.report}")
    part.replace(path)
    return result


@lru_cache(1)
def _versions() -> str:
    tools = [[str(clang()), "--version"], [str(ptxas()), "--version"]]
    return "\n".join(
        subprocess.run(t, capture_output=True, text=True).stdout for t in tools if t[0]
    )


def _run(command: list[str]) -> tuple[int, str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S)
    return done.returncode, done.stdout + done.stderr


def _run_clang(file: Path, flags: list[str]) -> Result:
    status, said = _run([str(clang()), "-x", "cl", *flags, str(file)])
    if status:
        return Result(_first_error(said))
    lines = file.read_text().splitlines()
    return Result(
        "", "\n".join(f"{_function(lines[: int(n)])}({p})" for n, p in _UNREAD.findall(said))
    )


def _function(lines: list[str]) -> str:
    """The last function that begins in these lines."""
    return re.findall(r"(\w+)\(", "\n".join(x for x in lines if _SIGNATURE.search(x)))[-1]


def _run_ptxas(file: Path, flags: list[str], chip: str) -> Result:
    ptx, binary = file.with_suffix(".ptx"), file.with_suffix(".cubin")
    status, said = _run([str(clang()), "-x", "cl", *flags, "-o", str(ptx), str(file)])
    if status:
        return Result(_first_error(said))
    status, said = _run([str(ptxas()), f"-arch={chip}", "-v", "-o", str(binary), str(ptx)])
    return Result("", said) if status == 0 else Result(_first_error(said))


def _first_error(said: str) -> str:
    lines = [x for x in said.splitlines() if re.search(r"error|fatal|warning", x)]
    return (lines or said.splitlines() or ["no message"])[0].replace("\0", "")


def active_lines(text: Text) -> set[int]:
    """Numbers of the lines of kernels/FILE.cl that the preprocessor keeps for a text's options."""
    own_text = (KERNELS / f"{text.file}.cl").read_text()
    shared = "\n".join(f'#include "{part.name}"' for part in parts_of(text.file)[:-1])
    marked = f'{text.options}\n{shared}\n# 1 "own"\n{own_text}'
    flags = ["-x", "cl", "-cl-std=CL1.2", "-target", "spir64", "-E", "-I", str(KERNELS), "-"]
    flags += ["-DCPU"] if text.cpu else []
    done = subprocess.run(
        [str(clang()), *flags], input=marked, capture_output=True, text=True, timeout=_TIMEOUT_S
    )
    kept, own, line = set(), False, 0
    for row in done.stdout.splitlines():
        if marker := re.match(r'# (\d+) "(.*?)"', row):
            own, line = marker[2] == "own", int(marker[1])
            continue
        if own and row.strip():
            kept.add(line)
        line += 1
    return kept


def branches(file: str) -> list[tuple[str, int, int]]:
    """(condition, first line, last line) of each branch of kernels/FILE.cl that holds code."""
    lines = (KERNELS / f"{file}.cl").read_text().splitlines()
    found: list[tuple[str, int, int]] = []
    stack: list[tuple[str, int]] = []
    for number, line in enumerate(lines, start=1):
        word = re.match(r"\s*#\s*(if|ifdef|ifndef|elif|else|endif)\b", line)
        if word is None:
            continue
        if word[1] in ("elif", "else", "endif"):
            condition, first = stack.pop()
            found.append((condition, first, number - 1))
        if word[1] != "endif":
            outer = stack[-1][0] + " and " if stack else ""
            stack.append((outer + line.strip(), number + 1))
    code = set(_code_lines(lines))
    return [(c, a, b) for c, a, b in found if code & set(range(a, b + 1))]


def _code_lines(lines: list[str]) -> Iterator[int]:
    """Numbers of the lines that are neither empty, comments, directives nor parts of macros."""
    in_macro = False
    for number, line in enumerate(lines, start=1):
        directive = in_macro or line.lstrip().startswith("#")
        in_macro = directive and line.rstrip().endswith("\\")
        if not directive and line.strip() and not line.lstrip().startswith("//"):
            yield number
