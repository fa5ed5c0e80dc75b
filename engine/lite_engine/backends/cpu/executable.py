"""A planned segment in the native runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...plan import assign_offsets
from ...plan.program import WeightTable, encode
from .. import Executable, StepTime, Threaded
from .native import NativeProgram

if TYPE_CHECKING:
    from ...plan import Segment


class CpuExecutable(Executable, Threaded):
    """A segment loaded into the native runtime."""

    def __init__(self, segment: Segment, *, threads: int, max_isa: str | None = None) -> None:
        """`max_isa` lowers the instruction set."""
        self.plan = segment.plan
        assign_offsets(self.plan)
        table = WeightTable(compared=False)
        data = encode(self.plan, table)
        self.program = NativeProgram(data, table.blobs, threads=threads, max_isa=max_isa)
        self._tapped: dict[int, str] = {}
        self._copies: dict[str, np.ndarray] | None = None

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        shaped = [
            np.asarray(a).reshape(self.plan.tensors[i].dims)
            for i, a in zip(self.plan.inputs, inputs, strict=True)
        ]
        self._copies = None
        return list(self.program.run(shaped))

    def times(self) -> list[StepTime]:
        spent = self.program.thread_times_ns
        return [
            StepTime(s.start_ns, s.end_ns, s.variant, spent(i))
            for i, s in enumerate(self.program.steps())
        ]

    def note_threads(self, on: bool) -> None:
        self.program.note_threads(on)

    def tap(self, tensors: Sequence[int]) -> None:
        wanted = {i: self.plan.tensors[i].name for i in tensors}
        if wanted == self._tapped:  # the memory of the copies is kept
            return
        for name in self._tapped.values():
            self.program.tap(name, on=False)
        self._tapped = wanted
        for name in self._tapped.values():
            self.program.tap(name)

    def tapped(self, tensor: int) -> np.ndarray:
        if self._copies is None:
            self._copies = self.program.tapped()  # copies all of them: once per run
        return self._copies[self._tapped[tensor]]

    def memory(self) -> dict[str, int]:
        used = self.program.memory()
        return {
            "arena": used.arena_bytes,
            "packed": used.packed_bytes,
            "scratch": used.scratch_bytes,
        }
