"""A device runs a program file with the static runner and hands back arrays and times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np


@dataclass
class RunnerResult:
    """Arrays by tensor name, in physical order, and the runner's own profile (JSON as it wrote
    it)."""

    arrays: dict[str, np.ndarray]
    profile: dict[str, Any] = field(default_factory=dict)


class Device(Protocol):
    """Somewhere a program can run. Failures raise DeviceError naming the stage: reach, copy,
    run, fetch."""

    name: str
    #: False under emulation: durations mean nothing there
    times_meaningful: bool

    def run_program(
        self,
        program: Path,
        inputs: Mapping[str, np.ndarray],
        wanted: Sequence[str],
        *,
        threads: int = 1,
        runs: int = 1,
        warmup: int = 0,
    ) -> RunnerResult: ...


def runner_arguments(
    program: str,
    inputs: Mapping[str, str],
    wanted: Sequence[str],
    folder: str,
    *,
    threads: int,
    runs: int,
    warmup: int,
) -> list[str]:
    """Arguments of `lite_run` that run a program file and leave every wanted tensor in `folder`."""
    args = [program, "--threads", str(threads), "--runs", str(runs), "--warmup", str(warmup)]
    for name, path in inputs.items():
        args += ["--input", f"{name}={path}"]
    if wanted:
        args += ["--tap", ",".join(wanted), "--tap-dir", folder]
    return [*args, "--profile", f"{folder}/profile.json"]
