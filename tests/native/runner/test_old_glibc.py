"""Dynamic products start where glibc is old: no function of a version after 2.17."""

from pathlib import Path

import numpy as np
import pytest
from lite_engine._native import library_path, runner_path
from lite_engine.devices.emulated import emulator

from scripts import binaries

from ..runtime.test_runtime import X, chain
from .test_lite_run import run, write

#: The cross compiler's own C library, which stands in for a board's.
LIBRARIES = Path("/usr/aarch64-linux-gnu")


@pytest.mark.parametrize(
    "arch",
    [pytest.param("aarch64", marks=pytest.mark.arm), pytest.param(None, marks=pytest.mark.cpu)],
)
def test_no_function_is_newer_than_2_17(arch):
    for path in (runner_path(arch, opencl=True), library_path(arch)):
        found = binaries.read(path.read_bytes())
        assert found.minimum == (2, 17)
        needed = {name for name in found.needs if not name.startswith("ld-linux-")}
        assert needed == {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0"}


@pytest.mark.arm
def test_it_runs(tmp_path):
    """The same numbers as the static runner, with threads."""
    found = emulator()
    if found is None or not (LIBRARIES / "lib" / "ld-linux-aarch64.so.1").exists():
        pytest.skip("no emulator with a C library; sudo apt-get install g++-aarch64-linux-gnu")
    model = write(tmp_path / "m.lite", chain("Neg", "Exp"), "arm")
    np.save(tmp_path / "x.npy", X)
    answers = []
    for name, opencl in (("static", False), ("dynamic", True)):
        runner = [found, "-L", str(LIBRARIES), str(runner_path("aarch64", opencl=opencl))]
        options = ["--input", f"x={tmp_path}/x.npy", "--output", tmp_path / name, "--threads", 3]
        done = run(runner, model, *options)
        assert done.returncode == 0, done.stderr
        (file,) = (tmp_path / name).glob("*.npy")
        answers.append(np.load(file))
    np.testing.assert_array_equal(*answers)
