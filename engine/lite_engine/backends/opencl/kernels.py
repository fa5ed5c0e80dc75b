"""Launches as kernels of a device: programs built, arguments set once, ready to enqueue."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import BackendUnavailableError
from ...ir import DType
from ...plan import Plan, PlanTensor
from . import reach
from .constants import Constant
from .device import Device
from .enqueue import Refused, bound, prepared
from .launch import Image, Launch, Scratch, grouped
from .weight_buffers import WeightBuffer


class KernelFailed(Exception):
    """One kernel of a step failed; `kind` is a key of verdicts.KINDS, `launch` the one that did."""

    def __init__(self, kind: str, detail: object, launch: Launch) -> None:
        super().__init__(str(detail))
        self.kind, self.launch = kind, launch


@dataclass
class Kernel:
    """A kernel with its arguments set, and the call that enqueues it. `args` keeps them alive."""

    launch: Launch
    kernel: Any
    grid: tuple[int, ...]
    group: tuple[int, ...] | None
    call: partial[int]
    args: list[Any]


#: Statuses after which nothing on the device can be used: CL_DEVICE_NOT_AVAILABLE,
#: CL_OUT_OF_HOST_MEMORY, CL_INVALID_DEVICE, CL_INVALID_CONTEXT, CL_INVALID_COMMAND_QUEUE.
_LOST = (-2, -6, -33, -34, -36)
_NO_MEMORY = -4  # CL_MEM_OBJECT_ALLOCATION_FAILURE: some drivers allocate at the first use


def kind_of(status: int) -> str:
    """Of verdicts.KINDS."""
    return "memory" if status == _NO_MEMORY else "launch"


def enqueue(device: Device, kernel: Kernel) -> None:
    """Raises KernelFailed, BackendUnavailableError when the device is lost."""
    if status := kernel.call():
        name = device.cl.status_code.to_string(status, "status %d")
        if status in _LOST:
            raise BackendUnavailableError(
                tr("{report} is lost: {name}", report=device.report.name, name=name)
            )
        raise KernelFailed(kind_of(status), name, kernel.launch)


def seconds_of(device: Device, kernels: list[Kernel], runs: int, rounds: int = 1) -> float:
    """Seconds that a step takes where one run follows the other: of the fastest round."""
    best = float("inf")
    for _ in range(rounds):
        device.queue.finish()
        start = time.perf_counter()
        for _ in range(runs):
            for kernel in kernels:
                enqueue(device, kernel)
        device.queue.finish()
        best = min(best, (time.perf_counter() - start) / runs)
    return best


class KernelMaker:
    """Makes the kernels of a segment's steps. `buffers` maps storage owners to device memory;
    weights that launches read are added."""

    def __init__(self, device: Device, plan: Plan, buffers: dict[int, Any]) -> None:
        self._device, self._plan, self._buffers = device, plan, buffers
        self._scratch: list[Any] = []
        self._weights: list[WeightBuffer] = []
        self._images: dict[tuple[int, int, DType], Any] = {}

    def make(self, launches: list[Launch]) -> list[Kernel]:
        """The kernels of one step. Raises KernelFailed."""
        scratch: dict[int, Any] = {}
        return [self._kernel(launch, scratch) for launch in launches]

    def _kernel(self, launch: Launch, scratch: dict[int, Any]) -> Kernel:
        cl = self._device.cl
        try:
            reach.check(launch, self._plan)
        except reach.ReachError as error:
            raise KernelFailed("reach", error, launch) from None
        try:
            program = self._device.program(launch.file, launch.options)
        except BackendUnavailableError as error:
            cannot = tr("cannot build {file}.cl: {first_error}", file=launch.file, first_error="")
            raise KernelFailed("build", error.what.removeprefix(cannot), launch) from None
        try:
            args = [self._argument(arg, scratch) for arg in launch.args]
            kernel = bound(cl, program, launch.kernel, args)
            grid, group = launch.global_size, launch.local_size
            if group is None:
                grid, group = grouped(grid)
            call = prepared(cl, self._device.queue, kernel, grid, group)
        except BackendUnavailableError as error:
            raise KernelFailed("memory", error, launch) from None
        except (Refused, cl.Error) as error:
            raise KernelFailed("launch", error, launch) from None
        return Kernel(launch, kernel, grid, group, call, args)

    def _argument(self, arg: Any, scratch: dict[int, Any]) -> Any:
        if isinstance(arg, PlanTensor):
            root = self._plan.root(arg.index)
            if root.data is not None and root.index not in self._buffers:
                self._buffers[root.index] = self._weight(Constant.of(root.data))
            return self._buffers[root.index]
        if isinstance(arg, Constant):
            return self._weight(arg)
        if isinstance(arg, Scratch):
            if id(arg) not in scratch:
                scratch[id(arg)] = self._shared_scratch(len(scratch), arg.nbytes)
            return scratch[id(arg)]
        if isinstance(arg, Image):
            return self._image(arg)
        if isinstance(arg, float):
            return np.float32(arg)
        return arg if isinstance(arg, np.generic) else np.int32(arg)

    def _weight(self, constant: Constant) -> Any:
        self._weights.append(self._device.weights.get(self._device, constant))
        return self._weights[-1].buffer

    def _shared_scratch(self, number: int, nbytes: int) -> Any:
        """A step's first scratch is every step's first one: they run one after the other."""
        if number == len(self._scratch):
            self._scratch.append(self._device.buffer(nbytes))
        elif self._scratch[number].size < nbytes:
            self._scratch[number] = self._device.buffer(nbytes)
        return self._scratch[number]

    def _image(self, image: Image) -> Any:
        """Scratch images of one size are one image, as scratch buffers are."""
        if image.data is not None:
            texels = image.data.value.view(image.dtype.np)
            return self._device.image(image.width, image.height, image.dtype, texels)
        key = image.width, image.height, image.dtype
        if key not in self._images:
            self._images[key] = self._device.image(*key)
        return self._images[key]
