"""The AArch64 runner under qemu: right numbers on any machine, times that mean nothing."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from .._native import runner_path
from ..backends import Usability
from ..errors import DeviceError, LiteError
from ._base import RunnerResult, runner_arguments

#: Any CPU model of qemu; "max" has every feature the runner knows.
DEFAULT_CPU = "max"
TIMEOUT_S = 1800


def emulator() -> str | None:
    return shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")


def emulator_usability() -> Usability:
    """Whether AArch64 programs run here. On an AArch64 machine they do without an emulator."""
    if platform.machine() not in ("aarch64", "arm64") and emulator() is None:
        return Usability(False, "qemu-aarch64 is not installed", "sudo apt-get install qemu-user")
    try:
        runner_path("aarch64")
    except LiteError as error:
        return Usability(False, "there is no AArch64 runner", str(error))
    return Usability(True, "AArch64 runner under qemu-aarch64; times are not meaningful")


class EmulatedDevice:
    """Runs program files with the AArch64 runner. `cpu` is a CPU model of qemu."""

    times_meaningful = False

    def __init__(self, cpu: str = DEFAULT_CPU) -> None:
        self.cpu = cpu
        self.name = "emulated" if cpu == DEFAULT_CPU else f"emulated:{cpu}"

    def run_program(
        self,
        program: Path,
        inputs: Mapping[str, np.ndarray],
        wanted: Sequence[str],
        *,
        threads: int = 1,
        runs: int = 1,
        warmup: int = 0,
    ) -> RunnerResult:
        """Raises DeviceError naming the stage."""
        state = emulator_usability()
        if not state.usable:
            raise DeviceError(f"{self.name}: {state.reason}; {state.fix}", "reach")
        with tempfile.TemporaryDirectory(prefix="lite-emulated-") as folder:
            files = {}
            for i, (name, array) in enumerate(inputs.items()):
                files[name] = f"{folder}/in{i}.npy"
                np.save(files[name], np.asarray(array, order="C"))  # keeps rank 0
            args = runner_arguments(
                str(program), files, wanted, folder, threads=threads, runs=runs, warmup=warmup
            )
            self._execute([str(runner_path("aarch64")), *args])
            arrays = {n: np.load(f"{folder}/{n}.npy", allow_pickle=False) for n in wanted}
            profile = json.loads(Path(folder, "profile.json").read_text())
        return RunnerResult(arrays, profile)

    def _execute(self, command: list[str]) -> None:
        found = emulator()
        if found is not None:
            command = [found, "-cpu", self.cpu, *command]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise DeviceError(f"{self.name}: no result after {TIMEOUT_S} s", "run") from None
        if done.returncode:
            lines = [x for x in done.stderr.strip().splitlines() if x] or ["no message"]
            raise DeviceError(
                f"{self.name}: the runner ended with {done.returncode}: {lines[-1]}", "run"
            )
