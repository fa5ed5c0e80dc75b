"""Seven products in place of eight: large products with a constant matrix, at sizes that leave rows
and panels over, against products in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.backends.cpu import native
from lite_engine.ops.activation import apply_activation

from ..tiny import load, one_step_plan, run_step
from .cases_f32 import GEMM, conv_case, rounding_error

pytestmark = pytest.mark.cpu

#: Rows, depth, columns: rows left over, panels left over, a depth of several pieces, rows that
#: share a set of the cache, and what is too small for it. Vectors of up to eight lanes take only
#: the largest.
LARGE = (245, 1024, 784)
DEEP = (245, 2048, 784)
SIZES = [
    LARGE,
    DEEP,
    (113, 256, 256),
    (197, 200, 328),
    (85, 1152, 160),
    (90, 1024, 256),
    (128, 3072, 96),
    (300, 66, 512),
    (40, 31, 96),
]

#: Of the second-level cache: how much is computed at a time must not depend on the machine.
L2_BYTES = 4 << 20

#: Processors with AVX-512 decide by whether they split its operations; all others take the scheme.
MAY_MULTIPLY_PLAINLY = ("avx512", "amx")

#: Root mean square of the rounding, as a share of the output's. The scheme adds up to four numbers
#: in front of the products and up to four products behind them.
ROUNDING = 1.5e-6


def operands(rows: int, depth: int, columns: int) -> list[np.ndarray]:
    rng = np.random.default_rng(rows)
    return [
        rng.standard_normal(dims, np.float32)
        for dims in ((rows, depth), (depth, columns), (columns,), (rows, columns))
    ]


def run(inputs: list, attrs: dict, isa: str, threads: int = 1) -> np.ndarray:
    out = np.full((len(inputs[0]), inputs[1].shape[1]), np.nan, np.float32)
    (got,) = run_step(
        "Gemm",
        "f32_gemm",
        inputs,
        [out],
        attrs,
        constant=(1, 2),
        threads=threads,
        max_isa=isa,
        l2_bytes=L2_BYTES,
    )
    return got


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("size", SIZES, ids=lambda s: "x".join(map(str, s)))
@pytest.mark.parametrize("activation", ["", "Relu", "HardSwish", "Gelu"])
def test_products(size, activation, isa):
    a, b, bias, residual = operands(*size)
    plain = a.astype(np.float64) @ b + bias
    attrs = {"activation": activation} if activation else {}
    want = apply_activation(activation, [], plain)
    outputs = [run([a, b, bias], attrs, isa, threads) for threads in (1, 2, 3)]
    assert rounding_error(outputs[0], want) < ROUNDING
    assert all(np.array_equal(outputs[0], other) for other in outputs[1:])
    added = run([a, b, bias, residual], attrs, isa)
    assert rounding_error(added, apply_activation(activation, [], plain + residual)) < ROUNDING


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("stride", [1, 2])
def test_pointwise_convolution(stride, isa):
    """Two images; with a stride the pixels of a row of the output do not follow each other."""
    options = {"strides": [stride, stride], "activation": "Relu"}
    op, inputs, attrs, want = conv_case(GEMM, (2, 13, 14, 512), 192, (1, 1), options)
    for threads in (1, 2):
        out = np.full(want.shape, np.nan, np.float32)
        given = {"constant": (1, 2), "threads": threads, "max_isa": isa}
        (got,) = run_step(op, GEMM, inputs, [out], attrs, **given)
        assert rounding_error(got, want) < ROUNDING


@pytest.mark.parametrize("isa", native.isas())
def test_variant_says_so(isa):
    """Large products have it, small ones do not."""

    def takes(rows: int, depth: int, columns: int) -> bool:
        a, b, bias, _ = operands(rows, depth, columns)
        out = np.zeros((rows, columns), np.float32)
        plan = one_step_plan("Gemm", "f32_gemm", [a, b, bias], [out], {}, (1, 2))
        (step,) = load(plan, max_isa=isa, l2_bytes=L2_BYTES).steps()
        return "strassen" in step.variant

    assert takes(*LARGE) == takes(*DEEP)
    assert takes(*LARGE) or isa.startswith(MAY_MULTIPLY_PLAINLY)
    assert not takes(24, 768, 768)
    assert not takes(256, 32, 768)


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 2e38])
def test_what_is_not_finite_stays_in_its_row(bad, isa):
    """Rows are added to each other, but a row that cannot be added spoils no other."""
    a, b, bias, _ = operands(*LARGE)
    a[17, 300] = bad
    with np.errstate(all="ignore"):
        want = a.astype(np.float64) @ b + bias
    got = run([a, b, bias], {}, isa)
    others = np.arange(len(a)) != 17
    assert rounding_error(got[others], want[others]) < ROUNDING
    if abs(bad) == np.inf:
        np.testing.assert_array_equal(np.isnan(got[17]), np.isnan(want[17]))
    elif np.isnan(bad):
        assert np.isnan(got[17]).all()


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("size", [LARGE, DEEP], ids=["large", "deep"])
def test_small_rows_keep_their_own_accuracy(size, isa):
    """Sums with a larger row would round them away. A padded token's zeros stay zeros: a norm makes
    numbers of whatever else they became."""
    a, b, _, _ = operands(*size)
    scales = np.ones(len(a), np.float32)
    scales[[3, 17, 200]] = 1e-3, 0, 1e4
    a *= scales[:, None]
    want = a.astype(np.float64) @ b
    got = run([a, b, np.zeros(b.shape[1], np.float32)], {}, isa)
    assert not got[17].any()
    for row in (3, 18, 199, 200):
        assert rounding_error(got[row], want[row]) < ROUNDING


@pytest.mark.parametrize("isa", native.isas())
def test_weights_that_are_not_finite_stay_in_their_column(isa):
    a, b, bias, _ = operands(*LARGE)
    b[5, 40] = np.inf
    with np.errstate(all="ignore"):
        want = a.astype(np.float64) @ b + bias
    got = run([a, b, bias], {}, isa)
    others = np.arange(b.shape[1]) != 40
    assert rounding_error(got[:, others], want[:, others]) < ROUNDING
    assert np.isinf(got[:, 40]).all()


@pytest.mark.parametrize("isa", native.isas())
def test_the_residual_may_be_the_output(isa):
    """A network adds in place; here the product's own output holds what is added."""
    a, b, bias, residual = operands(*DEEP)
    want = a.astype(np.float64) @ b + bias + residual
    plan = one_step_plan("Gemm", "f32_gemm", [a, b, bias, residual], [residual], {}, (1, 2))
    program = load(plan, max_isa=isa, l2_bytes=L2_BYTES)
    assert "strassen" in program.steps()[0].variant or isa.startswith(MAY_MULTIPLY_PLAINLY)
    (got,) = program.run([a, residual.copy()])
    assert rounding_error(got, want) < ROUNDING
