"""Cases on the backends of this machine: every instruction set, emulated AArch64, WebAssembly,
OpenCL."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from .._native import host_arch, runner_path
from ..backends import get_backend
from ..backends.cpu import CpuBackend, native
from ..backends.cpu.executable import CpuExecutable
from ..cases import Case
from ..devices.backend import DeviceBackend
from ..devices.emulated import EmulatedDevice, emulator, emulator_usability
from ..devices.wasm import WasmDevice, runner_command, wasm_usability
from ..errors import LiteError
from ..ir import DType, Graph, Value
from ..ir.bfloat16 import bf16_to_f32
from ..ops import differs, get_op
from ..plan import Segment, make_plan
from ..runtime.execute import Execution

#: Relative L2 error of a kernel by what it computes in. Sums of a few hundred products, each
#: rounded to 8 (bf16) or 11 (fp16) bits of which some cancel.
_TOLERANCE = {DType.F32: 1e-5, DType.F16: 2e-2, DType.BF16: 2e-2}
#: Of kernels that compute wider and round their results to fp16, once where the reference does it
#: at every step.
_STORED_F16 = 2e-3
#: Cases in one program: planning memory takes the square of their number.
_TOGETHER = 250


@dataclass(frozen=True)
class Place:
    """Where kernels run: a backend on this machine or on an emulated one. `runs` tells whether an
    (operator, kernel) is there."""

    name: str
    backend: str
    runs: Callable[[str, str], bool]
    cpu: CpuBackend | DeviceBackend | None = None


class Result(NamedTuple):
    """`error` is empty when the kernel agrees with the reference."""

    case: Case
    place: str
    error: str


class _OneIsa(CpuBackend):
    def __init__(self, isa: str) -> None:
        self.isa = isa

    def compile(self, segment: Segment, *, threads: int) -> CpuExecutable:
        return CpuExecutable(segment, threads=threads, max_isa=self.isa)


def places() -> Iterator[Place]:
    """What is usable here."""
    if CpuBackend().usability().usable:
        there = native.kernels()
        for isa in native.isas():
            yield Place(isa, "cpu", lambda op, name: (op, name) in there, _OneIsa(isa))
    if emulator_usability().usable and host_arch() != "aarch64":
        arm = DeviceBackend(EmulatedDevice())
        command = (str(emulator()), str(runner_path("aarch64")))
        yield _elsewhere("emulated ARM", command, arm)
    if wasm_usability().usable:
        yield _elsewhere("wasm", tuple(runner_command([])), DeviceBackend(WasmDevice()))
    if get_backend("opencl").usability().usable:
        yield Place("opencl", "opencl", lambda op, name: True)


def _elsewhere(name: str, runner: tuple[str, ...], backend: DeviceBackend) -> Place:
    return Place(name, "cpu", lambda op, kernel: (op, kernel) in _kernels(runner), backend)


@lru_cache(maxsize=2)
def _kernels(runner: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    """(operator, kernel) pairs of a runner, by the command that starts it."""
    listed = subprocess.run([*runner, "--kernels"], capture_output=True, text=True, check=True)
    rows = [line.split() for line in listed.stdout.splitlines()]
    return frozenset((op, name) for _, name, *ops in rows for op in ops)


def run(cases: Sequence[Case], place: Place, *, threads: int = 1) -> list[Result]:
    """Every case on a place, many in one program. Where that fails as a whole, in halves."""
    here = [c for c in cases if place.runs(c.kernel.op, c.kernel.name)]
    if len(here) > _TOGETHER:
        parts = (here[i : i + _TOGETHER] for i in range(0, len(here), _TOGETHER))
        return [result for part in parts for result in run(part, place, threads=threads)]
    if not here:
        return []
    try:
        return _run(here, place, threads)
    except LiteError as error:
        if len(here) == 1:
            return [Result(here[0], place.name, str(error))]
        halves = (here[: len(here) // 2], here[len(here) // 2 :])
        return [result for half in halves for result in run(half, place, threads=threads)]


def _run(cases: Sequence[Case], place: Place, threads: int) -> list[Result]:
    graph = _joined(cases)
    names = [node.name for node in graph.nodes]
    plan = make_plan(
        graph,
        place.backend,
        tuning={name: case.kernel.name for name, case in zip(names, cases)},
        overrides={n: c.precision for n, c in zip(names, cases) if c.precision != "fp32"},
    )
    steps = {step.name: step for step in plan.steps}
    outputs = iter(
        Execution(plan, threads=threads, instead=place.cpu).run(
            [a for c in cases for a in c.inputs]
        )
    )
    results = []
    for name, case in zip(names, cases):
        made = [next(outputs) for _ in case.wanted]
        step = steps[name]
        if step.kernel != case.kernel.name:
            error = f"planned {step.backend} {step.kernel}: {step.why}"
        else:
            pairs = zip(case.node.outputs, made, case.wanted)
            error = next(filter(None, (_differs(case, *pair) for pair in pairs)), "")
        results.append(Result(case, place.name, error))
    return results


def _joined(cases: Sequence[Case]) -> Graph:
    """A graph of all their nodes, which do not know each other."""
    graph = Graph("cases")
    for number, case in enumerate(cases):
        values: list[Value | None] = []
        for i, old in enumerate(case.node.inputs):
            if old is None:
                values.append(None)
                continue
            new = Value(f"{number}.{i}", old.dtype, old.shape, const=old.const)
            values.append(new)
            if not new.is_const:
                graph.inputs.append(new)
        node = graph.add(
            case.node.op, values, case.node.attrs, name=f"case {number}",
            outputs=len(case.node.outputs),
        )  # fmt: skip
        graph.outputs += node.outputs
    return graph


def _differs(case: Case, output: Value, made: np.ndarray, wanted: np.ndarray) -> str:
    """How an output differs from the reference's; empty when it agrees."""
    if made.shape != wanted.shape:
        return f"shape {made.shape} instead of {wanted.shape}"
    if case.precision == "fp16" and wanted.dtype == np.float32:
        with np.errstate(over="ignore"):
            wanted = wanted.astype(np.float16).astype(np.float32)
    if made.dtype != wanted.dtype:
        return f"{made.dtype} instead of {wanted.dtype}"
    if output.dtype is DType.BF16:
        return differs(bf16_to_f32(made), bf16_to_f32(wanted), _TOLERANCE[DType.BF16])
    if output.dtype is DType.F16:
        return differs(made, wanted, _STORED_F16)
    exact = get_op(case.node.op).tolerance == 0
    computed = case.kernel.precision or (DType.F16 if case.precision == "fp16" else DType.F32)
    return differs(made, wanted, 0.0 if exact else _TOLERANCE[computed])
