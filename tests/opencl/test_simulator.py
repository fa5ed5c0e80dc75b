"""The kernels' own tests again under Oclgrind, which sees every access: none may be out of bounds,
and no two work-items may race."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools import simulator

pytestmark = [pytest.mark.opencl, pytest.mark.simulator]

PLANTED = """
import numpy as np, pyopencl as cl
context = cl.create_some_context(interactive=False)
queue = cl.CommandQueue(context)
y = cl.Buffer(context, cl.mem_flags.READ_WRITE, 16)
program = cl.Program(context, '''
kernel void beyond(global int *y) { y[get_global_id(0) + 1] = 1; }
kernel void race(global int *y) { y[0] = get_global_id(0); }
''').build()
program.KERNEL(queue, (4,), (2,), y)
queue.finish()
"""


def simulated(args: list[str], root: Path, log: Path) -> str:
    """What the simulator reports of a Python process; it must end well."""
    library = simulator()
    assert library is not None
    env = {
        **os.environ, "OCL_ICD_VENDORS": library, "OCLGRIND_LOG": str(log),
        "OCLGRIND_DATA_RACES": "1", "OCLGRIND_CHECK_API": "1", "LITE_TEST_REQUIRE": "opencl",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, *args], env=env, cwd=root, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    return log.read_text() if log.exists() else ""


@pytest.mark.parametrize("kernel, found", [("beyond", "Invalid write"), ("race", "data race")])
def test_it_finds_what_was_planted(kernel: str, found: str, root: Path, tmp_path: Path) -> None:
    code = PLANTED.replace("KERNEL", kernel)
    assert found in simulated(["-c", code], root, tmp_path / "log")


#: 36 products by a simulated matrix unit; its tiles are those of the tests beside it.
TOO_LONG = "tests/opencl/test_tiles.py::test_winograd_on_matrix_units_without_them"


#: The text of a tile is the same for all sizes; simulated, those of 128 take as long as all others.
#: Kernels in halves read where those in floats do; larger heads and groups are more of the same.
MORE = "half_storage or group_sizes or attention-large"
WITHOUT_LARGE = ["--deselect", TOO_LONG, "-k", f"not 128 and not ({MORE})"]


def clean(file: str, chosen: list[str], root: Path, folder: Path) -> None:
    args = ["-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/opencl/{file}", *chosen]
    report = simulated(args, root, folder / "log")
    assert not report, report[:3000]


@pytest.mark.sweep
@pytest.mark.parametrize("file", ["test_kernels.py", "test_tiles.py", "test_images.py"])
def test_kernels_are_clean(file: str, root: Path, tmp_path: Path) -> None:
    clean(file, WITHOUT_LARGE, root, tmp_path)


@pytest.mark.hours
def test_large_tiles_are_clean(root: Path, tmp_path: Path) -> None:
    clean("test_tiles.py", ["-k", "128"], root, tmp_path)


@pytest.mark.hours
def test_more_kernels_are_clean(root: Path, tmp_path: Path) -> None:
    clean("test_kernels.py", ["-m", "hours or not hours", "-k", MORE], root, tmp_path)
