"""Float matrix products: every instruction set must give the reference's numbers."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.backends.cpu import native
from lite_engine.ir.bfloat16 import bf16_to_f32
from lite_engine.ops.activation import apply_activation

from ..tiny import as_bf16, run_step
from .cases_f32 import close, close_short, short

pytestmark = pytest.mark.cpu


# a, b, which are constant, c, attributes
GEMMS = [
    ((1, 1), (1, 1), None, {}),
    ((3, 17), (17, 33), (33,), {"alpha": 0.5, "beta": 2.0}),
    ((29, 40), (65, 40), (1, 65), {"transB": 1, "activation": "Relu"}),
    ((1, 200), (31, 200), (31,), {"transB": 1}),
    ((1, 37), (50, 37), (1,), {"transB": 1, "activation": "Relu", "beta": 2.0}),
    ((1, 3), (5, 3), None, {"transB": 1}),
    ((1, 1040), (65, 1040), (1, 65), {"transB": 1, "activation": "Sigmoid"}),
    ((2, 7), (16, 7), (1,), {"transB": 1, "activation": "Tanh"}),
    ((15, 8), (8, 48), (15, 48), {"activation": "Relu"}),
    ((0, 8), (8, 5), (5,), {}),
]


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize(("a", "b", "c", "attrs"), GEMMS)
@pytest.mark.parametrize("kernel", ["f32_gemm", "bf16_gemm"])
def test_gemm(kernel, a, b, c, attrs, isa):
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal(a, np.float32), rng.standard_normal(b, np.float32)
    if kernel != "f32_gemm":
        a, b = short(a), short(b)
    want = attrs.get("alpha", 1) * (a.astype(np.float64) @ (b.T if attrs.get("transB") else b))
    inputs = [a, b]
    if c:
        inputs.append(rng.standard_normal(c, np.float32))
        want = want + attrs.get("beta", 1) * inputs[2]
    want = apply_activation(attrs.get("activation", ""), [], want)
    constant = (1,) if c == want.shape else (1, 2)
    for threads in (1, 2):
        (got,) = run_step(
            "Gemm",
            kernel,
            inputs,
            [np.full(want.shape, np.nan, np.float32)],
            attrs,
            constant=constant,
            threads=threads,
            max_isa=isa,
        )
        if want.size:  # alpha is part of the weights, and rounded with them
            close(got, want, 1e-2 if "alpha" in attrs and kernel == "bf16_gemm" else 3e-5)


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize(("a", "b", "c", "attrs"), [g for g in GEMMS if "alpha" not in g[3]])
def test_gemm_of_shorts(a, b, c, attrs, isa):
    """a and the output in bf16, or one of them; what is added is in floats: c, or a residual."""
    rng = np.random.default_rng(1)
    a, b = (short(rng.standard_normal(x, np.float32)) for x in (a, b))
    want = a.astype(np.float64) @ (b.T if attrs.get("transB") else b)
    whole = c == want.shape
    c, residual = (short(rng.standard_normal(x, np.float32)) for x in (c or (), want.shape))
    inputs = [a, b, c, None if whole else residual]
    want = want + attrs.get("beta", 1) * c + (0 if whole else residual)
    want = apply_activation(attrs.get("activation", ""), [], want)
    for which in ([0, -1], [0], [-1]):
        y = np.full(want.shape, np.nan, np.float32)
        (got,) = run_step(
            "Gemm",
            "bf16_gemm",
            [as_bf16(x) if i in which else x for i, x in enumerate(inputs)],
            [as_bf16(y) if -1 in which else y],
            attrs,
            constant=(1,) if whole else (1, 2),
            threads=1 + len(which) % 3,
            max_isa=isa,
        )
        if want.size:
            check = close_short if -1 in which else close
            check(bf16_to_f32(got) if -1 in which else got, want, 3e-5)


MATMULS = [
    ((5, 7), (7, 9)),
    ((17,), (17, 40)),
    ((33, 16), (16,)),
    ((6,), (6,)),
    ((2, 3, 20, 12), (2, 3, 12, 35)),
    ((2, 1, 8, 12), (3, 12, 64)),
    ((4, 30, 16), (16, 33)),
    ((16, 10), (3, 10, 6)),
    ((1, 1, 64), (1, 64, 64)),
]


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("constant", [(), (1,), (0,)])
@pytest.mark.parametrize(("a", "b"), MATMULS)
def test_matmul(a, b, constant, isa):
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal(a, np.float32), rng.standard_normal(b, np.float32)
    want = np.matmul(a.astype(np.float64), b)
    for threads in (1, 2):
        (got,) = run_step(
            "MatMul",
            "f32_matmul",
            [a, b],
            [np.full(want.shape, np.nan, np.float32)],
            {"activation": "Relu"},
            constant=constant,
            threads=threads,
            max_isa=isa,
        )
        close(got, np.maximum(want, 0))
