"""The four stages of a run that every device goes through, and what the runner leaves behind."""

from __future__ import annotations

import secrets
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lite_messages import tr, trn

from .._native import runner_path
from ..arrays import read_array
from ..documents import parse
from ..errors import DeviceError, LiteError
from . import condition
from ._base import TARGETS, Job, RunnerResult, Stage, StageLog
from .opencl import OpenCLListing, read_listing

#: Opening every library in turn, and an emulated compiler for a trivial kernel.
LIST_TIMEOUT_S = 300


class RunnerDevice(ABC):
    """Runs program files with the static runner. Subclasses say how the runner is reached, where
    its files go and how it is started; each of their functions runs within the stage it names."""

    times_meaningful = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.log = StageLog()

    @abstractmethod
    def arch(self) -> str:
        """The architecture there, as `uname -m` says it."""

    @abstractmethod
    def reach(self, job: Job, folder: Path, stage: Stage) -> list[str]:
        """The command that starts the runner, its files still on this machine. `folder` is the
        run's own here."""

    @abstractmethod
    def copy(self, job: Job, folder: Path, start: list[str], stage: Stage) -> list[str]:
        """Brings everything there; the whole command of the run."""

    @abstractmethod
    def execute(self, job: Job, command: list[str]) -> str:
        """Runs it; what to say about it."""

    @abstractmethod
    def fetch(self, job: Job, folder: Path) -> RunnerResult:
        """The results, brought into `folder`."""

    @abstractmethod
    def condition(self) -> dict[str, Any]:
        """What can be read of the device's condition."""

    def leave(self, folder: Path) -> None:  # noqa: B027  not every device has something to do
        """Removes what the run left there."""

    def target(self) -> str:
        """Raises DeviceError when the device cannot be reached."""
        return TARGETS[self.arch()]

    def run_program(self, job: Job) -> RunnerResult:
        """Raises DeviceError naming the stage."""
        self.log.stages.clear()
        with tempfile.TemporaryDirectory(prefix="lite-device-") as place:
            folder = Path(place) / f"run-{secrets.token_hex(8)}"
            folder.mkdir()
            with self.log.stage("reach") as stage:
                start = self.reach(job, folder, stage)
            try:
                with self.log.stage("copy") as stage:
                    command = self.copy(job, folder, start, stage)
                with self.log.stage("run") as stage:
                    before = condition.cooled(self.condition) if job.runs else self.condition()
                    stage.detail = self.execute(job, command)
                    after = self.condition()
                with self.log.stage("fetch") as stage:
                    result = self.fetch(job, folder)
                    stage.detail = trn("{n} array", "{n} arrays", len(job.wanted))
            finally:
                self.leave(folder)
        result.environment = {**after, **warm_up_of(result.profile)}
        result.warnings = condition.warnings(before, after)
        return result

    @abstractmethod
    def list_opencl(self) -> str:
        """What `lite_run_opencl --list-devices` prints there. Raises DeviceError when it does not
        start."""

    def opencl(self) -> OpenCLListing:
        """The libraries and devices of OpenCL there. Never raises DeviceError: a list that cannot
        be made says why."""
        try:
            return read_listing(self.name, self.list_opencl())
        except DeviceError as error:
            return OpenCLListing(failure=str(error))

    def runner(self, *, opencl: bool = False) -> Path:
        """The runner for the device's architecture, on this machine; with `opencl` the one that
        opens the libraries of the device."""
        try:
            return runner_path(self.arch(), opencl=opencl)
        except LiteError as error:
            raise DeviceError.of(error, where=self.name) from None


def warm_up_of(profile: Mapping[str, Any]) -> dict[str, Any]:
    """How many runs came before the timed ones, and whether their times were steady at the end."""
    told = profile.get("warm_up")
    if not isinstance(told, dict):
        return {}
    return {"warm_up_runs": int(told["runs"]), "warm_up_steady": bool(told["steady"])}


def write_inputs(folder: Path, inputs: Mapping[str, np.ndarray]) -> dict[str, Path]:
    """Writes arrays as in0.npy, in1.npy, …; tensor name → path."""
    files = {name: folder / f"in{i}.npy" for i, name in enumerate(inputs)}
    for name, array in inputs.items():
        np.save(files[name], np.asarray(array, order="C"))  # keeps rank 0
    return files


def read_results(device: str, folder: Path, wanted: Sequence[str]) -> RunnerResult:
    """What the runner left in a folder. Raises DeviceError when it is damaged."""
    try:
        arrays = {n: read_array(folder / f"{n}.npy") for n in wanted}
        profile = parse((folder / "profile.json").read_bytes(), "profile").value
    except (OSError, LiteError) as error:
        raise DeviceError(
            tr("a result is missing or damaged ({error})", error=error),
            where=device,
            fix=tr("run again"),
        ) from None
    if not isinstance(profile, dict) or not isinstance(profile.get("steps"), list):
        raise DeviceError(tr("the runner's profile is damaged"), where=device, fix=tr("run again"))
    return RunnerResult(arrays, profile)
