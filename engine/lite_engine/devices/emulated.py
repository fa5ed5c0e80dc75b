"""The AArch64 runner under qemu: right numbers on any machine, times that mean nothing, and what
stands in for them: executed instructions."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

from lite_messages import tr

from .._native import counter_path, host_arch, runner_path
from ..backends import Usability
from ..errors import DeviceError, LiteError, UsageError
from . import arm_opencl
from ._base import Job, RunnerResult
from .process import ProcessDevice

#: Any CPU model of qemu; "max" has every feature the runner knows.
DEFAULT_CPU = "max"
_COUNTS = "instructions.txt"
#: The C library of a runner that opens libraries: the cross compiler's.
_SYSROOT = "/usr/aarch64-linux-gnu"


def emulator() -> str | None:
    return shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")


def emulator_usability() -> Usability:
    """Whether AArch64 programs run here. On an AArch64 machine they do without an emulator."""
    if host_arch() != "aarch64" and emulator() is None:
        return Usability(
            False, tr("qemu-aarch64 is not installed"), command="sudo apt-get install qemu-user"
        )
    try:
        runner_path("aarch64")
    except LiteError as error:
        return Usability.refused(error)
    return Usability(
        True, tr("AArch64 runner under qemu-aarch64; results are exact, times are not")
    )


def counting(emulator: str, counts: Path) -> list[str]:
    """Arguments of the emulator that count instructions into a file; none where it cannot."""
    plugin = _plugin(emulator)
    return ["-plugin", f"{plugin},out={counts}"] if plugin and "," not in str(counts) else []


@lru_cache(maxsize=4)
def _plugin(emulator: str) -> Path | None:
    """The counting plugin, when it is built and this emulator takes plugins."""
    try:
        plugin, runner = counter_path(), runner_path("aarch64")
    except LiteError:
        return None
    tried = subprocess.run([emulator, "-plugin", plugin, runner, "--version"], capture_output=True)
    return plugin if b"instructions " in tried.stderr else None


def add_counts(profile: dict[str, Any], counts: Path) -> None:
    """The counts at the readings of the clock as numbers of the profile: `instructions` of each
    step and of one whole run, `first_result_instructions` from the start of the process.

    A run of n steps reads the clock n + 2 times: at its start, after every step, at its end; where
    steps take turns (bands) more often. Several threads wait for each other in loops. Then the
    counts say nothing and are left out.
    """
    banded = any(step.get("variant", "").endswith("_band") for step in profile["steps"])
    if profile.get("threads") != 1 or banded or not counts.is_file():
        return
    marks = [int(line) for line in counts.read_text().split()]
    size = len(profile["steps"]) + 2
    if len(marks) < size * int(profile["runs"]):
        return
    last = marks[-size:]
    for step, begin, end in zip(profile["steps"], last, last[1:]):
        step["instructions"] = end - begin
    profile["instructions"] = last[-1] - last[0]
    profile["first_result_instructions"] = marks[len(marks) % size + size - 1]


class EmulatedDevice(ProcessDevice):
    """Runs program files with the AArch64 runner. `cpu` is a CPU model of qemu."""

    times_meaningful = False

    def __init__(self, cpu: str = DEFAULT_CPU) -> None:
        """Raises UsageError when `cpu` cannot be the name of a CPU model."""
        if not re.fullmatch(r"[A-Za-z0-9._,=-]+", cpu) or cpu.startswith("-"):
            raise UsageError(
                tr("{cpu!r} is not the name of a CPU model", cpu=cpu),
                fix=tr("list them"),
                command="qemu-aarch64 -cpu help",
            )
        self.cpu = cpu
        super().__init__("emulated" if cpu == DEFAULT_CPU else f"emulated:{cpu}", "aarch64")

    def command(self, job: Job, folder: Path) -> list[str]:
        state = emulator_usability()
        if not state.usable:
            raise state.error(DeviceError).within(self.name)
        runner, found = super().command(job, folder), emulator()
        if found is None:
            return runner
        # Counting makes the emulator several times slower; a kernel of OpenCL is compiled there.
        count = counting(found, folder / _COUNTS) if job.runs and not job.opencl else []
        root = ["-L", _SYSROOT] if job.libraries else []
        root = self._with_opencl() if job.opencl else root
        return [found, "-cpu", self.cpu, *root, *count, *runner]

    def opencl_command(self) -> list[str]:
        """Raises DeviceError when no OpenCL is set up for it."""
        state = emulator_usability()
        if not state.usable:
            raise state.error(DeviceError).within(self.name)
        command, found = super().opencl_command(), emulator()
        if host_arch() == "aarch64" or found is None:
            return command
        return [found, "-cpu", self.cpu, *self._with_opencl(), *command]

    def _with_opencl(self) -> list[str]:
        """Arguments of the emulator. Raises DeviceError when no OpenCL is set up for it."""
        arguments = arm_opencl.arguments()
        if not arguments:
            raise DeviceError(
                tr("no OpenCL is set up for the emulated device"), where=self.name,
                command="lite devices setup emulated",
            )  # fmt: skip
        return arguments

    def fetch(self, job: Job, folder: Path) -> RunnerResult:
        """Adds `instructions` to the runner's profile and to its steps where they were counted."""
        result = super().fetch(job, folder)
        add_counts(result.profile, folder / _COUNTS)
        return result
