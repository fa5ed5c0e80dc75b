"""QuantizeLinear, DequantizeLinear and elementwise integer kernels: bit-exact."""

import numpy as np
import pytest

from ..tiny import check, isas

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
    ends = np.array([np.inf, -np.inf, 3e38, -3e38, 0, -0.0], np.float32)
    for scale in (1.0, 0.37):
        check("QuantizeLinear", "any_quantize", [x, scalar(scale), zero], tolerance=0, isas=isas())
        check(
            "DequantizeLinear",
            "any_quantize",
            [whole(1500, dtype), scalar(scale), zero],
            tolerance=0,
            isas=isas(),
        )
    for scale in (0.37, 1e-35, 1e35):
        values = np.concatenate([x[:100] * np.float32(scale), ends])
        check(
            "QuantizeLinear", "any_quantize", [values, scalar(scale), zero], tolerance=0,
            isas=isas(),
        )  # fmt: skip
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
@pytest.mark.parametrize("rounding", ["", "litert"])
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearSub", "QLinearMul"])
def test_binary(op, rounding, dtype):
    for a, b in (
        ((3, 700), (3, 700)),
        ((2, 5, 7), (7,)),
        ((4, 9), (1,)),
        ((7,), (90, 7)),
        ((1, 30, 24), (1, 1, 24)),
    ):
        inputs = [whole(a, dtype), scalar(0.03), scalar(7, dtype), whole(b, dtype), scalar(0.07),
                  scalar(1, dtype), scalar(0.11), scalar(9, dtype)]  # fmt: skip
        attrs = {"rounding": rounding} if rounding else {}
        constants = (1, 2, 4, 5, 6, 7)
        check(op, "i8_binary", inputs, attrs, constant=constants, tolerance=0, isas=isas())


BYTES = pytest.mark.parametrize("dtype", [np.int8, np.uint8])


def scaled(x, dtype, y_scale=0.02, x_scale=0.03):
    """x and the constants that follow it: its scale and zero point, then those of y"""
    return [x, scalar(x_scale), scalar(4, dtype), scalar(y_scale), scalar(5, dtype)]


@BYTES
@pytest.mark.parametrize("op", ["QLinearGlobalAveragePool", "QLinearAveragePool", "MaxPool"])
def test_pools(op, dtype):
    windows = [{}] if "Global" in op else [
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]},
        {"kernel_shape": [2, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
        {"kernel_shape": [3, 2], "strides": [2, 1], "ceil_mode": 1, "pads": [1, 0, 0, 1]},
    ]  # fmt: skip
    if op == "QLinearAveragePool":
        windows += [{**w, "count_include_pad": 1} for w in windows]
    for shape in ((1, 3, 7, 7), (2, 67, 3, 5)):
        for attrs in windows:
            x = whole(shape, dtype)
            inputs = [x] if op == "MaxPool" else scaled(x, dtype)
            if op == "QLinearAveragePool":
                check(
                    op, "i8_pool", [x, *inputs[1:3], *inputs[1:3]],
                    {**attrs, "rounding": "litert"}, constant=(1, 2, 3, 4), channels_last=[0],
                    tolerance=0, isas=isas(),
                )  # fmt: skip
            check(
                op, "i8_pool", inputs, attrs, constant=(1, 2, 3, 4), channels_last=[0],
                tolerance=0, isas=isas(),
            )  # fmt: skip


@BYTES
@pytest.mark.parametrize("shape", [(1, 8, 5, 37), (2, 16, 6, 22), (1, 32, 3, 9), (1, 16, 2, 2)])
def test_largest_of_squares(shape, dtype):
    """2x2 pixels of few channels: several windows in a register."""
    check(
        "MaxPool",
        "i8_pool",
        [whole(shape, dtype)],
        {"kernel_shape": [2, 2], "strides": [2, 2]},
        channels_last=[0],
        tolerance=0,
        isas=isas(),
    )


@BYTES
def test_functions_of_one_number(dtype):
    every = np.arange(256).astype(dtype).reshape(4, 64)
    for op, attrs in (("QLinearSigmoid", {}), ("QLinearLeakyRelu", {"alpha": 0.1})):
        for scale in (1 / 256, 0.013):
            inputs = scaled(every, dtype, scale)
            check(op, "i8_table", inputs, attrs, constant=(1, 2, 3, 4), tolerance=0)
    for target in ("int8", "uint8"):
        info = np.iinfo(target)
        table = rng.integers(info.min, info.max + 1, 256).tolist()
        attrs = {"table": table, "output_dtype": {"int8": "i8", "uint8": "u8"}[target]}
        check("QLookup", "i8_table", [every], attrs, tolerance=0)


@BYTES
def test_softmax(dtype):
    """Rows around the width of vectors; answers for some of the bytes and for all."""
    info, constant = np.iinfo(dtype), (1, 2, 3, 4)
    for shape, axis in (((3, 10), -1), ((1, 1001), 1), ((2, 5, 7), 1), ((4, 1), 0), ((40, 65), 1)):
        for scale, y_scale in ((0.1, 1 / 256), (1 / 16, 1 / 256), (1e-3, 1e-4), (2.0, 1e-20)):
            for high in (20, info.max):
                x = rng.integers(info.min, high + 1, shape).astype(dtype)
                zeros = scalar(3, dtype), scalar(info.min + 5, dtype)
                inputs = [x, scalar(scale), zeros[0], scalar(y_scale), zeros[1]]
                check("QLinearSoftmax", "i8_softmax", inputs, {"axis": axis}, constant=constant,
                      tolerance=0, isas=isas())  # fmt: skip


def test_softmax_in_the_middle_of_two_bytes():
    """Four equal chances: 1/4 over scales that make it k + 1/2 but for their rounding."""
    x = np.full((1, 4), 9, np.uint8)
    for k in range(1, 200, 6):
        inputs = [
            x,
            scalar(0.1),
            scalar(0, np.uint8),
            scalar(0.25 / (k + 0.5)),
            scalar(0, np.uint8),
        ]
        check("QLinearSoftmax", "i8_softmax", inputs, constant=(1, 2, 3, 4), tolerance=0)


@BYTES
def test_concat(dtype):
    for axis, sizes in ((1, (3, 1, 6)), (-1, (300, 2)), (0, (2, 2))):
        parts = []
        for i, size in enumerate(sizes):
            shape = [2, 3, 5]
            shape[axis] = size
            parts += [whole(shape, dtype), scalar(0.02 * (i + 1)), scalar(3 * i, dtype)]
        inputs = [scalar(0.04), scalar(3, dtype), *parts]
        constant = [i for i in range(len(inputs)) if i < 2 or i % 3 != 2]
        check("QLinearConcat", "i8_concat", inputs, {"axis": axis}, constant=constant, tolerance=0)
