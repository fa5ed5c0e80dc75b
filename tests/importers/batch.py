"""Many small models on an emulated device, their segments gathered into few programs.

Starting the runner costs far more than a small case. `run_all` runs every case until it needs the
device, merges what the device should do into one program, and starts the cases again with the
results, until all of them are through: as many processes as the longest case has segments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from lite_engine.backends import Backend, StepTime, Usability
from lite_engine.devices import Device, Job
from lite_engine.errors import DeviceError
from lite_engine.model_file.program_file import tensor_file_name, write_program_file
from lite_engine.plan import Segment
from lite_engine.runtime import Predictor

from tests.native.cases import merged


class Pending(Exception):
    """The case needs what the device has not computed yet."""


class Waiting:
    """A segment that waits for its first inputs, and then for the device's answer to them."""

    def __init__(self, segment: Segment) -> None:
        self.plan = segment.plan
        self.inputs: list[np.ndarray] = []
        self.answer: list[np.ndarray] | DeviceError | None = None

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        if self.answer is None:
            pairs = zip(inputs, self.plan.inputs, strict=True)
            self.inputs = [np.asarray(a).reshape(self.plan.tensors[i].dims) for a, i in pairs]
            raise Pending
        if isinstance(self.answer, DeviceError):
            raise self.answer
        return self.answer

    def times(self) -> list[StepTime]:
        return [StepTime(0, 0, step.kernel) for step in self.plan.steps]

    def tap(self, tensors: Sequence[int]) -> None:
        assert not tensors, "nothing is tapped in a batch"

    def tapped(self, tensor: int) -> np.ndarray:
        raise KeyError(tensor)

    def memory(self) -> dict[str, int]:
        return {}


class Batch:
    """A CPU backend that only notes what it is asked to run."""

    name = "cpu"

    def __init__(self, device: Device) -> None:
        self.device = device
        self.parts: list[Waiting] = []
        self.processes = 0

    def usability(self) -> Usability:
        return Usability(True, "in a batch")

    def compile(self, segment: Segment, *, threads: int) -> Waiting:
        self.parts.append(Waiting(segment))
        return self.parts[-1]

    def flush(self) -> bool:
        """Computes what was asked for; False when nothing was."""
        asked = [p for p in self.parts if p.answer is None and len(p.inputs) == len(p.plan.inputs)]
        self._compute(asked)
        return bool(asked)

    def _compute(self, parts: list[Waiting]) -> None:
        """One program for all; halves of it where it fails, down to the part that is to blame."""
        if not parts:
            return
        try:
            answers = self._run(parts)
        except DeviceError as error:
            if len(parts) == 1:
                parts[0].answer = error
                return
            half = len(parts) // 2
            self._compute(parts[:half])
            self._compute(parts[half:])
            return
        for part in parts:
            part.answer = [next(answers) for _ in part.plan.outputs]

    def _run(self, parts: list[Waiting]) -> Any:
        plan = merged([p.plan for p in parts])
        given = zip(plan.inputs, (a for p in parts for a in p.inputs), strict=True)
        wanted = [tensor_file_name(i) for i in plan.outputs]
        self.processes += 1
        with TemporaryDirectory(prefix="lite-batch-") as folder:
            program = write_program_file(plan, Path(folder) / "batch.lite", ("arm",))
            arrays = {tensor_file_name(i): a for i, a in given}
            result = self.device.run_program(Job(program, arrays, wanted))
        found = zip(plan.outputs, wanted, strict=True)
        return iter([result.arrays[n].reshape(plan.tensors[i].dims) for i, n in found])


class BatchPredictor(Predictor):
    """A predictor for the batch's device whose CPU steps wait in the batch."""

    def __init__(self, model: Any, batch: Batch) -> None:
        super().__init__(model, device=batch.device, threads=1)
        self._batch = batch

    def _elsewhere(self) -> Backend:
        return self._batch


def run_all(cases: Iterable[Callable[[], None]], batch: Batch) -> None:
    """Calls every case again and again until none raises Pending."""
    waiting = list(cases)
    while waiting:
        waiting = [case for case in waiting if _pends(case)]
        assert batch.flush() or not waiting, "a case waits for something that nothing computes"


def _pends(case: Callable[[], None]) -> bool:
    try:
        case()
    except Pending:
        return True
    return False
