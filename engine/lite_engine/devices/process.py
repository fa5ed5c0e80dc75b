"""Devices on this machine: the runner in a process of its own, under an emulator perhaps."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from .._native import host_arch, runner_path
from ..errors import DeviceError, LiteError
from . import condition
from ._base import (
    RUN_TIMEOUT_S,
    TARGETS,
    RunnerResult,
    StageLog,
    runner_arguments,
    runner_failure,
)


class ProcessDevice:
    """The runner of `arch` started here. Subclasses may put an emulator before it."""

    times_meaningful = True

    def __init__(self, name: str = "local", arch: str | None = None) -> None:
        self.name = name
        self.arch = arch or host_arch()
        self.log = StageLog()

    def target(self) -> str:
        return TARGETS[self.arch]

    def command(self, runner: Path, folder: Path, *, measured: bool) -> list[str]:
        """What starts the runner; `folder` is the run's own, `measured` says that more than the
        answer is wanted of it. Raises DeviceError when it cannot run here."""
        return [str(runner)]

    def read(self, folder: Path, wanted: Sequence[str]) -> RunnerResult:
        """What a run left in its folder. Raises DeviceError when it is damaged."""
        return read_results(self.name, folder, wanted)

    def run_program(
        self,
        program: Path,
        inputs: Mapping[str, np.ndarray],
        wanted: Sequence[str],
        *,
        threads: int = 1,
        runs: int = 0,
        warmup: int = 0,
    ) -> RunnerResult:
        """Raises DeviceError naming the stage."""
        self.log.stages.clear()
        with tempfile.TemporaryDirectory(prefix="lite-process-") as name:
            folder = Path(name)
            with self.log.stage("reach") as stage:
                try:
                    runner = runner_path(self.arch)
                except LiteError as error:
                    raise DeviceError.of(error, where=self.name) from None
                command = self.command(runner, folder, measured=runs > 0)
                stage.detail = " ".join(command)
            with self.log.stage("copy") as stage:
                files = write_inputs(folder, inputs)
                stage.detail = f"{len(files)} inputs"
            args = runner_arguments(
                str(program), files, wanted, name, threads=threads, runs=runs, warmup=warmup
            )
            with self.log.stage("run") as stage:
                before = condition.read_here() if self.times_meaningful else {}
                stage.detail = self._execute([*command, *args])
                after = condition.read_here() if self.times_meaningful else {}
            with self.log.stage("fetch") as stage:
                result = self.read(folder, wanted)
                stage.detail = f"{len(wanted)} arrays"
        result.environment, result.warnings = after, condition.warnings(before, after)
        return result

    def _execute(self, command: list[str]) -> str:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise DeviceError(f"no result after {RUN_TIMEOUT_S} s", where=self.name) from None
        except OSError as error:
            raise DeviceError(f"{command[0]}: {error.strerror}", where=self.name) from None
        if done.returncode:
            raise runner_failure(self.name, done.returncode, done.stderr)
        return done.stderr.strip()


def write_inputs(folder: Path, inputs: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Writes arrays as in0.npy, in1.npy, …; tensor name → path."""
    files = {}
    for i, (name, array) in enumerate(inputs.items()):
        files[name] = str(folder / f"in{i}.npy")
        np.save(files[name], np.asarray(array, order="C"))  # keeps rank 0
    return files


def read_results(device: str, folder: Path, wanted: Sequence[str]) -> RunnerResult:
    """What the runner left in a folder. Raises DeviceError when it is damaged."""
    try:
        arrays = {n: np.load(folder / f"{n}.npy", allow_pickle=False) for n in wanted}
        profile = json.loads((folder / "profile.json").read_text())
    except (OSError, ValueError, EOFError) as error:
        raise DeviceError(
            f"a result is missing or damaged ({error})", where=device, fix="run again"
        ) from None
    if not isinstance(profile, dict) or not isinstance(profile.get("steps"), list):
        raise DeviceError("the runner's profile is damaged", where=device, fix="run again")
    return RunnerResult(arrays, profile)
