"""Every kernel that a device could use, run on small cases and compared with the NumPy reference.

A row of the result is a kernel, the type of what it reads, and one of its ways; its cases are the
launches that the builders make of `cases`, each program on each class of sizes once. What is found
goes into the device's verdicts: what failed is not used on it from then on, what failed before and
is right now is used again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import BackendUnavailableError
from ...ir import DType, Graph
from ...plan import Plan, Step, make_plan
from ..reference import read_tensor, run_step
from .cases import cases, large
from .device import Device, runs_trivially
from .kernels import KernelFailed, KernelMaker, enqueue, kind_of, seconds_of
from .launch import Launch
from .roofs import Roofs, measure
from .selfcheck import disagreement
from .tuning import Tuning
from .verdicts import Failure, case_key, detail_of
from .ways import Choice, Ways, family_of, program_key

#: From the best to the worst.
VERDICTS = ("ok", "slow", "wrong", "failed")
#: A case is slow when it takes so many times what its launches, bytes and operations need at the
#: device's own measured rates. Small cases fill no device: a kernel in order reaches a tenth.
SLOW = 30
#: Runs of a round, and rounds; another program that takes the device meanwhile makes a case seem
#: slow, which is therefore timed once more, in rounds enough to find it alone.
_RUNS, _ROUNDS, _ROUNDS_OF_SLOW = 16, 3, 30
_MEGABYTES = 64
_PRECISIONS = ("fp32", "fp16")
#: Told the next kernel, how many are done, and how many there are.
Note = Callable[[str, int, int], None]
#: Told the program, kernel and way that run next.
Begin = Callable[[str, str, str], None]


@dataclass
class KernelVerdict:
    """The worst verdict of `cases` launches, with its reason in `detail`. `seconds` and
    `least_seconds` (what the measured rates allow) are those of the case that is furthest from
    what it could be, 0 where none was timed."""

    kernel: str
    dtype: str
    way: str
    verdict: str = "ok"
    cases: int = 0
    detail: str = ""
    seconds: float = 0.0
    least_seconds: float = 0.0

    def add(self, verdict: str, detail: str = "") -> None:
        self.cases += 1
        if VERDICTS.index(verdict) > VERDICTS.index(self.verdict):
            self.verdict, self.detail = verdict, detail

    def timed(self, seconds: float, least: float) -> None:
        if not self.seconds or seconds * self.least_seconds > self.seconds * least:
            self.seconds, self.least_seconds = seconds, least


def roofs_of(device: Device) -> Roofs:
    """What a case can need at least, timed as the cases are, on a device with little memory too.

    Raises BackendUnavailableError when the device fails.
    """
    cl = device.cl
    megabytes = min(_MEGABYTES, device.device.max_mem_alloc_size >> 22)
    try:
        return measure(device, items=1 << 16, megabytes=max(megabytes, 1), calls=_RUNS)
    except cl.Error as error:
        raise BackendUnavailableError(
            tr("failed while its peak rates were measured: {error}", error=error),
            where=device.report.name,
        ) from None


def check_device(
    device: Device,
    roofs: Roofs,
    *,
    kernels: Sequence[str] = (),
    note: Note = lambda kernel, done, total: None,
    begin: Begin = lambda program, kernel, way: None,
) -> list[KernelVerdict]:
    """Checks these kernels (all by default), those aside that have crashed a process before.

    Raises BackendUnavailableError when the device is lost.
    """
    work = {name: [*graphs, *large().get(name, [])] for name, graphs in cases().items()}
    check = _Check(device, roofs, begin)
    names = [name for name in work if not kernels or name in kernels]
    with device.lock:
        for done, name in enumerate(names):
            note(name, done, len(names))
            for graph in work[name]:
                for precision in _PRECISIONS:
                    check.graph(graph, precision)
    device.verdicts.save()
    return sorted(check.rows.values(), key=lambda row: (row.kernel, row.dtype, row.way))


@dataclass
class _Check:
    device: Device
    roofs: Roofs
    begin: Begin
    rows: dict[tuple[str, str, str], KernelVerdict] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    def graph(self, graph: Graph, precision: str) -> None:
        plan = make_plan(graph, "opencl", precision=precision)
        for step, given in _with_inputs(plan):
            if step.backend == "opencl" and step.op != "Copy":
                self._step(step, plan, given)

    def _step(self, step: Step, plan: Plan, given: Mapping[int, np.ndarray]) -> None:
        """In one way of each family, whose tiles differ in size alone: those that fail fail
        together (`Variant.family`)."""
        choice = Choice(Tuning(Path()))
        buffers = self._buffers(step, plan, given)
        ways = Ways(step, plan, self.device, KernelMaker(self.device, plan, buffers))
        ways.launches(choice)
        for name in _one_of_each(choice.offered):
            ways.choice = replace(choice, forced=name)
            launches = ways.launches(ways.choice)
            new = {case_key(program_key(x), x) for x in launches} - self._seen
            if new:
                self._seen |= new
                self._way(ways, launches, given, buffers)

    def _way(
        self, ways: Ways, launches: list[Launch], given: Mapping[int, np.ndarray], buffers: Any
    ) -> None:
        step, plan, verdicts = ways.step, ways.plan, self.device.verdicts
        read = plan.tensors[next(i for i in (*step.inputs, *step.outputs) if i >= 0)].dtype
        key = step.kernel, read.value, ways.choice.variant
        row = self.rows.setdefault(key, KernelVerdict(*key))
        programs = [program_key(launch) for launch in launches]
        known = next(filter(None, map(verdicts.failures.get, programs)), None)
        if known is not None and known.kind == "crash":
            row.add("failed", f"{known.what} ({step.op}): {known.detail}")
            return
        self.begin(programs[0], row.kernel, row.way)
        try:
            ways.kernels = ways.maker.make(launches)
            self._fill(step, plan, given, buffers)
            self._run(ways)
            made = {i: self._read(plan, i, buffers) for i in step.outputs if i >= 0}
            said = disagreement(step, plan, given, made)
            if said:
                raise KernelFailed("numbers", said, launches[-1])
            least = self._least(step, plan, read, launches)
            seconds = seconds_of(self.device, ways.kernels, _RUNS, _ROUNDS)
            if seconds > SLOW * least:
                seconds = seconds_of(self.device, ways.kernels, _RUNS, _ROUNDS_OF_SLOW)
        except KernelFailed as error:
            self._failed(row, error, step)
            return
        verdicts.approve(ways.cases)
        verdicts.forget(programs)
        row.timed(seconds, least)
        slow = seconds > SLOW * least
        row.add(
            "slow" if slow else "ok",
            tr("{times:.0f} times longer than the device allows", times=seconds / least),
        )

    def _failed(self, row: KernelVerdict, error: KernelFailed, step: Step) -> None:
        detail = detail_of(error)
        failure = Failure(program_key(error.launch), row.kernel, row.way, error.kind, detail)
        self.device.verdicts.add(failure)
        wrong = error.kind == "numbers"
        row.add("wrong" if wrong else "failed", f"{failure.what} ({step.op}): {detail}")
        lost = runs_trivially(self.device.cl, self.device.context, self.device.queue)
        if lost:
            raise BackendUnavailableError(
                tr("{failure}, and then {lost}", failure=failure, lost=lost),
                where=self.device.report.name,
            )

    def _run(self, ways: Ways) -> None:
        for kernel in ways.kernels:
            enqueue(self.device, kernel)
        try:
            self.device.queue.finish()
        except self.device.cl.Error as error:
            launch = ways.kernels[-1].launch
            raise KernelFailed(kind_of(error.code), error, launch) from None

    def _least(self, step: Step, plan: Plan, read: DType, launches: Sequence[Launch]) -> float:
        """Seconds that a step needs at the device's rates."""
        moved = sum(plan.tensors[i].nbytes for i in (*step.inputs, *step.outputs) if i >= 0)
        half = "fp16" if read is DType.F16 else "fp32"
        busy = self.roofs.least_us(step.flops, moved, half)
        return (busy + len(launches) * self.roofs.empty_kernel_us) / 1e6

    # ---- memory

    def _buffers(self, step: Step, plan: Plan, given: Mapping[int, np.ndarray]) -> dict[int, Any]:
        roots = {plan.root(i) for i in (*step.inputs, *step.outputs) if i >= 0}
        return {root.index: self.device.buffer(root.nbytes, root.data) for root in roots}

    def _fill(
        self, step: Step, plan: Plan, given: Mapping[int, np.ndarray], buffers: Mapping[int, Any]
    ) -> None:
        """Inputs as they are, outputs with what no kernel writes."""
        for i in (i for i in step.outputs if i >= 0):
            buffer = buffers[plan.root(i).index]
            self._write(buffer, np.full(buffer.size, 0xFF, np.uint8))
        for i, array in given.items():
            self._write(buffers[plan.root(i).index], array)

    def _write(self, buffer: Any, array: np.ndarray) -> None:
        self.device.cl.enqueue_copy(self.device.queue, buffer, np.ascontiguousarray(array))

    def _read(self, plan: Plan, index: int, buffers: Mapping[int, Any]) -> np.ndarray:
        tensor = plan.tensors[index]
        out = np.empty(tensor.dims, tensor.dtype.np)
        self.device.cl.enqueue_copy(self.device.queue, out, buffers[plan.root(index).index])
        return out


def _one_of_each(offered: Sequence[object]) -> list[str]:
    """The first way of each family, "" where a kernel has one way only."""
    families = {family_of(way): way for way in reversed(offered)}
    return [str(way) for way in families.values()] or [""]


def _with_inputs(plan: Plan) -> Iterator[tuple[Step, dict[int, np.ndarray]]]:
    """Every step with its computed inputs, in physical order, as the reference has them."""
    rng = np.random.default_rng(5)
    known: dict[int, np.ndarray] = {}
    for index in plan.inputs:
        tensor = plan.tensors[index]
        whole = tensor.dtype.np.kind in "iub"
        drawn = rng.integers(0, 2, tensor.dims) if whole else rng.standard_normal(tensor.dims)
        known[index] = drawn.astype(tensor.dtype.np)
    for step in plan.steps:
        needed = [i for i in step.inputs if i >= 0 and plan.tensors[i].data is None]
        given = {i: read_tensor(plan, i, known) for i in needed}
        yield step, given
        if step.op == "Copy":
            known[step.outputs[0]] = given[step.inputs[0]]
            continue
        for index, array in zip(step.outputs, run_step(plan, step, known), strict=False):
            if index >= 0:
                tensor = plan.tensors[index]
                own = array if step.node is None else tensor.to_physical(array)
                known[index] = np.asarray(own, tensor.dtype.np)
