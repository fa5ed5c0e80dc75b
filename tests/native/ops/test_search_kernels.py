"""ArgMax, TopK, CumSum, OneHot, Trilu against the operators' definitions."""

import numpy as np
import pytest

from ..tiny import assert_close, check, reference, run_step

pytestmark = pytest.mark.cpu
rng = np.random.default_rng(17)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.uint8])
@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_arg(op, dtype):
    for shape, axis in [((3, 1000), -1), ((4, 5, 6), 1), ((7,), 0), ((2, 9, 3), 0)]:
        x = rng.integers(0, 50, shape).astype(dtype)
        for keepdims in (0, 1):
            for last in (0, 1):
                attrs = {"axis": axis, "keepdims": keepdims, "select_last_index": last}
                check(op, "any_arg", [x], attrs)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("largest", [0, 1])
def test_top_k(largest, dtype):
    for shape, axis, k in [((3, 1500), -1, 7), ((4, 20, 3), 1, 20), ((9,), 0, 1), ((5, 6), 0, 3)]:
        x = rng.integers(0, 400, shape).astype(dtype)
        if x.dtype.kind == "f":  # NaN is larger than any number
            x.reshape(-1)[rng.permutation(x.size)[: x.size // 4]] = np.nan
        attrs = {"axis": axis, "largest": largest}
        wanted = reference("TopK", [x, np.array([k])], attrs, 2)
        for threads in (1, 2):
            got = run_step("TopK", "any_top_k", [x], wanted, {**attrs, "k": [k]}, threads=threads)
            for g, w in zip(got, wanted):
                assert_close(g, w, 0, "top k")


@pytest.mark.parametrize("op", ["CumSum", "CumProd"])
@pytest.mark.parametrize(
    "attrs", [{}, {"reverse": 1}, {"exclusive": 1}, {"exclusive": 1, "reverse": 1}]
)
def test_cumulate(op, attrs):
    for dtype in (np.float32, np.int64):
        x = rng.integers(1, 4, (3, 7, 5)).astype(dtype)
        for axis in (0, 1, -1):
            check(op, "any_cumulate", [x, np.array(axis)], attrs, as_attrs={"axis": 1})


def test_one_hot_and_trilu():
    at = rng.integers(-4, 5, (2, 3))
    for axis in (-1, 0, 1):
        check(
            "OneHot",
            "copy_one_hot",
            [at, np.array([4]), np.array([0, 1], np.float32)],
            {"axis": axis},
        )
    x = rng.normal(size=(2, 5, 7)).astype(np.float32)
    for upper in (0, 1):
        for k in (-2, 0, 3, 100):
            check("Trilu", "copy_trilu", [x, np.array(k)], {"upper": upper}, as_attrs={"k": 1})
