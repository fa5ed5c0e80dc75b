"""Devices on this machine: the runner in a process of its own, under an emulator perhaps."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from lite_messages import tr, trn

from .. import settings
from .._native import host_arch
from ..errors import DeviceError
from . import condition
from ._base import RUN_TIMEOUT_S, Job, RunnerResult, Stage, runner_failure
from .runner import LIST_TIMEOUT_S, RunnerDevice, read_results, write_inputs


class ProcessDevice(RunnerDevice):
    """The runner of `arch` started here. Subclasses may put an emulator before it."""

    def __init__(self, name: str = "local", arch: str | None = None) -> None:
        super().__init__(name)
        self._arch = arch or host_arch()

    def arch(self) -> str:
        return self._arch

    def command(self, job: Job, folder: Path) -> list[str]:
        """What starts the runner. Raises DeviceError when it cannot run here."""
        return [str(self.runner(opencl=job.opens_libraries))]

    def reach(self, job: Job, folder: Path, stage: Stage) -> list[str]:
        command = self.command(job, folder)
        stage.detail = " ".join(command)
        return command

    def copy(self, job: Job, folder: Path, start: list[str], stage: Stage) -> list[str]:
        files = {name: str(path) for name, path in write_inputs(folder, job.inputs).items()}
        stage.detail = trn("{n} input", "{n} inputs", len(files))
        libraries = [str(path) for path in job.libraries]
        cache = str(settings.cache_dir())
        return [*start, *job.arguments(str(job.program), files, str(folder), libraries, cache)]

    def execute(self, job: Job, command: list[str]) -> str:
        return self._call(command, RUN_TIMEOUT_S).stderr.strip()

    def opencl_command(self) -> list[str]:
        """What starts the runner that opens OpenCL. Raises DeviceError when it cannot run here."""
        return [str(self.runner(opencl=True))]

    def list_opencl(self) -> str:
        return self._call([*self.opencl_command(), "--list-devices"], LIST_TIMEOUT_S).stdout

    def _call(self, command: list[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=timeout_s
            )
        except subprocess.TimeoutExpired:
            raise DeviceError(
                tr("no result after {timeout_s} s", timeout_s=timeout_s), where=self.name
            ) from None
        except OSError as error:
            raise DeviceError(f"{command[0]}: {error.strerror}", where=self.name) from None
        if done.returncode:
            raise runner_failure(self.name, done.returncode, done.stderr)
        return done

    def fetch(self, job: Job, folder: Path) -> RunnerResult:
        return read_results(self.name, folder, job.wanted)

    def condition(self) -> dict[str, Any]:
        return condition.read_here() if self.times_meaningful else {}
