"""A device behind a transport (ssh, adb): the runner and programs are pushed once, by their hash.

On the device, below the transport's `home`: `files/<sha256>` (runner and programs; content
never changes under a name; those used last are kept) and `run-<random>/`, which holds the inputs
and results of one run and is removed at its end.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from lite_messages import tr, trn

from ..errors import DeviceError
from ..files import sha256
from . import condition
from ._base import RUN_TIMEOUT_S, TARGETS, Job, RunnerResult, Stage, runner_failure
from .runner import LIST_TIMEOUT_S, RunnerDevice, read_results, write_inputs

QUICK_S = 30
COPY_TIMEOUT_S = 900
#: Removes a run's folder and all but the files used last.
_TIDY = 'rm -rf "$1"; cd "$2" && ls -t | tail -n +33 | xargs rm -f'


@dataclass
class Answer:
    """What a command on the device gave."""

    code: int
    stdout: str
    stderr: str


class Transport(Protocol):
    """How a device is reached. A lost connection or a missing tool raises DeviceError with the
    fix; a command that fails there is an Answer."""

    name: str
    home: str

    def call(self, command: Sequence[str], timeout_s: float) -> Answer:
        """Runs a command there; every word reaches it as it is."""
        ...

    def push(self, local: Path, remote: str, timeout_s: float) -> Answer: ...

    def pull(self, remote: str, local: Path, timeout_s: float) -> Answer: ...


class RemoteDevice(RunnerDevice):
    """Runs program files on a device of its own."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(transport.name)
        self.transport = transport
        self._arch: str | None = None

    def target(self) -> str:
        if self._arch is None:
            self.log.stages.clear()
            with self.log.stage("reach"):
                self.arch()
        return super().target()

    def arch(self) -> str:
        if self._arch is None:
            arch = self._good("uname", ["uname", "-m"], QUICK_S).stdout.strip()
            if arch not in TARGETS:
                raise DeviceError(
                    tr(
                        "its processor is {arch!r}, there are runners for aarch64, "
                        "armv7 and x86_64",
                        arch=arch[:40],
                    ),
                    where=self.name,
                )
            own = {"arm64": "aarch64", "amd64": "x86_64", "armv7l": "armv7", "armv8l": "armv7"}
            self._arch = own.get(arch, arch)
        return self._arch

    def reach(self, job: Job, folder: Path, stage: Stage) -> list[str]:
        stage.detail = self.arch()
        return [str(self.runner(opencl=job.opens_libraries))]

    def copy(self, job: Job, folder: Path, start: list[str], stage: Stage) -> list[str]:
        local, run = write_inputs(folder, job.inputs), self._there(folder)
        self._good("mkdir", ["mkdir", "-p", f"{self.transport.home}/files", run])
        (runner, new), (program, more) = self._send(Path(start[0])), self._send(job.program)
        self._good("chmod", ["chmod", "+x", runner])
        given = {name: f"{run}/{file.name}" for name, file in local.items()}
        libraries = [self._send(path) for path in job.libraries]
        sent = new + more + sum(size for _, size in libraries)
        sent += sum(self._push(file, given[name]) for name, file in local.items())
        stage.detail = (
            tr("{sent:.2f} MB sent", sent=sent / 1000000.0)
            if sent
            else tr("all files were there already")
        )
        cache = f"{self.transport.home}/kernels"
        if job.opencl:
            self._good("mkdir", ["mkdir", "-p", cache])
        there = [path for path, _ in libraries]
        return [runner, *job.arguments(program, given, run, there, cache)]

    def execute(self, job: Job, command: list[str]) -> str:
        done = self.transport.call(command, RUN_TIMEOUT_S)
        if done.code:
            raise runner_failure(self.name, done.code, done.stderr)
        runs = trn("{n} run", "{n} runs", job.runs)
        return f"{runs}, {trn('{n} thread', '{n} threads', job.threads)}"

    def fetch(self, job: Job, folder: Path) -> RunnerResult:
        for file in [*(f"{n}.npy" for n in job.wanted), "profile.json"]:
            remote = f"{self._there(folder)}/{file}"
            answer = self.transport.pull(remote, folder / file, COPY_TIMEOUT_S)
            self._check(tr("{file} cannot be fetched", file=file), answer)
        return read_results(self.name, folder, job.wanted)

    def list_opencl(self) -> str:
        runner = self.runner(opencl=True)
        self._good("mkdir", ["mkdir", "-p", f"{self.transport.home}/files"])
        there, _ = self._send(runner)
        self._good("chmod", ["chmod", "+x", there])
        done = self.transport.call([there, "--list-devices"], LIST_TIMEOUT_S)
        if done.code:
            raise runner_failure(self.name, done.code, done.stderr)
        return done.stdout

    def condition(self) -> dict[str, Any]:
        command = condition.shell_command()
        return condition.parse_output(self.transport.call(command, QUICK_S).stdout)

    def leave(self, folder: Path) -> None:
        """Removes a run's folder and old files; a device that is gone keeps them, which harms
        nothing."""
        try:
            run, files = self._there(folder), f"{self.transport.home}/files"
            self.transport.call(["sh", "-c", _TIDY, "sh", run, files], QUICK_S)
        except DeviceError:
            self._arch = None  # look again next time

    def _there(self, folder: Path) -> str:
        """The run's folder on the device."""
        return f"{self.transport.home}/{folder.name}"

    def _send(self, path: Path) -> tuple[str, int]:
        """Pushes a file unless its content is there; (path there, bytes sent)."""
        size = path.stat().st_size
        kind = path.suffix if path.suffix == ".cl" else ""  # the runner tells them apart by it
        remote = f"{self.transport.home}/files/{sha256(path)}{kind}"
        if self._size(remote) == size:
            self._good("touch", ["touch", "-c", remote])  # recently used: kept
            return remote, 0
        part = f"{remote}.{secrets.token_hex(4)}.part"
        self._push(path, part)
        self._good("mv", ["mv", "-f", part, remote])
        return remote, size

    def _push(self, path: Path, remote: str) -> int:
        """Bytes sent; a file that did not arrive whole is removed there."""
        size = path.stat().st_size
        answer = self.transport.push(path, remote, COPY_TIMEOUT_S)
        if answer.code or self._size(remote) != size:
            self.transport.call(["rm", "-f", remote], QUICK_S)
            self._check(
                tr("{path} ({size} bytes) was not copied whole", path=path.name, size=size),
                answer,
                failed=True,
            )
        return size

    def _size(self, remote: str) -> int:
        """Bytes of a file there, -1 without it."""
        answer = self.transport.call(["wc", "-c", remote], QUICK_S)
        words = answer.stdout.split()
        return int(words[0]) if not answer.code and words and words[0].isdigit() else -1

    def _good(self, what: str, command: Sequence[str], timeout_s: float = QUICK_S) -> Answer:
        answer = self.transport.call(command, timeout_s)
        self._check(tr("{what} failed", what=what), answer)
        return answer

    def _check(self, what: str, answer: Answer, *, failed: bool = False) -> None:
        if not answer.code and not failed:
            return
        lines = [x for x in answer.stderr.strip().splitlines() if x.strip()]
        said = f": {lines[-1]}" if lines else ""
        fix = ""
        if "No space left" in answer.stderr or "write error" in answer.stderr:
            fix = tr(
                "free space on the device's disk; {home} can be removed", home=self.transport.home
            )
        elif "Read-only" in answer.stderr or "Permission denied" in answer.stderr:
            fix = tr("{home} must be writable on the device", home=self.transport.home)
        raise DeviceError(f"{what}{said}", where=self.name, fix=fix)
