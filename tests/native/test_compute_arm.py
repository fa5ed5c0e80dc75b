"""The compute kernels on AArch64: all cases in one program that `lite_run` runs, emulated."""

from __future__ import annotations

import platform
import shutil
import subprocess

import numpy as np
import pytest
from lite_engine._native import runner_path
from lite_engine.model_file.program_file import tensor_file_name, write_program_file
from lite_engine.plan.model import Plan

from . import test_compute_f32 as f32
from . import test_compute_int8 as int8
from .cases import merged
from .tiny import one_step_plan

pytestmark = pytest.mark.arm


def run_on_arm(plan: Plan, folder, isa: str) -> list[np.ndarray]:
    """Outputs of a program without inputs, for one instruction set."""
    program = write_program_file(plan, folder / "cases.lite", ("arm",))
    command = [str(runner_path("aarch64")), str(program), "--max-isa", isa, "--threads", "2",
               "--output", str(folder)]
    if platform.machine() != "aarch64":
        emulator = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
        command = [str(emulator), "-cpu", "max", *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [np.load(folder / f"{tensor_file_name(i)}.npy") for i in plan.outputs]


def test_float_kernels(tmp_path):
    cases = [f32.conv_case(*c) for c in f32.CONVS]
    plans = [
        one_step_plan(op, c[0], inputs, [np.zeros(want.shape, np.float32)], attrs,
                      range(len(inputs)))
        for c, (op, inputs, attrs, want) in zip(f32.CONVS, cases)
    ]
    for got, c, case in zip(run_on_arm(merged(plans), tmp_path, "neon"), f32.CONVS, cases):
        f32.close(got, case[3], 1e-4 if c[0] == f32.W43 else 3e-5)


@pytest.mark.parametrize("isa", ["neon", "neondot", "neoni8mm"])
def test_integer_kernels(isa, tmp_path):
    cases = [int8.int_conv_case(*c) for c in int8.CONVS]
    plans = [
        one_step_plan("QLinearConv", c[0], inputs, [np.zeros_like(want)], attrs,
                      range(len(inputs)))
        for c, (inputs, attrs, want) in zip(int8.CONVS, cases)
    ]
    for got, (_, _, want) in zip(run_on_arm(merged(plans), tmp_path, isa), cases):
        assert np.array_equal(got, want)
