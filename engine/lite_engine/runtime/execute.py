"""A plan ready to run: its segments compiled, values handed from one to the next."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..backends import (
    Backend,
    Compiling,
    Executable,
    Joint,
    Recovering,
    Repeats,
    Samples,
    StepTime,
    Threaded,
    get_backend,
)
from ..ir.bfloat16 import bf16_to_f32
from ..plan import Plan, PlanTensor, Segment, cut


@dataclass
class _Part:
    segment: Segment
    executable: Executable


class Execution:
    """Runs a plan. Not for two threads at once.

    Making and running one raises LayersRefused for layers that have to be planned elsewhere. Where
    a step is computed in another way than its kernel's first, the plan's `why` says so.
    """

    def __init__(self, plan: Plan, *, threads: int, instead: Backend | None = None) -> None:
        """`instead` runs the segments of the CPU, or of every backend that it `runs`."""
        self.plan = plan
        self.threads = threads
        self._parts = []
        runs = instead.runs if isinstance(instead, Joint) else ("cpu",) if instead else ()
        self._together = bool(runs)
        for segment in cut(plan, runs):
            there = segment.backend in runs
            backend = instead if instead and there else get_backend(segment.backend)
            self._parts.append(_Part(segment, backend.compile(segment, threads=threads)))
        self._made = {i for step in plan.steps for i in step.outputs}
        self._home = {
            part.segment.outer[inner]: (part, inner)
            for part in self._parts
            for step in part.segment.plan.steps
            for inner in step.outputs
        }
        self._whys = [step.why for step in plan.steps]
        #: Steps that are computed in another way than their kernel's first, and why.
        self.refusals: dict[str, str] = {}
        self._note_refusals()
        self._starts: list[int] = []
        self.total_ns = 0

    def run(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Logical arrays in the order of plan.inputs → logical outputs."""
        values: dict[int, Any] = {}
        for index, array in zip(self.plan.inputs, inputs, strict=True):
            values[index] = self.plan.tensors[index].to_physical(array)
        self._starts = []
        begin = time.perf_counter_ns()
        for part in self._parts:
            outer = part.segment.outer
            given = [self._value(outer[i], values) for i in part.segment.plan.inputs]
            self._starts.append(time.perf_counter_ns() - begin)
            results = part.executable.run(given)
            for i, result in zip(part.segment.plan.outputs, results, strict=True):
                values[outer[i]] = result
        self.total_ns = time.perf_counter_ns() - begin
        self._note_refusals()
        return [self._logical(i, self._value(i, values)) for i in self.plan.outputs]

    def _note_refusals(self) -> None:
        """What the executables gave up, into the plan's steps."""
        first = 0
        for part in self._parts:
            if isinstance(part.executable, Recovering):
                for i, reason in part.executable.refusals().items():
                    self.refusals[self.plan.steps[first + i].name] = reason
                    self.plan.steps[first + i].why = f"{reason}; {self._whys[first + i]}"
            first += len(part.segment.plan.steps)

    def _value(self, index: int, values: Mapping[int, Any]) -> Any:
        """A value by tensor; an alias whose own segment did not hand it over reads its root's
        bytes."""
        while index not in values:
            tensor = self.plan.tensors[index]
            if tensor.data is not None:
                return tensor.data
            assert tensor.alias_of is not None, tensor.name
            index = tensor.alias_of
        return values[index]

    def _logical(self, index: int, array: np.ndarray) -> np.ndarray:
        tensor = self.plan.tensors[index]
        return tensor.to_logical(array) if tensor.shape_known else array

    def measure(self, inputs: Sequence[np.ndarray], *, runs: int, warmup: int) -> Samples:
        """One run in which every device repeats its own part; parts of this process, which wait
        for the device anyway, count once."""
        for part in self._parts:
            if isinstance(part.executable, Repeats):
                part.executable.repeat(runs, warmup)
        try:
            self.run(inputs)
            made = [_samples(part.executable, runs) for part in self._parts]
        finally:
            for part in self._parts:
                if isinstance(part.executable, Repeats):
                    part.executable.repeat(0, 0)
        environment = {k: v for s in made for k, v in s.environment.items()}
        return Samples(
            np.concatenate([s.steps_ns for s in made], axis=1),
            np.sum([s.total_ns for s in made], axis=0),
            sum(s.first_ns for s in made),
            environment,
            list(dict.fromkeys(w for s in made for w in s.warnings)),
            _instructions(made),
        )

    # ---- looking inside

    @property
    def segments(self) -> list[Segment] | None:
        """What `cut` makes of the plan; None where backends work together."""
        return None if self._together else [part.segment for part in self._parts]

    def times(self) -> list[StepTime]:
        """One per step of the plan, from the start of the run."""
        out: list[StepTime] = []
        for part, start in zip(self._parts, self._starts, strict=True):
            for t in part.executable.times():
                out.append(t.later(start))
        return out

    def note_threads(self, on: bool) -> bool:
        """Whether the next runs note what each thread computes; False where no part can."""
        parts = [part.executable for part in self._parts if self.threads > 1]
        threaded = [made for made in parts if isinstance(made, Threaded)]
        for made in threaded:
            made.note_threads(on)
        return bool(threaded)

    def compiled(self) -> list[tuple[str, float, float]]:
        """(step's name, start, end in ms) of the kernels that were compiled for this."""
        found: list[tuple[str, float, float]] = []
        for part in self._parts:
            if isinstance(part.executable, Compiling):
                at = found[-1][2] if found else 0.0
                found += [(name, at + a, at + b) for name, a, b in part.executable.compiled()]
        return found

    def tap(self, names: Iterable[str]) -> None:
        """Values (by graph name) to keep in the next runs."""
        wanted: dict[int, list[int]] = {id(p): [] for p in self._parts}
        for name in names:
            made = self._maker(self.plan.tensor_of[name])
            if made in self._home:
                part, inner = self._home[made]
                wanted[id(part)].append(inner)
        for part in self._parts:
            part.executable.tap(wanted[id(part)])

    def tapped(self, name: str, inputs: Mapping[int, np.ndarray] | None = None) -> np.ndarray:
        """A tapped value of the last run, in logical order. Raises KeyError when it was not
        tapped."""
        index = self.plan.tensor_of[name]
        tensor: PlanTensor = self.plan.tensors[index]
        made = self._maker(index)
        if made not in self._home:
            if tensor.data is not None:
                return tensor.to_logical(tensor.data).copy()
            if inputs and made in inputs:
                return tensor.to_logical(np.ascontiguousarray(inputs[made]).reshape(tensor.dims))
            raise KeyError(name)
        part, inner = self._home[made]
        array = part.executable.tapped(inner)
        return self._logical(index, bf16_to_f32(array) if tensor.short else array)

    def _maker(self, index: int) -> int:
        """The tensor that a step writes, behind views."""
        while index not in self._made:
            tensor = self.plan.tensors[index]
            shown = tensor.alias_of if tensor.piece is None else tensor.piece
            if shown is None:
                break
            index = shown
        return index

    def memory(self) -> dict[str, int]:
        """Bytes by purpose, summed over segments; `arena` is the largest one's."""
        total: dict[str, int] = {"weights": self.plan.weight_bytes}
        for part in self._parts:
            for key, count in part.executable.memory().items():
                total[key] = total.get(key, 0) + count
        return total


def _instructions(made: Sequence[Samples]) -> dict[str, Any] | None:
    """The parts' counts together; None for the steps of a part that was not counted."""
    counted = [s.instructions for s in made if s.instructions is not None]
    if not counted:
        return None
    steps: list[int | None] = []
    for s in made:
        steps += [None] * s.steps_ns.shape[1] if s.instructions is None else s.instructions["steps"]
    totals = {key: sum(c[key] for c in counted) for key in ("run", "first_result")}
    return {"steps": steps, **totals}


def _samples(executable: Executable, runs: int) -> Samples:
    """Repeated runs of a device, or the last run of this process as often."""
    if isinstance(executable, Repeats):
        return executable.samples()
    times = np.array([t.end_ns - t.start_ns for t in executable.times()], np.int64)
    total = int(times.sum())
    return Samples(np.tile(times, (runs, 1)), np.full(runs, total), total, {}, [])
