"""The kernel cases on AArch64: one program that `lite_run` executes, emulated where needed."""

import platform
import shutil
import subprocess

import pytest
from lite_engine._native import runner_path
from lite_engine.model_file.program_file import write_program_file

from ..cases import check_outputs, collected, merged

pytestmark = pytest.mark.arm


def runner_command():
    command = [str(runner_path("aarch64"))]
    if platform.machine() == "aarch64":
        return command
    emulator = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    return [str(emulator), "-cpu", "max", *command]


@pytest.mark.parametrize("threads", [1, 3])
def test_all_cases(tmp_path, threads):
    cases = collected()
    plan = merged([case.plan(all_constant=True) for case in cases])
    program = write_program_file(plan, tmp_path / "cases.lite", ("arm",))
    done = subprocess.run(
        [*runner_command(), str(program), "--threads", str(threads), "--output", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    check_outputs(cases, plan, tmp_path)
