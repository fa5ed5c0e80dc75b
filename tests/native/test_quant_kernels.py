"""QuantizeLinear, DequantizeLinear and elementwise integer kernels: bit-exact."""

import numpy as np
import pytest

from .tiny import check

pytestmark = pytest.mark.cpu
rng = np.random.default_rng(19)


def whole(shape, dtype):
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max + 1, shape).astype(dtype)


def scalar(value, dtype=np.float32):
    return np.array(value, dtype)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16])
def test_linear(dtype):
    zero = scalar(3, dtype)
    x = np.concatenate([rng.normal(0, 30, 1500), [0.5, 1.5, 2.5, -0.5, 1e9, -1e9]]).astype(
        np.float32
    )
    for scale in (1.0, 0.37):
        check("QuantizeLinear", "any_quantize", [x, scalar(scale), zero], tolerance=0)
        check(
            "DequantizeLinear",
            "any_quantize",
            [whole(1500, dtype), scalar(scale), zero],
            tolerance=0,
        )
    scales = rng.uniform(0.1, 2, 5).astype(np.float32)
    x = rng.normal(0, 30, (2, 5, 3, 4)).astype(np.float32)
    for axis, shape in ((1, (2, 5, 3, 4)), (-1, (4, 5)), (0, (5,))):
        x = rng.normal(0, 30, shape).astype(np.float32)
        args = [scales, whole(5, dtype)]
        check("QuantizeLinear", "any_quantize", [x, *args], {"axis": axis}, tolerance=0)
        check(
            "DequantizeLinear",
            "any_quantize",
            [whole(shape, dtype), *args],
            {"axis": axis},
            tolerance=0,
        )


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
def test_binary(op, dtype):
    for a, b in (((3, 700), (3, 700)), ((2, 5, 7), (7,)), ((4, 9), (1,))):
        inputs = [whole(a, dtype), scalar(0.03), scalar(7, dtype), whole(b, dtype), scalar(0.07),
                  scalar(1, dtype), scalar(0.11), scalar(9, dtype)]  # fmt: skip
        check(op, "i8_binary", inputs, tolerance=0)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_global_average_pool(dtype):
    for shape in ((1, 3, 7, 7), (2, 600, 3, 5)):
        inputs = [
            whole(shape, dtype),
            scalar(0.03),
            scalar(4, dtype),
            scalar(0.02),
            scalar(5, dtype),
        ]
        check("QLinearGlobalAveragePool", "i8_global_pool", inputs, channels_last=[0], tolerance=0)
