"""Constants of launches: what each operation does, and that weights are kept once."""

from __future__ import annotations

from fractions import Fraction
from math import prod

import numpy as np
import pytest
from lite_engine.backends.opencl.cases.examples import examples
from lite_engine.backends.opencl.cases.graphs import conv
from lite_engine.backends.opencl.constants import Constant
from lite_engine.backends.opencl.launch import Image
from lite_engine.backends.opencl.profile import PROFILES
from lite_engine.backends.opencl.registry import Target
from lite_engine.backends.opencl.steps import launches_of
from lite_engine.ir import DType
from lite_engine.plan import make_plan


def some(*shape: int) -> np.ndarray:
    return np.random.default_rng(4).standard_normal(shape).astype(np.float32)


def test_shapes_and_order() -> None:
    w = some(3, 4, 5)
    c = Constant.of(w).transpose(2, 0, 1).reshape(5, -1).padded(6, 13)
    exact = np.zeros((6, 13), np.float32)
    for i in range(5):
        for j in range(12):
            exact[i, j] = w[j // 4, j % 4, i]
    assert (c.shape, c.dtype, c.nbytes) == ((6, 13), DType.F32, 6 * 13 * 4)
    np.testing.assert_array_equal(c.value, exact)
    assert c.value.flags.c_contiguous


def test_an_axis_reversed() -> None:
    w = some(3, 4, 5)
    c = Constant.of(w).reversed(1)
    np.testing.assert_array_equal(c.value, w[:, ::-1])
    assert Constant.of(w[:1]).reversed(0).ops == ()


def test_what_changes_nothing_is_no_operation() -> None:
    c = Constant.of(some(3, 4))
    same = c.reshape(3, 4).transpose(0, 1).padded(3, 4).cast(DType.F32).scaled(1.0)
    assert same is c
    assert c.T.shape == (4, 3)


def test_halves_are_rounded_to_even_and_become_infinite() -> None:
    exact = {1 + 2**-11: 1.0, 1 + 3 * 2**-11: 1 + 2**-9, 65519.0: 65504.0, 65520.0: np.inf,
             2**-25: 0.0, 3 * 2**-25: 2**-23, -(2**-24): -(2**-24)}  # fmt: skip
    got = Constant.of(np.array(list(exact), np.float32)).cast(DType.F16)
    assert got.value.dtype == np.float16
    assert got.value.astype(float).tolist() == list(exact.values())
    assert got.cast(DType.F32).value.tolist() == list(exact.values())


def test_a_factor_is_a_float32() -> None:
    w = some(100)
    np.testing.assert_array_equal(Constant.of(w).scaled(0.1).value, w * np.float32(0.1))


def test_winograd_points_are_exact_sums_rounded_once_or_nearly() -> None:
    """Against rational arithmetic: an error of half a float32's last place, and no more than a
    double's rounding adds to it."""
    at = [Fraction(n, 4) for n in (0, 3, -3, 6, -6)]
    norms = [prod(p - other for other in at if other != p) for p in at]
    g = [[p**i / norm for i in range(3)] for p, norm in zip(at, norms, strict=True)] + [[0, 0, 1]]
    w = some(2, 3, 3, 3)
    points = Constant.of(w).winograd()
    assert points.shape == (36, 3, 2)
    for o in range(2):
        for c in range(3):
            for p in range(36):
                a, b = g[p // 6], g[p % 6]
                exact = sum(
                    a[i] * Fraction(float(w[o, i, j, c])) * b[j] for i in range(3) for j in range(3)
                )
                found = points.value[p, c, o]
                error = abs(Fraction(float(found)) - exact)
                assert error <= Fraction(float(np.spacing(abs(found)))) * Fraction(501, 1000)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_launches_hold_the_weights_themselves(profile: str, precision: str) -> None:
    """Whatever a device's packing, the array behind is the plan's own; what is not is small."""
    cases = [conv((1, 64, 24, 24), 96, 3), conv((1, 64, 24, 24), 64, 3, 64), *examples()["gemm"]]
    for kernel in ("deconv2d", "lstm", "conv2d_grouped"):
        cases += examples()[kernel]
    for graph in cases:
        plan = make_plan(graph, "opencl", precision=precision)
        weights = [t.data for t in plan.weights() if t.data is not None]
        weights += [t.integers.q for t in plan.weights() if t.integers is not None]
        for step in plan.steps:
            if step.backend != "opencl" or step.op == "Copy":
                continue
            for launch in launches_of(step, plan, Target(PROFILES[profile])):
                given = [a.data if isinstance(a, Image) else a for a in launch.args]
                for c in given:
                    if isinstance(c, Constant) and not any(
                        np.shares_memory(c.base, w) for w in weights
                    ):
                        assert c.base.size <= 512, (graph.name, launch.kernel, c.base.shape)
