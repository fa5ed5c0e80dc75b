"""Rows so deep that few of them fit the second-level cache are multiplied some of their depth at a
time: bias and residual count once, the activation comes behind the last sum."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.backends.cpu import native
from lite_engine.ops.activation import apply_activation

from ..tiny import run_step
from .cases_f32 import GEMM, conv_case, rounding_error

pytestmark = pytest.mark.cpu

#: Of a processor's second-level cache, small enough to cut these depths.
L2_BYTES = 64 << 10
#: Root mean square of the rounding, as a share of the output's: sums of 512 products in a chain.
ROUNDING = 1e-6


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("depth", [1100, 2050])
@pytest.mark.parametrize("activation", ["", "Relu", "HardSwish", "Gelu"])
def test_products(depth, activation, isa):
    rng = np.random.default_rng(depth)
    shapes = (70, depth), (depth, 37), (37,), (70, 37)
    a, b, bias, residual = (rng.standard_normal(dims, np.float32) for dims in shapes)
    attrs = {"activation": activation} if activation else {}
    want = apply_activation(activation, [], a.astype(np.float64) @ b + bias + residual)
    outputs = []
    for threads in (1, 2, 3):
        out = np.full(want.shape, np.nan, np.float32)
        given = {"constant": (1, 2), "threads": threads, "max_isa": isa, "l2_bytes": L2_BYTES}
        (got,) = run_step("Gemm", "f32_gemm", [a, b, bias, residual], [out], attrs, **given)
        outputs.append(got)
    assert rounding_error(outputs[0], want) < ROUNDING
    assert all(np.array_equal(outputs[0], other) for other in outputs[1:])


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("options", [{}, {"strides": [2, 2]}, {"pads": [1, 0, 2, 1]}, {"r": True}])
def test_pointwise_convolution(options, isa):
    """Outputs of padding alone are the bias."""
    options = {**options, "activation": "Relu"}
    op, inputs, attrs, want = conv_case(GEMM, (2, 11, 9, 1030), 40, (1, 1), options)
    out = np.full(want.shape, np.nan, np.float32)
    given = {"constant": (1, 2), "max_isa": isa, "l2_bytes": L2_BYTES}
    (got,) = run_step(op, GEMM, inputs, [out], attrs, **given)
    assert rounding_error(got, want) < ROUNDING
