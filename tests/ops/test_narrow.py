"""Floats of 8 and 4 bits against ml_dtypes, and how the sizes of integers wrap."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.ir import DType
from lite_engine.ir.dtype import limits
from lite_engine.ops._narrow import decode, encode, wrapped

ml_dtypes = pytest.importorskip("ml_dtypes", reason="pip install ml_dtypes")

TYPES = {
    DType.F8E4M3FN: "float8_e4m3fn",
    DType.F8E4M3FNUZ: "float8_e4m3fnuz",
    DType.F8E5M2: "float8_e5m2",
    DType.F8E5M2FNUZ: "float8_e5m2fnuz",
    DType.F8E8M0: "float8_e8m0fnu",
    DType.F4E2M1: "float4_e2m1fn",
}


def numbers() -> np.ndarray:
    """Numbers of every magnitude, all ties between two codes, and the ends."""
    rng = np.random.default_rng(0)
    many = rng.normal(size=50_000) * np.exp(rng.uniform(-20, 14, 50_000))
    return np.float32([*many, 0.0, -0.0, np.inf, -np.inf, 464, 448, 480, 61440, 57344, 240, 248])


@pytest.mark.parametrize("dtype", TYPES)
def test_every_code_means_the_same_number(dtype: DType) -> None:
    codes = np.arange(16 if dtype is DType.F4E2M1 else 256, dtype=np.uint8)
    theirs = codes.view(getattr(ml_dtypes, TYPES[dtype])).astype(np.float32)
    np.testing.assert_array_equal(decode(codes, dtype), theirs)


@pytest.mark.parametrize("dtype", TYPES)
def test_numbers_round_as_ml_dtypes_rounds_them(dtype: DType) -> None:
    """ml_dtypes does not saturate, but for its 4-bit float, which has nothing beyond."""
    theirs, x = getattr(ml_dtypes, TYPES[dtype]), numbers()
    if dtype is DType.F8E8M0:  # no sign, and 0 is the smallest number here, as ONNX has it
        x = np.abs(x[x != 0])
    codes = encode(x, dtype, saturate=dtype is DType.F4E2M1)
    wanted = x.astype(theirs).astype(np.float32)
    np.testing.assert_array_equal(decode(codes, dtype), wanted)


@pytest.mark.parametrize("dtype", TYPES)
def test_saturation(dtype: DType) -> None:
    largest = float(ml_dtypes.finfo(getattr(ml_dtypes, TYPES[dtype])).max)
    x = np.float32([np.inf, 3e38])
    np.testing.assert_array_equal(decode(encode(x, dtype), dtype), [largest, largest])


def test_powers_of_two_round_up_or_down() -> None:
    x = np.float32([1.0, 1.1, 3.9, 4.0])
    for rounding, wanted in (("up", [1, 2, 4, 4]), ("down", [1, 1, 2, 4])):
        codes = encode(x, DType.F8E8M0, rounding=rounding)
        np.testing.assert_array_equal(decode(codes, DType.F8E8M0), wanted)


def test_integers() -> None:
    assert [limits(d) for d in (DType.I4, DType.U4, DType.I2, DType.U2, DType.I8)] == [
        (-8, 7), (0, 15), (-2, 1), (0, 3), (-128, 127)
    ]  # fmt: skip
    x = np.arange(-20, 20)
    for dtype in (DType.I4, DType.U4, DType.I2, DType.U2):
        low, high = limits(dtype)
        np.testing.assert_array_equal(wrapped(x, dtype), (x - low) % (high - low + 1) + low)
