"""A device as a backend: segments of a plan run there, everything else stays as it is."""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from lite_messages import tr

from ..backends import (
    Backend,
    Executable,
    Joint,
    LayersRefused,
    Repeats,
    Samples,
    StepTime,
    Usability,
)
from ..backends.cpu.custom import KERNEL, libraries_of
from ..backends.opencl.native_plan import custom_texts
from ..backends.opencl.programs import custom_files
from ..errors import BackendUnavailableError
from ..model_file.program_file import tensor_file_name, write_program_file
from ..plan import Plan, Segment, assign_offsets
from ._base import Device, Job, RunnerResult
from .check import usable_opencl

#: Seconds at most that a device warms up until its times are steady.
WARM_UP_S = 3


class DeviceBackend(Backend, Joint):
    """Compiles segments of CPU and OpenCL steps to program files and runs them on a device."""

    name = "cpu"
    #: What one call of the runner executes together.
    runs = ("cpu", "opencl")

    def __init__(self, device: Device) -> None:
        self.device = device

    def usability(self) -> Usability:
        return Usability(True, tr("device {name}", name=self.device.name))

    def compile(self, segment: Segment, *, threads: int) -> DeviceExecutable:
        return DeviceExecutable(segment, self.device, threads=threads)


class DeviceExecutable(Executable, Repeats):
    """A segment on a device: one runner call per run. Raises BackendUnavailableError for steps on
    OpenCL where the device has none, LayersRefused where it leaves them to its CPU."""

    def __init__(self, segment: Segment, device: Device, *, threads: int) -> None:
        assign_offsets(segment.plan)
        self.plan = segment.plan if device.times_meaningful else _steps_apart(segment.plan)
        self.device = device
        self.threads = threads
        folder = tempfile.mkdtemp(prefix="lite-device-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self.opencl = segment.backend == "opencl"
        found = usable_opencl(device).device_class if self.opencl else ""
        self.program = write_program_file(
            self.plan, Path(folder) / "program.lite", opencl_class=found
        )
        self.libraries = _libraries(self.plan, device)
        self._taps: list[int] = []
        self._runs, self._warmup = 0, 0
        self._result = RunnerResult({})

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        arrays = {
            tensor_file_name(i): np.asarray(a).reshape(self.plan.tensors[i].dims)
            for i, a in zip(self.plan.inputs, inputs, strict=True)
        }
        wanted = [tensor_file_name(i) for i in dict.fromkeys([*self.plan.outputs, *self._taps])]
        self._execute(arrays, wanted)
        return [self._array(i) for i in self.plan.outputs]

    def measure(self, runs: int, warmup: int) -> Samples:
        """Times on inputs of zeros; nothing is sent but the program, and no result is fetched."""
        self.repeat(runs, warmup)
        self._execute({}, [])
        return self.samples()

    def _execute(self, arrays: dict[str, np.ndarray], wanted: list[str]) -> None:
        job = Job(
            self.program, arrays, wanted, self._threads(), self._runs, self._warmup,
            self.libraries, self.opencl, WARM_UP_S if self.device.times_meaningful else 0,
        )  # fmt: skip
        self._result = self.device.run_program(job)
        ran = {str(s["name"]) for s in self._result.profile["steps"] if _on_opencl(s)}
        refused = [
            s.name for s in self.plan.steps
            if s.backend == "opencl" and s.op != "Copy" and s.name not in ran
        ]  # fmt: skip
        if refused:
            reason = str(self._result.profile.get("choice", ""))
            raise LayersRefused(dict.fromkeys(refused, reason))

    def _threads(self) -> int:
        """An emulated device is measured in instructions, which one thread executes."""
        return self.threads if self.device.times_meaningful or not self._runs else 1

    def _array(self, index: int) -> np.ndarray:
        dims = self.plan.tensors[index].dims
        return self._result.arrays[tensor_file_name(index)].reshape(dims)

    def times(self) -> list[StepTime]:
        out, at = [], 0
        for step in self._result.profile.get("steps", []):
            out.append(StepTime(at, at + int(step["ns"]), str(step["variant"])))
            at += int(step["ns"])
        return out

    def repeat(self, runs: int, warmup: int) -> None:
        """How often the device executes the program in the next runs, to be measured; 0: once."""
        self._runs, self._warmup = runs, warmup

    def samples(self) -> Samples:
        """Every repetition of the last run."""
        steps = [step["samples_ns"] for step in self._result.profile["steps"]]
        return Samples(
            np.array(steps, np.int64).reshape(len(self.plan.steps), -1).T,
            np.array(self._result.profile["total_ns"]["samples"], np.int64),
            int(self._result.profile["first_run_ns"]),
            self._result.environment,
            self._result.warnings,
            self._instructions(),
        )

    def _instructions(self) -> dict[str, Any] | None:
        """Executed instructions of each step, a run, and all until the first result."""
        profile = self._result.profile
        if "instructions" not in profile:
            return None
        return {
            "steps": [step["instructions"] for step in profile["steps"]],
            "run": profile["instructions"],
            "first_result": profile["first_result_instructions"],
        }

    def tap(self, tensors: Sequence[int]) -> None:
        self._taps = list(tensors)

    def tapped(self, tensor: int) -> np.ndarray:
        return self._array(tensor)

    def memory(self) -> dict[str, int]:
        keys = {"arena": "arena_bytes", "packed": "packed_bytes", "scratch": "scratch_bytes"}
        return {k: int(self._result.profile.get(v, 0)) for k, v in keys.items()}


def _libraries(plan: Plan, device: Device) -> list[Path]:
    """What brings the kernels of the plan's custom operators. Raises BackendUnavailableError where
    a step of the CPU has none; a step on OpenCL needs one only where the driver refuses it."""
    own = [step.op for step in plan.steps if step.kernel == KERNEL]
    spare = [step.op for step in plan.steps if step.kernel in custom_files]
    found = libraries_of(own, device.arch()) if own else []
    with suppress(BackendUnavailableError):
        found += libraries_of(spare, device.arch()) if spare else []
    return list(dict.fromkeys([*found, *custom_texts(plan)]))


def _on_opencl(step: dict[str, Any]) -> bool:
    return "__opencl" in str(step["variant"])


def _steps_apart(plan: Plan) -> Plan:
    """Without bands: an emulator has no cache for them, and where steps take turns their
    instructions cannot be told apart."""
    return replace(plan, steps=[replace(step, band=0) for step in plan.steps])
