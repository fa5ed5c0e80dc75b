"""A segment on an OpenCL device: memory assigned, kernels built, arguments set once."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import BackendUnavailableError
from ...ir import DType
from ...plan import PlanTensor, Segment, Step
from .. import Executable, StepTime
from .device import Device
from .enqueue import Call, prepared
from .launch import Image, Launch, Scratch, grouped, place
from .sharing import share
from .steps import launches_of

#: Rounds of one way while tuning, of which the fastest counts, and runs of a round: events would
#: add some µs to every call, and more between two.
_TUNING_ROUNDS, _TUNING_RUNS = 4, 16


@dataclass
class _Kernel:
    """A kernel with its arguments set, and the call that enqueues it. `args` keeps them alive."""

    kernel: Any
    grid: tuple[int, ...]
    group: tuple[int, ...] | None
    call: Call
    args: list[Any]

    @property
    def launch(self) -> tuple[Any, tuple[int, ...], tuple[int, ...] | None]:
        """As pyopencl's own enqueue wants it."""
        return self.kernel, self.grid, self.group


class OpenCLExecutable(Executable):
    """Enqueues a segment's kernels in order. Crossing device tensors are OpenCL buffers."""

    def __init__(self, segment: Segment, device: Device, effort: str = "none") -> None:
        """`effort` (a key of tuning.EFFORTS) measures what the tuning table does not know.

        Raises BackendUnavailableError when memory or a kernel is not to be had.
        """
        self.plan = segment.plan
        self.device = device
        self.effort = effort
        self._scratch: list[Any] = []
        self._images: dict[tuple[int, int, DType], Any] = {}
        self._given: dict[int, Any] = {}
        self._host: dict[int, np.ndarray] = {}
        self._wanted: set[int] = set()
        self._taps: dict[int, np.ndarray] = {}
        self._times: list[StepTime] | None = None
        with self._driver():
            self._buffers = self._assign()
            self._steps = [(step, self._prepare(step)) for step in self.plan.steps]

    # ---- memory

    def _assign(self) -> dict[int, Any]:
        """A buffer for each storage on the device; the arena's are reused by lifetime."""
        numbers, sizes = share(self.plan)
        made = [None] * len(sizes)
        for index, number in numbers.items():
            if made[number] is None:
                data = self.plan.tensors[index].data
                size = sizes[number] if data is None else data.nbytes
                made[number] = self.device.buffer(size, data)
        return {index: made[number] for index, number in numbers.items()}

    # ---- kernels

    def _prepare(self, step: Step) -> list[_Kernel]:
        if step.op == "Copy":
            return []
        if self.effort != "none" and self._tune(step):
            self.device.tuning.save()
        return self._build(step)

    def _build(self, step: Step) -> list[_Kernel]:
        scratch: dict[int, Any] = {}
        launches = launches_of(step, self.plan, self.device.target)
        return [self._kernel(launch, scratch) for launch in launches]

    def _tune(self, step: Step) -> bool:
        """Measures the ways to compute a step, on whatever its buffers hold."""

        def seconds() -> float:
            try:
                kernels = self._build(step)
                return min(
                    self._seconds(step, kernels, _TUNING_RUNS) for _ in range(_TUNING_ROUNDS)
                )
            except (self.device.cl.Error, BackendUnavailableError):
                return float("inf")  # a way that this device cannot go is not the fastest

        def build() -> None:
            launches_of(step, self.plan, self.device.target)

        return self.device.tuning.measure(self.effort, build, seconds)

    def _kernel(self, launch: Launch, scratch: dict[int, Any]) -> _Kernel:
        program = self.device.program(launch.file, launch.options)
        kernel = self.device.cl.Kernel(program, launch.kernel)
        args: list[Any] = []
        for arg in launch.args:
            if isinstance(arg, PlanTensor):
                args.append(self._buffers[self.plan.root(arg.index).index])
            elif isinstance(arg, np.ndarray):
                args.append(self.device.buffer(arg.nbytes, arg))
            elif isinstance(arg, Scratch):
                if id(arg) not in scratch:
                    scratch[id(arg)] = self._shared_scratch(len(scratch), arg.nbytes)
                args.append(scratch[id(arg)])
            elif isinstance(arg, Image):
                args.append(self._image(arg))
            elif isinstance(arg, float):
                args.append(np.float32(arg))
            else:
                args.append(arg if isinstance(arg, np.generic) else np.int32(arg))
        kernel.set_args(*args)
        grid, group = launch.global_size, launch.local_size
        if group is None:
            grid, group = grouped(grid)
        call = prepared(self.device.cl, self.device.queue, kernel, grid, group)
        return _Kernel(kernel, grid, group, call, args)

    def _shared_scratch(self, number: int, nbytes: int) -> Any:
        """A step's first scratch is every step's first one: they run one after the other."""
        if number == len(self._scratch):
            self._scratch.append(self.device.buffer(nbytes))
        elif self._scratch[number].size < nbytes:
            self._scratch[number] = self.device.buffer(nbytes)
        return self._scratch[number]

    def _image(self, image: Image) -> Any:
        """Scratch images of one size are one image, as scratch buffers are."""
        if image.data is not None:
            return self.device.image(image.width, image.height, image.dtype, image.data)
        key = image.width, image.height, image.dtype
        if key not in self._images:
            self._images[key] = self.device.image(*key)
        return self._images[key]

    # ---- running

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Raises BackendUnavailableError when the driver fails."""
        self._given = dict(zip(self.plan.inputs, inputs, strict=True))
        self._times = None
        self._host = {}
        with self._driver():
            self._take_over()
            for step, kernels in self._steps:
                if step.op == "Copy":
                    self._copy(step, self.device.queue)
                for kernel in kernels:
                    self._enqueue(step, kernel)
                for index in step.outputs:
                    if index in self._wanted and step.op != "Copy":
                        self._taps[index] = self._read(index)
            self.device.queue.finish()
        for index in self._wanted & set(self._host):
            self._taps[index] = self._host[index]
        return [
            self._host[i] if self.plan.tensors[i].space == "host" else self._buffers[i]
            for i in self.plan.outputs
        ]

    @contextmanager
    def _driver(self) -> Iterator[None]:
        """One run at a time on the device; what its driver refuses has one face."""
        try:
            with self.device.lock:
                yield
        except self.device.cl.Error as error:
            raise BackendUnavailableError(
                f"{self.device.report.name} failed while running: {error}"
            ) from None

    def _enqueue(self, step: Step, kernel: _Kernel) -> None:
        status = kernel.call()
        if status:
            name = self.device.cl.status_code.to_string(status, "status %d")
            raise BackendUnavailableError(
                f"{self.device.report.name} failed in {step.name} ({step.kernel}): {name}"
            )

    def _take_over(self) -> None:
        """What an earlier segment left on the device, into the buffers that the kernels read."""
        for index, source in self._given.items():
            own = self._buffers.get(index)
            if own is not None and self.plan.tensors[index].space == "opencl":
                self.device.cl.enqueue_copy(self.device.queue, own, source)

    def enqueue(self) -> None:
        """The kernels alone, on whatever the buffers hold (benchmarks)."""
        for step, kernels in self._steps:
            for kernel in kernels:
                self._enqueue(step, kernel)

    def finish(self) -> None:
        self.device.queue.finish()

    def seconds_of(self, name: str, runs: int) -> float:
        """Seconds of the named step among its like, on whatever the buffers hold (benchmarks)."""
        step, kernels = next(pair for pair in self._steps if name in (pair[0].name, pair[0].kernel))
        return self._seconds(step, kernels, runs)

    def _seconds(self, step: Step, kernels: list[_Kernel], runs: int) -> float:
        """Seconds a step takes where one run follows the other."""
        self.device.queue.finish()
        start = time.perf_counter()
        for _ in range(runs):
            for kernel in kernels:
                self._enqueue(step, kernel)
        self.device.queue.finish()
        return (time.perf_counter() - start) / runs

    def _copy(self, step: Step, queue: Any) -> Any:
        """Between host and device, without waiting."""
        cl = self.device.cl
        source, target = self.plan.tensors[step.inputs[0]], self.plan.tensors[step.outputs[0]]
        if target.space == "host":
            array = np.empty(target.dims, target.dtype.np)
            self._host[target.index] = array
            return cl.enqueue_copy(queue, array, self._device_buffer(source), is_blocking=False)
        root = self.plan.root(source.index)
        given = self._given[root.index] if source.data is None else source.data
        array = np.ascontiguousarray(given).reshape(-1)
        self._host[-1 - target.index] = array  # alive until the queue has finished
        return cl.enqueue_copy(queue, self._buffers[target.index], array, is_blocking=False)

    def _device_buffer(self, tensor: PlanTensor) -> Any:
        root = self.plan.root(tensor.index).index
        return self._given[root] if root in self._given else self._buffers[root]

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
        cl, queue = self.device.cl, self.device.timed_queue
        events = []
        for step, kernels in self._steps:
            own = [cl.enqueue_nd_range_kernel(queue, *k.launch) for k in kernels]
            ready = step.op == "Copy" and self._given
            events.append([self._copy(step, queue)] if ready else own)
        queue.finish()
        spans = [
            (min(e.profile.start for e in own), max(e.profile.end for e in own)) if own else (0, 0)
            for own in events
        ]
        first = min((start for start, _ in spans if start), default=0)
        return [
            StepTime(max(a - first, 0), max(b - first, 0), self._variant(step))
            for (a, b), (step, _) in zip(spans, self._steps, strict=True)
        ]

    def _variant(self, step: Step) -> str:
        """A kernel's full name: what it reads, what it is, where it runs."""
        read = self.plan.tensors[next(i for i in (*step.inputs, *step.outputs) if i >= 0)]
        return f"{read.dtype}_{step.kernel}__opencl"

    def tap(self, tensors: Sequence[int]) -> None:
        self._wanted, self._taps = set(tensors), {}

    def tapped(self, tensor: int) -> np.ndarray:
        return self._taps[tensor]

    def memory(self) -> dict[str, int]:
        own = {id(b): b.size for b in self._buffers.values()}
        constants = {
            id(a): a.size
            for _, kernels in self._steps
            for kernel in kernels
            for a in kernel.args
            if hasattr(a, "size") and not isinstance(a, np.generic) and id(a) not in own
        }
        return {"device": sum(own.values()), "packed": sum(constants.values())}
