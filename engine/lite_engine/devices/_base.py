"""A device runs a program file with the static runner and hands back arrays and times."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from lite_messages import tr

from ..errors import DeviceError
from .opencl import OpenCLListing

#: The stages of every run on a device, in order.
STAGES = ("reach", "copy", "run", "fetch")
RUN_TIMEOUT_S = 1800
#: CPU target by architecture, as `uname -m` says it.
TARGETS = {
    "x86_64": "x86", "amd64": "x86", "aarch64": "arm", "arm64": "arm", "armv7": "arm",
    "armv7l": "arm", "armv8l": "arm", "wasm32": "wasm",
}  # fmt: skip


@dataclass(frozen=True)
class Job:
    """One call of the runner: a program file, its inputs and the tensors that are wanted, by name.
    `runs` 0 wants the answer only; from 1 on the program is measured as well. `libraries` are those
    with kernels of its custom operators. `opencl` says that the program is one for OpenCL."""

    program: Path
    inputs: Mapping[str, np.ndarray]
    wanted: Sequence[str]
    threads: int = 1
    runs: int = 0
    warmup: int = 0
    libraries: Sequence[Path] = ()
    opencl: bool = False
    #: Seconds at most to warm up until the times of runs do not change any more; 0: `warmup` runs.
    steady_s: int = 0

    @property
    def opens_libraries(self) -> bool:
        """Whether a runner that is linked statically cannot do it."""
        return self.opencl or bool(self.libraries)

    def arguments(
        self,
        program: str,
        inputs: Mapping[str, str],
        folder: str,
        libraries: Sequence[str] = (),
        cache: str = "",
    ) -> list[str]:
        """What `lite_run` takes where the program, the inputs (by name), the libraries, the
        folder for every result and that for compiled kernels have these paths."""
        args = [program, "--threads", str(self.threads), "--runs", str(max(self.runs, 1))]
        args += ["--warmup", str(self.warmup)]
        if self.runs and self.steady_s:
            args += ["--steady", str(self.steady_s)]
        if self.opencl:
            args += ["--backend", "opencl", *(["--cache-dir", cache] if cache else [])]
        elif self.runs:  # a thread that moves between cores of two sizes measures neither
            args += ["--pin"]
        for library in libraries:
            args += ["--library", library]
        for name, path in inputs.items():
            args += ["--input", f"{name}={path}"]
        if self.wanted:
            args += ["--tap", ",".join(self.wanted), "--tap-dir", folder]
        return [*args, "--profile", f"{folder}/profile.json"]


@dataclass
class RunnerResult:
    """Arrays by tensor name, in physical order; the runner's own profile (JSON as it wrote it);
    what could be read of the device's condition, and warnings about it."""

    arrays: dict[str, np.ndarray]
    profile: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


@dataclass
class Stage:
    """One stage of the last run: state is running, done or failed."""

    name: str
    state: str = "running"
    detail: str = ""
    ms: float = 0.0


class StageLog:
    """The stages of a device's last run."""

    def __init__(self) -> None:
        self.stages: list[Stage] = []

    @contextmanager
    def stage(self, name: str) -> Iterator[Stage]:
        """Times a stage; a DeviceError inside gets the stage's name."""
        current = Stage(name)
        self.stages.append(current)
        began = time.perf_counter()
        try:
            yield current
            current.state = "done"
        except DeviceError as error:
            current.state, current.detail = "failed", str(error)
            error.stage = name
            raise
        finally:
            current.ms = (time.perf_counter() - began) * 1e3
            if current.state == "running":
                current.state = "failed"


class Device(Protocol):
    """Somewhere a program can run. Failures raise DeviceError naming the stage: reach, copy,
    run, fetch."""

    def __hash__(self) -> int: ...

    name: str
    #: False under emulation: durations mean nothing there
    times_meaningful: bool
    log: StageLog

    def target(self) -> str:
        """The CPU target there: "x86", "arm" or "wasm".

        Raises DeviceError when it cannot be reached."""
        ...

    def arch(self) -> str:
        """The architecture there, as the folders of runners are named."""
        ...

    def run_program(self, job: Job) -> RunnerResult: ...

    def opencl(self) -> OpenCLListing: ...


def runner_failure(device: str, code: int, stderr: str) -> DeviceError:
    """What the runner's exit code and messages mean."""
    lines = [x for x in stderr.strip().splitlines() if x.strip()]
    said = lines[-1].removeprefix("error: ") if lines else tr("it printed no message")
    signal = -code if code < 0 else code - 128 if code > 128 else 0
    if signal == 9:
        return DeviceError(
            tr("the runner was killed (signal 9), possibly because memory ran out"),
            where=device,
            fix=tr("free memory on the device, or use fewer threads"),
            stage="run",
        )
    if signal:
        return DeviceError(
            tr("the runner ended with signal {signal}: {said}", signal=signal, said=said),
            where=device,
            stage="run",
        )
    if code == 127:
        return DeviceError(
            tr("the runner does not start: {said}", said=said), where=device, stage="run"
        )
    return DeviceError(tr("the runner failed: {said}", said=said), where=device, stage="run")
