"""A fault of the emulated ARM driver costs one layer there, too, and the check names it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from lite_engine import optimize
from lite_engine._native import runner_path
from lite_engine.devices import arm_opencl
from lite_engine.devices.emulated import emulator

from tests.native.opencl.test_layers import network
from tests.tools import arm_opencl as the_persons

pytestmark = [pytest.mark.arm_opencl, pytest.mark.hours]


@pytest.fixture
def driver(tmp_path: Path) -> Path:
    made, source = tmp_path / "libfailing.so", Path(__file__).with_name("failing_driver.c")
    pocl = the_persons() / "sysroot/usr/lib/aarch64-linux-gnu/libpocl.so.2"
    # PoCL asks whether its files exist by faccessat, whose paths the emulator does not look up in
    # the sysroot: loaded by the machine's own path, PoCL names them by that.
    here = f"-Wl,--disable-new-dtags,-rpath,{pocl.parent}"
    command = ["aarch64-linux-gnu-gcc", "-shared", "-fPIC", "-o", made, source, here,
               "-Wl,--no-as-needed", pocl, "-Wl,--allow-shlib-undefined", "-ldl"]  # fmt: skip
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    return made


def test_faults_of_the_emulated_device(
    driver: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "arm-opencl").symlink_to(the_persons())
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))
    model = optimize(network(), targets=["opencl", "arm"]).save(tmp_path / "m.lite")
    runner = runner_path("aarch64", opencl=True)

    def checked(fault: str) -> subprocess.CompletedProcess[str]:
        variables = ("-E", f"LITE_OPENCL_LIBRARY={driver}", "-E", fault)
        variables += ("-E", f"POCL_CACHE_DIR={tmp_path / 'kernels'}")  # nothing compiled before
        command = [emulator(), "-cpu", "max", *arm_opencl.arguments(), *variables]
        command += [runner, model, "--check"]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True)

    for fault, reason in (("KERNEL", "CL_OUT_OF_RESOURCES"), ("LAUNCH", "CL_INVALID_WORK_GROUP")):
        done = checked(f"{fault}_FAILS=softmax")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "'soft' on the CPU: OpenCL: " in done.stderr and reason in done.stderr
        assert "layers: 8 agree with the CPU" in done.stdout
    wrong = checked("LAUNCH_FORGOTTEN=depthwise")
    assert wrong.returncode == 0, wrong.stdout + wrong.stderr
    assert "'dw' on the CPU: f32_conv2d_depthwise__opencl is wrong on this device" in wrong.stderr
