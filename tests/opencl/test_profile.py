"""Launches for devices that are not there."""

from __future__ import annotations

import subprocess
import sys

import pytest
from lite_engine.backends.opencl.profile import PROFILES, class_of
from lite_engine.backends.opencl.registry import Target
from lite_engine.backends.opencl.steps import launches_of
from lite_engine.plan import make_plan

from tests.small_models import Builder

_WITHOUT_PYOPENCL = """
import sys
sys.modules["pyopencl"] = None  # an import of it fails
from tests.opencl.test_profile import files
from lite_engine.backends.opencl.profile import PROFILES
for name in PROFILES:
    assert "conv" in "".join(files(name)), name
"""


def files(name: str, precision: str = "fp32") -> list[str]:
    """Kernel files that a convolution and a softmax take on a device of PROFILES."""
    b = Builder((1, 16, 12, 12))
    graph = b.done(b.add("Softmax", b.conv(b.x, 16, 32, 3), axis=1))
    plan = make_plan(graph, "opencl", precision=precision)
    steps = [s for s in plan.steps if s.backend == "opencl" and s.op != "Copy"]
    target = Target(PROFILES[name])
    return [launch.file for s in steps for launch in launches_of(s, plan, target)]


def test_launches_need_no_opencl(root) -> None:
    subprocess.run([sys.executable, "-c", _WITHOUT_PYOPENCL], check=True, cwd=root)


@pytest.mark.parametrize(
    "name, file",
    [
        ("cpu, 8 lanes", "conv"),
        ("gpu", "conv_tile"),
        ("nvidia with matrix units", "conv_mma"),
        ("adreno", "conv_image"),
    ],
)
def test_a_class_takes_its_own_kernels(name: str, file: str) -> None:
    assert file in files(name, "fp16")


@pytest.mark.parametrize(
    "said, wanted",
    [
        (("CPU", "Portable Computing Language", "pthread-znver4", "AuthenticAMD"), "cpu"),
        (("GPU", "NVIDIA CUDA", "NVIDIA H200", "NVIDIA Corporation"), "nvidia"),
        (("GPU", "Portable Computing Language", "NVIDIA H200", "NVIDIA Corporation"), "gpu"),
        (("GPU", "QUALCOMM Snapdragon(TM)", "QUALCOMM Adreno(TM)", "QUALCOMM"), "adreno"),
        (("GPU", "ARM Platform", "Mali-G78 r0p1", "ARM"), "mali"),
        (("GPU", "AMD Accelerated Parallel Processing", "gfx1030", "AMD"), "gpu"),
    ],
)
def test_class_of_a_device(said: tuple[str, str, str, str], wanted: str) -> None:
    assert class_of(*said) == wanted
