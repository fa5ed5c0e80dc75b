"""What a program needs of a device beyond OpenCL 1.2: written down with it, and asked for."""

from __future__ import annotations

import pytest
from lite_engine.backends.cpu.native import NativeProgram
from lite_engine.backends.opencl.cases.integers import conv
from lite_engine.backends.opencl.native_plan import NEEDS, encode_opencl
from lite_engine.backends.opencl.profile import PROFILES
from lite_engine.backends.opencl.registry import Target
from lite_engine.errors import ModelFormatError
from lite_engine.ir import Graph
from lite_engine.plan import make_plan
from lite_engine.plan.program import WeightTable

from tests.opencl import tiny
from tests.small_models import Builder

_NEEDS_AT = 10  # the header is magic, u32 version, u8 device_class, lanes, needs


def floats() -> Graph:
    b = Builder((1, 16, 8, 8), "floats")
    return b.done(b.conv(b.x, 16, 16, 3))


@pytest.mark.parametrize(
    ("profile", "integers", "needed"),
    [
        ("mali", True, {"fp16", "khr"}), ("mali", False, {"fp16"}),
        ("adreno", True, {"fp16", "khr"}), ("gpu", True, {"fp16"}), ("cpu, 8 lanes", True, set()),
        ("nvidia with matrix units", True, {"fp16", "matrix_units"}),
    ],
)  # fmt: skip
def test_a_program_names_the_extensions_that_it_uses(profile, integers, needed) -> None:
    plan = make_plan(conv((1, 16, 8, 8), 16, 3) if integers else floats(), "opencl")
    data = encode_opencl(plan, Target(PROFILES[profile]), WeightTable())
    assert {name for name, bit in NEEDS.items() if data[_NEEDS_AT] & bit} == needed


@pytest.mark.opencl
@pytest.mark.cpu
@pytest.mark.parametrize(
    ("bit", "reason"),
    [
        (NEEDS["khr"], "does not have cl_khr_integer_dot_product, which the program needs"),
        (NEEDS["qcom"], "does not have cl_qcom_dot_product8, which"),
        (NEEDS["matrix_units"], "does not have matrix units, which"),
        (128, "does not have a feature that this runtime does not know, which"),
    ],
)
def test_a_device_without_them_is_told(bit: int, reason: str) -> None:
    own, table = tiny.device(), WeightTable()
    data = bytearray(encode_opencl(make_plan(floats(), "opencl"), own.target, table))
    has = any(f"have {name}," in reason for name in own.device.extensions.split())
    has |= bit == NEEDS["matrix_units"] and own.profile.matrix_units
    assert has or not data[_NEEDS_AT] & bit
    NativeProgram(bytes(data), table.blobs, device=own.report.name)
    data[_NEEDS_AT] |= bit
    if has:
        NativeProgram(bytes(data), table.blobs, device=own.report.name)
        return
    with pytest.raises(ModelFormatError, match=reason):
        NativeProgram(bytes(data), table.blobs, device=own.report.name)
