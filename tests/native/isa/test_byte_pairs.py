"""Sums of two products of bytes that 16 bits do not hold: where pmaddubsw would saturate."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.backends.cpu import native

from ..oracles import conv
from ..tiny import load, one_step_plan, run_step
from .cases_int8 import GEMM, I8, U8
from .oracle_int8 import quant_case, requantise, scales

pytestmark = pytest.mark.cpu

#: Weights of neighboring inputs: the sums of their sizes are just inside and just outside of what
#: pairs of 255 allow (128), with both signs.
PAIRS = [(127, 127), (-127, -127), (-128, -128), (64, 64), (64, 65), (-64, -65), (127, 1), (1, 127),
         (2, 127), (-1, -128), (127, -128), (0, -128), (100, 29)]  # fmt: skip


def weights(rng, shape: tuple[int, ...]) -> np.ndarray:
    """Of the pairs, or any; channels last."""
    w = rng.integers(-128, 128, shape)
    chosen = np.array(PAIRS)[rng.integers(0, len(PAIRS), (*shape[:-1], -(-shape[-1] // 2)))]
    chosen = chosen.reshape(*shape[:-1], -1)[..., : shape[-1]]
    return np.where(rng.random(shape[:-1] + (1,)) < 0.7, chosen, w)


def activations(rng, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    if kind == "all 255":
        return np.full(shape, 255)
    if kind == "any":
        return rng.integers(0, 256, shape)
    x = rng.integers(0, 40, shape)
    if kind == "a few 255":  # two side by side, in one of the rows
        at = rng.integers(0, max(shape[-1] - 1, 1))
        x[0, -1, -1, at : at + 2] = 255
    return x


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("kind", ["all 255", "any", "a few 255", "small"])
@pytest.mark.parametrize("x_type", [U8, I8])
@pytest.mark.parametrize(
    ("x_dims", "out_c", "k"),
    [((1, 1, 13, 32), 16, 1), ((1, 2, 7, 36), 33, 1), ((1, 1, 6, 200), 8, 1), ((1, 5, 6, 4), 24, 3),
     ((1, 5, 6, 8), 24, 3), ((1, 4, 5, 12), 7, 3), ((1, 3, 9, 20), 9, 3),
     ((2, 4, 5, 21), 17, 3), ((1, 7, 7, 68), 40, 3)],
)  # fmt: skip
def test_sums_of_pairs_that_16_bits_do_not_hold(x_dims, out_c, k, x_type, kind, isa):
    rng = np.random.default_rng(x_dims[-1])
    x = activations(rng, kind, x_dims)
    w = weights(rng, (out_c, k, k, x_dims[-1])).transpose(0, 3, 1, 2)  # inputs side by side
    lowest = 0 if x_type is U8 else -128
    quant = quant_case(rng, w[0].size, out_c, x_type, I8, U8)
    quant["x_zero_point"] = lowest + 5
    pads = {"pads": [k // 2] * 4}
    acc = conv(x - 5, w, **pads)
    want = requantise(acc, scales(quant), quant["y_zero_point"], U8)
    inputs = [(x + lowest).astype(x_type), None, None, w.astype(I8), *[None] * 5]
    (got,) = run_step(
        "QLinearConv",
        GEMM,
        inputs,
        [np.zeros_like(want)],
        {**pads, **quant},
        constant=(3,),
        max_isa=isa,
    )
    np.testing.assert_array_equal(got, want)


@pytest.mark.skipif("avx2bytes" not in native.isas(), reason="this processor has no AVX2")
@pytest.mark.parametrize(
    ("zero", "depth", "kernel"),
    [(0, 32, "avx2bytes_"), (64, 32, "avx2bytes_"), (65, 32, "avx2_"), (0, 28, "avx2_")],
)
def test_operands_of_both_signs_and_few_channels_are_multiplied_as_16_bits(zero, depth, kernel):
    rng = np.random.default_rng(1)
    quant = quant_case(rng, depth, 16, U8, I8, U8) | {"x_zero_point": zero}
    x, w = np.zeros((1, 4, 4, depth), U8), rng.integers(-127, 128, (16, depth, 1, 1)).astype(I8)
    inputs, outputs = [x, None, None, w, *[None] * 5], [np.zeros((1, 4, 4, 16), U8)]
    plan = one_step_plan("QLinearConv", GEMM, inputs, outputs, quant, (3,))
    (step,) = load(plan, max_isa="avx2bytes").steps()
    assert kernel in step.variant
