"""A segment on an OpenCL device: memory assigned, kernels built, arguments set once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import BackendUnavailableError
from ...plan import PlanTensor, Segment, Step
from .._base import StepTime
from .device import Device
from .launch import Launch, Scratch
from .steps import launches_of


class OpenCLExecutable:
    """Enqueues a segment's kernels in order. Crossing device tensors are OpenCL buffers."""

    def __init__(self, segment: Segment, device: Device) -> None:
        self.plan = segment.plan
        self.device = device
        self._buffers = self._assign()
        self._constants: list[Any] = []
        self._scratch: Any = None
        self._steps = [(step, self._prepare(step)) for step in self.plan.steps]
        self._events: list[list[Any]] = []
        self._wanted: set[int] = set()
        self._taps: dict[int, np.ndarray] = {}

    # ---- memory

    def _assign(self) -> dict[int, Any]:
        """A buffer for each storage on the device; the arena's are reused by lifetime."""
        last: dict[int, int] = {}
        for step in self.plan.steps:
            for index in (*step.inputs, *step.outputs):
                if index >= 0:
                    last[self.plan.root(index).index] = step.index
        buffers: dict[int, Any] = {}
        free: list[Any] = []
        for step in self.plan.steps:
            for index in (*step.outputs, *step.inputs):
                root = self.plan.root(index) if index >= 0 else None
                if root is None or root.space != "opencl" or root.index in buffers:
                    continue
                buffers[root.index] = self._buffer(root, free)
            for index, end in last.items():
                ends = end == step.index and self.plan.tensors[index].role == "arena"
                if ends and index in buffers:
                    free.append(buffers[index])
        return buffers

    def _buffer(self, root: PlanTensor, free: list[Any]) -> Any:
        if root.data is not None:
            return self.device.buffer(root.nbytes, root.data)
        need = max(root.nbytes, 4)
        fitting = [b for b in free if need <= b.size <= 4 * need]
        if root.role == "arena" and fitting:
            best = min(fitting, key=lambda b: b.size)
            free.remove(best)
            return best
        return self.device.buffer(need)

    # ---- kernels

    def _prepare(self, step: Step) -> list[tuple[Any, tuple[int, ...], tuple[int, ...] | None]]:
        if step.op == "Copy":
            return []
        scratch: dict[int, Any] = {}
        launches = launches_of(step, self.plan, self.device)
        return [self._kernel(launch, scratch) for launch in launches]

    def _kernel(
        self, launch: Launch, scratch: dict[int, Any]
    ) -> tuple[Any, tuple[int, ...], tuple[int, ...] | None]:
        program = self.device.program(launch.file, launch.options)
        kernel = self.device.cl.Kernel(program, launch.kernel)
        args: list[Any] = []
        for arg in launch.args:
            if isinstance(arg, PlanTensor):
                args.append(self._buffers[self.plan.root(arg.index).index])
            elif isinstance(arg, np.ndarray):
                args.append(self.device.buffer(arg.nbytes, arg))
                self._constants.append(args[-1])
            elif isinstance(arg, Scratch):
                if id(arg) not in scratch:
                    scratch[id(arg)] = self._shared_scratch(arg.nbytes)
                args.append(scratch[id(arg)])
            elif isinstance(arg, float):
                args.append(np.float32(arg))
            else:
                args.append(arg if isinstance(arg, np.generic) else np.int32(arg))
        kernel.set_args(*args)
        return kernel, launch.global_size, launch.local_size

    def _shared_scratch(self, nbytes: int) -> Any:
        """One block serves all steps: they run one after the other."""
        if self._scratch is None or self._scratch.size < nbytes:
            self._scratch = self.device.buffer(nbytes)
            self._constants.append(self._scratch)
        return self._scratch

    # ---- running

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Raises BackendUnavailableError when the driver fails."""
        cl, queue = self.device.cl, self.device.queue
        host: dict[int, np.ndarray] = {}
        given = dict(zip(self.plan.inputs, inputs, strict=True))
        try:
            with self.device.lock:
                self._take_over(given)
                self._events = [self._run_step(s, k, given, host) for s, k in self._steps]
                queue.finish()
        except cl.Error as error:
            raise BackendUnavailableError(
                f"{self.device.report.name} failed while running: {error}"
            ) from None
        return [
            host[i] if self.plan.tensors[i].space == "host" else self._buffers[i]
            for i in self.plan.outputs
        ]

    def _take_over(self, given: dict[int, Any]) -> None:
        """What an earlier segment left on the device, into the buffers that the kernels read."""
        for index, source in given.items():
            own = self._buffers.get(index)
            if own is not None and self.plan.tensors[index].space == "opencl":
                self.device.cl.enqueue_copy(self.device.queue, own, source)

    def enqueue(self) -> None:
        """The kernels alone, on whatever the buffers hold (benchmarks)."""
        cl, queue = self.device.cl, self.device.queue
        for _, kernels in self._steps:
            for kernel, grid, group in kernels:
                cl.enqueue_nd_range_kernel(queue, kernel, grid, group)

    def finish(self) -> None:
        self.device.queue.finish()

    def _run_step(
        self, step: Step, kernels: Any, given: dict[int, Any], host: dict[int, np.ndarray]
    ) -> list[Any]:
        cl, queue = self.device.cl, self.device.queue
        if step.op == "Copy":
            return [self._copy(step, given, host)]
        events = []
        for kernel, grid, group in kernels:
            events.append(cl.enqueue_nd_range_kernel(queue, kernel, grid, group))
        for index in step.outputs:
            if index in self._wanted:
                self._taps[index] = self._read(index)
        return events

    def _copy(self, step: Step, given: dict[int, Any], host: dict[int, np.ndarray]) -> Any:
        cl, queue = self.device.cl, self.device.queue
        source, target = self.plan.tensors[step.inputs[0]], self.plan.tensors[step.outputs[0]]
        if target.space == "host":
            host[target.index] = np.empty(target.dims, target.dtype.np)
            event = cl.enqueue_copy(
                queue, host[target.index], self._device_buffer(source, given), is_blocking=False
            )
            if target.index in self._wanted:
                queue.finish()
                self._taps[target.index] = host[target.index]
            return event
        root = self.plan.root(source.index)
        array = given[root.index] if source.data is None else source.data
        array = np.ascontiguousarray(array).reshape(-1)
        host[-1 - target.index] = array  # alive until the queue has finished
        return cl.enqueue_copy(queue, self._buffers[target.index], array, is_blocking=False)

    def _device_buffer(self, tensor: PlanTensor, given: dict[int, Any]) -> Any:
        root = self.plan.root(tensor.index).index
        return given[root] if root in given else self._buffers[root]

    def _read(self, index: int) -> np.ndarray:
        tensor = self.plan.tensors[index]
        out = np.empty(tensor.dims, tensor.dtype.np)
        buffer = self._buffers[self.plan.root(index).index]
        self.device.cl.enqueue_copy(self.device.queue, out, buffer)
        return out

    # ---- looking inside

    def times(self) -> list[StepTime]:
        """From the device's own events."""
        spans = [
            (min(e.profile.start for e in events), max(e.profile.end for e in events))
            if events
            else (0, 0)
            for events in self._events
        ]
        first = min((start for start, _ in spans if start), default=0)
        prefix = "f16" if any(t.dtype.value == "f16" for t in self.plan.tensors) else "f32"
        return [
            StepTime(max(a - first, 0), max(b - first, 0), f"{prefix}_{step.kernel}__opencl")
            for (a, b), (step, _) in zip(spans, self._steps, strict=True)
        ]

    def tap(self, tensors: Sequence[int]) -> None:
        self._wanted, self._taps = set(tensors), {}

    def tapped(self, tensor: int) -> np.ndarray:
        return self._taps[tensor]

    def memory(self) -> dict[str, int]:
        own = {id(b): b.size for b in self._buffers.values()}
        return {"device": sum(own.values()), "packed": sum(b.size for b in self._constants)}
