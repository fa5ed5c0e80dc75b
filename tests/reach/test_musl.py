"""The builds for musl (`scripts/native.sh TARGET`) give every kernel case: the static runner, and
the one that musl's own loader starts."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from lite_engine.model_file.program_file import write_program_file

from ..native.cases import check_outputs, collected, merged

pytestmark = pytest.mark.slow  # some 2,000 arrays are written and compared

BUILD = Path(__file__).parents[2] / "build"
LOADER = Path("/lib/ld-musl-x86_64.so.1")


def built(target: str, name: str) -> str:
    path = BUILD / target / name
    if not path.is_file():
        pytest.skip(f"no build/{target}/{name}; scripts/native.sh {target}")
    return str(path)


def static_x86() -> tuple[str, list[str]]:
    return "x86", [built("x86_64-linux-musl", "lite_run")]


def loaded_x86() -> tuple[str, list[str]]:
    program = built("x86_64-linux-musl", "lite_run_opencl")
    if not LOADER.exists():
        pytest.skip("no loader of musl; sudo apt-get install musl")
    return "x86", [str(LOADER), program]


def static_arm() -> tuple[str, list[str]]:
    program = built("aarch64-linux-musl", "lite_run")
    emulator = shutil.which("qemu-aarch64")
    if emulator is None:
        pytest.skip("no qemu-aarch64; sudo apt-get install qemu-user")
    return "arm", [emulator, "-cpu", "max", program]


@pytest.mark.parametrize("start", [static_x86, loaded_x86, static_arm])
def test_all_kernel_cases(start, tmp_path):
    target, command = start()
    cases = collected()
    plan = merged([case.plan(all_constant=True) for case in cases])
    program = write_program_file(plan, tmp_path / "cases.lite", (target,))
    words = [*command, str(program), "--threads", "2", "--output", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    check_outputs(cases, plan, tmp_path)
