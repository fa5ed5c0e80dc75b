"""Products for a board start where glibc is old: no function of a version after 2.17."""

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from lite_engine._native import library_path, runner_path
from lite_engine.devices.emulated import emulator

from ..runtime.test_runtime import X, chain
from .test_lite_run import run, write

pytestmark = pytest.mark.arm
#: The cross compiler's own C library, which stands in for a board's.
LIBRARIES = Path("/usr/aarch64-linux-gnu")


@pytest.mark.parametrize("product", ["runner", "library"])
def test_versions(product):
    path = runner_path("aarch64", opencl=True) if product == "runner" else library_path("aarch64")
    tool = shutil.which("readelf")
    if tool is None:
        pytest.skip("no readelf; sudo apt-get install binutils")
    command = [tool, "--wide", "-d", "-V", str(path)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    versions = {int(n) for n in re.findall(r"GLIBC_2\.(\d+)", text)}
    assert versions == {17}
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", text))
    assert needed == {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0"}


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
