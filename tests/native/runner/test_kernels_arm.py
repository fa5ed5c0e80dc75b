"""The kernel cases on AArch64: one program that `lite_run` executes, emulated where needed."""

import platform
import shutil
import subprocess

import numpy as np
import pytest
from lite_engine._native import runner_path
from lite_engine.model_file.program_file import tensor_file_name, write_program_file

from ..cases import collected, merged
from ..tiny import assert_close

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
    names = iter(tensor_file_name(i) for i in plan.outputs)
    wrong = []
    for case in cases:
        for wanted in case.wanted:
            got = np.load(tmp_path / f"{next(names)}.npy")
            try:
                assert_close(got, wanted, case.tolerance, f"{case.kernel} {case.op} {case.attrs}")
            except AssertionError as error:
                wrong.append(str(error))
    assert not wrong, f"{len(wrong)} wrong; first: {wrong[0]}"
