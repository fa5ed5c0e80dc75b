"""A segment on an OpenCL device, run by the native runtime: what ships, without pyopencl.

LITE_OPENCL_EXECUTOR=native chooses it. It takes each step's first way; where one fails, the segment
fails with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import settings
from ...errors import BackendUnavailableError, ModelFormatError
from ...plan import Segment
from ...plan.program import WeightTable
from .. import Executable, StepTime
from ..cpu.custom import load
from ..cpu.native import NativeProgram
from .device import Device, check_process
from .native_plan import custom_texts, encode_opencl


class NativeOpenCLExecutable(Executable):
    """Crossing device tensors are arrays on the host."""

    def __init__(self, segment: Segment, device: Device, *, threads: int) -> None:
        """Raises BackendUnavailableError when a kernel cannot be built or memory is short."""
        self.plan = segment.plan
        self._table = WeightTable()
        self._data = encode_opencl(self.plan, device.target, self._table, fallback=False)
        for text in custom_texts(self.plan):
            load(text)
        self._device, self._threads = device, threads
        self._program = self._loaded(timed=False)
        self._timed: NativeProgram | None = None
        self._given: list[np.ndarray] = []
        self._tapped: dict[int, str] = {}

    def _loaded(self, timed: bool) -> NativeProgram:
        try:
            return NativeProgram(
                self._data,
                self._table.blobs,
                threads=self._threads,
                device=self._device.report.name,
                cache_dir=settings.cache_dir(),
                timed=timed,
            )
        except ModelFormatError as error:
            raise BackendUnavailableError(str(error)) from None

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        """Raises BackendUnavailableError when a launch fails, or as `check_process`."""
        check_process()
        self._given = [
            np.asarray(a).reshape(self.plan.tensors[i].dims)
            for i, a in zip(self.plan.inputs, inputs, strict=True)
        ]
        return list(self._program.run(self._given))

    def times(self) -> list[StepTime]:
        """From the device's own events. Noting them slows a run down, so the last run is repeated
        by a program that does."""
        if self._timed is None:
            self._timed = self._loaded(timed=True)
        self._timed.run(self._given)
        return [StepTime(s.start_ns, s.end_ns, s.variant) for s in self._timed.steps()]

    def tap(self, tensors: Sequence[int]) -> None:
        for name in self._tapped.values():
            self._program.tap(name, on=False)
        self._tapped = {i: self.plan.tensors[i].name for i in tensors}
        for name in self._tapped.values():
            self._program.tap(name)

    def tapped(self, tensor: int) -> np.ndarray:
        return self._program.tapped()[self._tapped[tensor]]

    def memory(self) -> dict[str, int]:
        used = self._program.memory()
        return {"arena": used.arena_bytes, "device": used.packed_bytes}
