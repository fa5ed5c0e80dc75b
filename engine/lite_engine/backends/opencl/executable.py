"""A segment on an OpenCL device: memory assigned, kernels built, arguments set once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from lite_messages import tr

from ... import settings
from ...errors import BackendUnavailableError
from ...plan import PlanTensor, Segment, Step
from ...progress import tell
from .. import Compiling, Executable, LayersRefused, Measured, Recovering, StepTime
from . import persistent
from .device import Device, check_process
from .enqueue import Refused, noted, span
from .kernels import KernelFailed, KernelMaker, enqueue, kind_of, seconds_of
from .launch import place
from .persistent import Part, Persistent
from .selfcheck import disagreement
from .sharing import share
from .transfers import Download, Upload
from .ways import Choice, NoWayLeft, Ways

#: Rounds of one way while tuning, of which the fastest counts, and runs of a round: events would
#: add some µs to every call, and more between two.
_TUNING_ROUNDS, _TUNING_RUNS = 4, 16


class OpenCLExecutable(Executable, Recovering, Compiling):
    """Enqueues a segment's kernels in order. Crossing device tensors are OpenCL buffers.

    The first run waits for every step, so that one that fails is known and computed another way
    (ways.py); with LITE_CHECK=1 it compares each with the reference, too,
    unless a launch of its class has passed on this device before.
    """

    def __init__(self, segment: Segment, device: Device, effort: str = "none") -> None:
        """`effort` (a key of tuning.EFFORTS) measures what the tuning table does not know.

        Raises LayersRefused for layers that cannot run on the device, BackendUnavailableError when
        there is not enough memory for the others.
        """
        self.plan = segment.plan
        self.device = device
        self.effort = effort
        self._given: dict[int, Any] = {}
        self._host: dict[int, np.ndarray] = {}
        self._uploads: dict[int, Upload] = {}
        self._downloads: dict[int, Download] = {}
        self._wanted: set[int] = set()
        self._taps: dict[int, np.ndarray] = {}
        self._times: list[StepTime] | None = None
        self._proven = False
        self._persistent: Persistent | None = None
        self._alone: list[Part] = []  # what a run enqueues, once it is proven
        self._compiled: list[tuple[str, float, float]] = []
        with self._driver():
            self._buffers = self._assign()
            self._steps = self._ways()

    # ---- memory

    def _assign(self) -> dict[int, Any]:
        """A buffer for each storage on the device; the arena's are reused by lifetime. A weight's
        is made when a launch reads it as it is (KernelMaker): most are packed."""
        numbers, sizes = share(self.plan, persistent.possible(self.device))
        computed = {i: n for i, n in numbers.items() if self.plan.tensors[i].data is None}
        made = {n: self.device.buffer(sizes[n]) for n in sorted(set(computed.values()))}
        return {index: made[number] for index, number in computed.items()}

    # ---- kernels

    def _ways(self) -> list[Ways]:
        """Every step with its kernels built. Raises LayersRefused with all layers that cannot."""
        maker = KernelMaker(self.device, self.plan, self._buffers)
        made = [Ways(step, self.plan, self.device, maker) for step in self.plan.steps]
        steps = [ways for ways in made if ways.step.op != "Copy"]
        refused: dict[str, str] = {}
        missing = self._missing(steps)
        count = len(missing)
        for ways in steps:
            if self.effort != "none" and self._tune(ways):
                ways.launches_known = None
                self.device.tuning.save()
            before, start = self.device.programs.compiled, time.perf_counter()
            try:
                ways.build()
            except LayersRefused as error:
                refused.update(error.layers)
            if self.device.programs.compiled > before:
                self._compiled.append((ways.step.name, start, time.perf_counter()))
            built = {(k.launch.file, k.launch.options) for k in ways.kernels}
            if missing & built:
                missing -= built
                tell(tr("compiling kernels"), count - len(missing), count)
        if missing:  # what failed was not built
            tell(tr("compiling kernels"), count, count)
        if refused:
            raise LayersRefused(refused)
        return made

    def _missing(self, steps: Sequence[Ways]) -> set[tuple[str, str]]:
        """Programs (file, options) of the preferred ways that this process has not built yet."""
        found: set[tuple[str, str]] = set()
        for ways in steps:
            with suppress(NoWayLeft):
                ways.launches_known = ways.launches(ways.choice)
                found |= {(x.file, x.options) for x in ways.launches_known}
        return {key for key in found if not self.device.programs.has(*key)}

    def _tune(self, ways: Ways) -> bool:
        """Measures the ways to compute a step, on whatever its buffers hold."""

        def seconds(way: str) -> float:
            try:
                kernels = ways.maker.make(ways.launches(replace(choice, forced=way)))
                return seconds_of(self.device, kernels, _TUNING_RUNS, _TUNING_ROUNDS)
            except (self.device.cl.Error, KernelFailed):
                return float("inf")  # a way that this device cannot go is not the fastest

        tuning = self.device.tuning
        choice = Choice(tuning)
        ways.launches(choice)
        offered = list(map(str, choice.offered))
        before = str(tuning.pick(choice.size, choice.offered)) if offered else ""
        taken = tuning.measure(self.effort, choice.size, offered, seconds)
        if taken:
            now = tuning.table.get(choice.size, before)
            tuning.measured.append(Measured(ways.step.name, choice.size, before, now, taken))
        return bool(taken)

    # ---- running

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Raises LayersRefused for layers that no way on the device computes after all,
        BackendUnavailableError when the device is lost."""
        self._given = dict(zip(self.plan.inputs, inputs, strict=True))
        self._times = None
        with self._driver():
            while not (self._run() if self._proven else self._prove()):
                pass
        for index in self._wanted & set(self._host):
            self._taps[index] = self._host[index]
        return [
            self._host[i] if self.plan.tensors[i].space == "host" else self._buffers[i]
            for i in self.plan.outputs
        ]

    def _run(self) -> bool:
        """One run; False when a kernel failed, and the next one finds out which."""
        self._host = {}
        self._take_over()
        together = None if self._wanted else self._persistent
        began = time.perf_counter()
        try:
            if not self._wanted:
                self._enqueue_parts(together.parts if together else self._alone)
            for ways in self._steps if self._wanted else ():
                self._enqueue_parts(ways.parts)
                self._keep(ways.step)
            self.finish()
        except (KernelFailed, self.device.cl.Error):
            self._proven = False
        if together and together.gave_up(time.perf_counter() - began):
            self._persistent = None
            return False
        return self._proven

    def _prove(self) -> bool:
        """One run that waits for every step; False when it has to be repeated, because a step
        failed and another way to compute it stands ready."""
        self._host = {}
        self._take_over()
        for number, ways in enumerate(self._steps, start=1):
            try:
                self._prove_step(ways)
                tell(tr("first run of layers"), number, len(self._steps))
            except KernelFailed as error:
                ways.give_up(error)
                ways.build()
                return False
            self._keep(ways.step)
        self.finish()
        self.device.verdicts.save()
        self._proven = True
        self._alone = self._parts()
        self._persistent = self._together() if persistent.possible(self.device) else None
        return True

    def _together(self) -> Persistent | None:
        """What does all launches in fewer calls, if that is faster."""

        def run(parts: Sequence[Part]) -> None:
            self._take_over()
            self._enqueue_parts([p for p in parts if not isinstance(p, Step) or self._is_upload(p)])

        parts = persistent.gathered(self._parts(), self._buffer_of, self._is_upload)
        computed = [b for i, b in self._buffers.items() if self.plan.tensors[i].data is None]
        return persistent.tried(self.device, parts, computed, run)

    def _is_upload(self, copy: Step) -> bool:
        return self.plan.tensors[copy.outputs[0]].space != "host"

    def _buffer_of(self, copy: Step) -> Any:
        """The device's end of a copy."""
        if self._is_upload(copy):
            return self._buffers[copy.outputs[0]]
        return self._device_buffer(self.plan.root(copy.inputs[0]))

    def _prove_step(self, ways: Ways) -> None:
        """Raises KernelFailed, also where LITE_CHECK=1 finds numbers that are not the
        reference's."""
        if ways.step.op == "Copy":
            return self._enqueue_parts(ways.parts)
        self.finish()  # what the copies before it raise is not the kernel's
        checked = settings.get("LITE_CHECK") and not ways.checked
        given = self._values(ways.step.inputs) if checked else {}
        if checked:
            self._spoil(ways.step)
        self._enqueue_parts(ways.parts)
        try:
            self.finish()
        except self.device.cl.Error as error:
            if not ways.kernels:
                raise
            raise KernelFailed(kind_of(error.code), error, ways.kernels[-1].launch) from None
        if checked and ways.kernels:
            said = disagreement(ways.step, self.plan, given, self._values(ways.step.outputs))
            if said:
                raise KernelFailed("numbers", said, ways.kernels[-1].launch)
            self.device.verdicts.approve(ways.cases)

    def _parts(self) -> list[Part]:
        return [part for ways in self._steps for part in ways.parts]

    def _enqueue_parts(self, parts: Sequence[Part]) -> None:
        for part in parts:
            if isinstance(part, Step):
                self._copy(part)
            else:
                enqueue(self.device, part)

    def _spoil(self, step: Step) -> None:
        """Overwrites what only this step writes, so that numbers it leaves out are not those of an
        earlier run."""
        read = self._roots(step.inputs)
        others = [i for other in self.plan.steps if other is not step for i in other.outputs]
        for root in self._roots(step.outputs) - read - self._roots(others):
            buffer = self._buffers[root]
            spoilt = np.full(buffer.size, 0xFF, np.uint8)
            self.device.cl.enqueue_copy(self.device.queue, buffer, spoilt)

    def _roots(self, indices: Sequence[int]) -> set[int]:
        return {self.plan.root(i).index for i in indices if i >= 0}

    def _keep(self, step: Step) -> None:
        """What a step wrote and somebody wants to see."""
        for index in step.outputs:
            if index in self._wanted and step.op != "Copy":
                self._taps[index] = self._read(index)

    def _values(self, indices: Sequence[int]) -> dict[int, np.ndarray]:
        """Tensors of the device as they are now, in physical order; constants are known."""
        named = [i for i in indices if i >= 0 and self.plan.tensors[i].data is None]
        return {i: self._read(i) for i in named}

    def refusals(self) -> dict[int, str]:
        return {ways.step.index: ways.reason for ways in self._steps if ways.failures}

    @contextmanager
    def _driver(self) -> Iterator[None]:
        """One run at a time on the device; what its driver refuses has one face."""
        check_process()
        try:
            with self.device.lock:
                yield
        except (Refused, self.device.cl.Error) as error:
            name = self.device.report.name
            said = tr("{report} failed while running: {error}", report=name, error=error)
            raise BackendUnavailableError(said) from None

    def _take_over(self) -> None:
        """What an earlier segment left on the device, into the buffers that the kernels read."""
        for index, source in self._given.items():
            own = self._buffers.get(index)
            if own is not None and self.plan.tensors[index].space == "opencl":
                self.device.cl.enqueue_copy(self.device.queue, own, source)

    def enqueue(self) -> None:
        """The kernels alone, on whatever the buffers hold (benchmarks)."""
        parts = self._persistent.parts if self._persistent else self._parts()
        self._enqueue_parts([p for p in parts if not isinstance(p, Step)])

    def finish(self) -> None:
        self.device.queue.finish()

    def seconds_of(self, name: str, runs: int) -> float:
        """Seconds of the named step among its like, on whatever the buffers hold (benchmarks)."""
        ways = next(w for w in self._steps if name in (w.step.name, w.step.kernel))
        return seconds_of(self.device, ways.kernels, runs)

    def _copy(self, step: Step, queue: Any = None) -> Any:
        """Between host and device, without waiting; the event of a copy on a `queue` that notes
        times."""
        target = self.plan.tensors[step.outputs[0]]
        root = self.plan.root(step.inputs[0])
        if target.space == "host":
            down = self._downloads.get(target.index)
            buffer = self._device_buffer(root)  # it may be an earlier segment's
            if down is None or down.buffer is not buffer:
                down = self._downloads[target.index] = Download(self.device, target, buffer)
            array, event = down.timed(queue) if queue else (down.enqueue(), None)
            self._host[target.index] = array
            return event
        up = self._uploads.get(target.index)
        if up is None:
            buffer = self._buffers[target.index]
            up = self._uploads[target.index] = Upload(self.device, target, buffer)
        given = self._given[root.index] if root.data is None else root.data
        array, event = up.timed(queue, given) if queue else (up.enqueue(given), None)
        self._host[-1 - target.index] = array  # alive until the queue has finished
        return event

    def _device_buffer(self, root: PlanTensor) -> Any:
        return self._given.get(root.index, self._buffers.get(root.index))

    def _read(self, index: int) -> np.ndarray:
        tensor, root = self.plan.tensors[index], self.plan.root(index)
        width = tensor.dims[-1] if tensor.dims else 1
        step, at = place(tensor, width)
        out = np.empty((tensor.size // max(width, 1), step), tensor.dtype.np)
        self.device.cl.enqueue_copy(self.device.queue, out, self._buffers[root.index])
        return np.ascontiguousarray(out[:, at : at + width]).reshape(tensor.dims)

    # ---- looking inside

    def times(self) -> list[StepTime]:
        """From the device's own events. Noting them slows a run down, so the last run is repeated
        with its inputs, and only when somebody asks."""
        if self._times is None:
            with self._driver():
                self._times = self._timed_run()
        return self._times

    def _timed_run(self) -> list[StepTime]:
        queue, events = self.device.timed_queue, []
        for ways in self._steps:
            own = [noted(self.device.cl, queue, k.call) for k in ways.kernels]
            ready = ways.step.op == "Copy" and self._given
            events.append([self._copy(ways.step, queue)] if ready else own)
        queue.finish()
        spans = [[span(e) for e in own] for own in events]
        first = min((start for own in spans for _, start, _ in own if start), default=0)
        return [
            self._time(variant, [(max(q - first, 0), max(a - first, 0), max(b - first, 0))
                                 for q, a, b in own])
            for own, variant in zip(spans, self._variants, strict=True)
        ]  # fmt: skip

    def _time(self, variant: str, launches: list[tuple[int, int, int]]) -> StepTime:
        start = min([a for _, a, _ in launches], default=0)
        end = max([b for *_, b in launches], default=0)
        return StepTime(start, end, variant, launches_ns=tuple(launches))

    def compiled(self) -> list[tuple[str, float, float]]:
        first = self._compiled[0][1] if self._compiled else 0.0
        return [(name, 1e3 * (a - first), 1e3 * (b - first)) for name, a, b in self._compiled]

    @cached_property
    def _variants(self) -> list[str]:
        """Full names of the steps' kernels: what each reads, what it is, where it runs."""
        tensors, steps = self.plan.tensors, [ways.step for ways in self._steps]
        read = [next(i for i in (*s.inputs, *s.outputs) if i >= 0) for s in steps]
        return [f"{tensors[i].dtype}_{s.kernel}__opencl" for i, s in zip(read, steps)]

    def tap(self, tensors: Sequence[int]) -> None:
        self._wanted, self._taps = set(tensors), {}

    def tapped(self, tensor: int) -> np.ndarray:
        return self._taps[tensor]

    def memory(self) -> dict[str, int]:
        own = {id(b): b.size for b in self._buffers.values()}
        constants = {
            id(a): a.size
            for ways in self._steps
            for kernel in ways.kernels
            for a in kernel.args
            if hasattr(a, "size") and not isinstance(a, np.generic) and id(a) not in own
        }
        return {"device": sum(own.values()), "packed": sum(constants.values())}
