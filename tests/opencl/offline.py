"""OpenCL compilers that need no device: clang's front ends, and PTX through NVIDIA's assembler.

Results are kept by content under build/opencl-texts: a text that has not changed is not compiled
again. Programs are checked as what drivers read without a `-cl-std` option, OpenCL C 1.2, and in
the long run as 2.0 and 3.0 too.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from lite_engine.backends.opencl.programs import KERNELS, parts_of

from tests.opencl.texts import Text

T = TypeVar("T")
_CACHE = Path(__file__).parents[2] / "build" / "opencl-texts"
_LIBCLC = "nvptx64--nvidiacl.bc"
#: Indices are ints, of size_t from get_global_id: no grid has 2^31 items. A kernel has one set of
#: parameters for all options: one that some options do not read is reported, not refused.
_WARNINGS = (
    "-Wall", "-Wextra", "-Werror", "-Wmacro-redefined", "-Wconversion", "-Wdouble-promotion",
    "-Wno-shorten-64-to-32", "-Wno-sign-conversion", "-Wno-error=unused-parameter",
    "-Wno-unused-but-set-parameter", "-Wno-unused-function",
)  # fmt: skip
#: The oldest chip with all instructions of matrix units and of copies into local memory, and the
#: oldest that is assembled for at all; newer ones run what is made for them.
_CHIP, _OLDEST = "sm_80", "sm_70"
_UNREAD = re.compile(r"(\d+)\.cl:(\d+):\d+: warning: unused parameter '(\w+)'")
#: The line in which a function begins: `void name(` of a kernel, `static inline …` of others.
_SIGNATURE = re.compile(r"^(?:kernel )?(?:void|static inline \S+) \w+\(")
#: Programs that one process compiles.
_BATCH = 32
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
    """NVIDIA's assembler, of pip's nvidia-cuda-nvcc-cu12 (which knows the oldest chip) or CUDA."""
    packaged = Path(sysconfig.get_path("purelib"), "nvidia/cuda_nvcc/bin/ptxas")
    return str(packaged) if packaged.is_file() else shutil.which("ptxas")


def missing() -> str | None:
    """What this machine lacks, None where everything is there."""
    if clang() is None:
        return "no clang; sudo apt-get install clang-15"
    if libclc() is None:
        return "no libclc; sudo apt-get install libclc-15-dev"
    return None if ptxas() else "no ptxas; pip install --no-deps nvidia-cuda-nvcc-cu12"


def front_ends(text: Text) -> tuple[str, ...]:
    """Targets whose front end must take a text: NVIDIA's own for PTX, otherwise what the compilers
    of Intel, ARM and Qualcomm start from, and AMD's for a GPU of any maker."""
    if text.file == "conv_mma":
        return ("nvptx64-nvidia-nvcl",)
    if text.device_class == "nvidia":
        return ("nvptx64-nvidia-nvcl",)
    return ("spir64", "amdgcn-amd-amdhsa") if text.device_class == "gpu" else ("spir64",)


def check(jobs: Iterable[tuple[str, str, bool]], standard: str = "CL1.2") -> list[Result]:
    """Whether front ends take programs without a warning. A job is a program, the target, and
    whether the program is for a CPU."""
    wanted = [(program, _front_end(target, cpu, standard)) for program, target, cpu in jobs]
    found = {(program, flags): _known(program, flags) for program, flags in wanted}
    missing: dict[tuple[str, ...], list[str]] = {}
    for (program, flags), result in found.items():
        if result is None:
            missing.setdefault(flags, []).append(program)
    batches = [
        (programs[i : i + _BATCH], flags)
        for flags, programs in missing.items()
        for i in range(0, len(programs), _BATCH)
    ]
    for (programs, flags), results in zip(batches, many(batches, _compiled), strict=True):
        for program, result in zip(programs, results, strict=True):
            found[program, flags] = _keep(result, program, flags)
    return [found[job] for job in wanted]  # type: ignore[misc]


@lru_cache
def _front_end(target: str, cpu: bool, standard: str) -> tuple[str, ...]:
    """The command that clang's driver runs for a file, without the file: unlike the driver it takes
    many, and most of the time of a process goes into loading the compiler."""
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
    _, said = _run([str(clang()), "-###", "-x", "cl", *flags, "-"])
    (line,) = [x for x in said.splitlines() if '"-cc1"' in x]
    command = shlex.split(line)[:-1]
    name = command.index("-main-file-name")
    return (*command[:name], *command[name + 2 :])


def assemble(program: str, chip: str = _CHIP) -> Result:
    """The program as machine code of an NVIDIA chip; the report has registers, spills, memory."""
    to_ptx, to_chip = _ptx_flags(_CHIP if chip >= _CHIP else _OLDEST), (f"-arch={chip}", "-v")
    key = (*to_ptx, *to_chip)
    return _known(program, key) or _keep(_assembled(program, to_ptx, to_chip), program, key)


def _assembled(program: str, to_ptx: tuple[str, ...], to_chip: tuple[str, ...]) -> Result:
    made = _ptx(program, to_ptx)
    if made.error:
        return made
    with tempfile.TemporaryDirectory() as folder:
        ptx, binary = Path(folder) / "program.ptx", Path(folder) / "program.cubin"
        ptx.write_text(made.report)
        status, said = _run([str(ptxas()), *to_chip, "-o", str(binary), str(ptx)])
    return Result(_first_error(said)) if status else Result("", said)


def _ptx_flags(chip: str) -> tuple[str, ...]:
    """Clang's, for what ptxas reads: the same for this chip and all newer ones."""
    flags = ["-cl-std=CL1.2", "-target", "nvptx64-nvidia-nvcl", "-O3", "-S", "-Dasm=__asm__"]
    for option in ("-target-feature", "+ptx75", "-target-cpu", chip, "-finclude-default-header",
                   "-cl-ext=+cl_khr_fp16", "-mlink-builtin-bitcode", str(libclc())):  # fmt: skip
        flags += ["-Xclang", option]
    # libclc calls exp2f, which NVIDIA's target has no code for; the driver makes this instruction.
    return (*flags, "-w", "-cl-mad-enable", "-Dnative_exp2(x)=__nvvm_ex2_approx_ftz_f(x)")


def _ptx(program: str, flags: tuple[str, ...]) -> Result:
    """The text for ptxas as the report."""
    if known := _known(program, flags):
        return known
    with tempfile.TemporaryDirectory() as folder:
        file, made = Path(folder) / "program.cl", Path(folder) / "program.ptx"
        file.write_text(program)
        status, said = _run([str(clang()), "-x", "cl", *flags, "-o", str(made), str(file)])
        result = Result(_first_error(said)) if status else Result("", made.read_text())
    return _keep(result, program, flags)


def many(jobs: Iterable[tuple], work: Callable[..., T]) -> list[T]:
    """`work(*job)` of every job, on all cores, in order."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda job: work(*job), jobs))


def _place(program: str, flags: Iterable[str]) -> Path:
    key = hashlib.sha256("\0".join([_versions(), *flags, program]).encode()).hexdigest()
    return _CACHE / key[:2] / key


def _known(program: str, flags: Iterable[str]) -> Result | None:
    path = _place(program, flags)
    return Result(*path.read_text().split("\0", 1)) if path.is_file() else None


def _keep(result: Result, program: str, flags: Iterable[str]) -> Result:
    path = _place(program, flags)
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


def _compiled(programs: list[str], flags: tuple[str, ...]) -> list[Result]:
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / f"{i}.cl" for i in range(len(programs))]
        for file, program in zip(files, programs, strict=True):
            file.write_text(program)
        status, said = _run([*flags, *map(str, files)])
    if status and len(programs) > 1:  # one may keep the others from being read
        return [result for p in programs for result in _compiled([p], flags)]
    if status:
        return [Result(_first_error(said))]
    unread: list[list[str]] = [[] for _ in programs]
    for file, line, parameter in _UNREAD.findall(said):
        lines = programs[int(file)].splitlines()[: int(line)]
        unread[int(file)].append(f"{_function(lines)}({parameter})")
    return [Result("", "\n".join(x)) for x in unread]


def _function(lines: list[str]) -> str:
    """The last function that begins in these lines."""
    return re.findall(r"(\w+)\(", "\n".join(x for x in lines if _SIGNATURE.search(x)))[-1]


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
