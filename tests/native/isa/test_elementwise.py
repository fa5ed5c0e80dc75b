"""Unary and binary kernels against the operators' NumPy definitions."""

import numpy as np
import pytest
from lite_engine.ops import all_ops, get_op, op_names

from ..tiny import check, isas, reference, run_step

pytestmark = pytest.mark.cpu
UNARY = [
    ("Relu", {}), ("LeakyRelu", {"alpha": 0.1}), ("Sigmoid", {}), ("Tanh", {}),
    ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}), ("HardSwish", {}), ("Silu", {}), ("Gelu", {}),
    ("Gelu", {"approximate": "tanh"}), ("Elu", {"alpha": 0.7}), ("Softplus", {}), ("Mish", {}),
    ("Selu", {}), ("Softsign", {}), ("Celu", {"alpha": 0.5}), ("ThresholdedRelu", {}), ("Erf", {}),
    ("Exp", {}), ("Abs", {}), ("Neg", {}), ("Floor", {}), ("Ceil", {}), ("Round", {}), ("Sign", {}),
    ("Sin", {}), ("Cos", {}), ("Atan", {}), ("Reciprocal", {}),
]  # fmt: skip


@pytest.mark.parametrize("isa", isas())
@pytest.mark.parametrize("op, attrs", UNARY, ids=lambda v: v if isinstance(v, str) else "")
def test_unary(op, attrs, isa):
    rng = np.random.default_rng(1)
    for size in (1, 3, 4, 7, 8, 15, 16, 17, 31, 33, 100):
        x = rng.normal(0, 3, size).astype(np.float32)
        check(op, "f32_unary", [x], attrs, isas=[isa], threads=[1])


@pytest.mark.parametrize("isa", isas())
@pytest.mark.parametrize("op", ["Log", "Sqrt"])
def test_unary_of_positive_numbers(op, isa):
    x = np.exp(np.random.default_rng(2).uniform(-80, 80, 133)).astype(np.float32)
    check(op, "f32_unary", [x], isas=[isa])


SPECIAL = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1e-40, 88, -88, 104, 1e30, -1e30], np.float32)


@pytest.mark.parametrize(
    "op", [o.name for o in all_ops() if any(k.name == "f32_unary" for k in o.kernels)]
)
def test_special_numbers(op):
    """Every unary operator gives NaN and infinities where its definition does."""
    attrs = {k: v for k, v in get_op(op).attrs.items() if v is not None}
    bounds = [np.array(b, np.float32) for b in (-1.5, 2.25)] if op == "Clip" else []
    at = {"min": 1, "max": 2} if bounds else {}
    with np.errstate(all="ignore"):
        check(op, "f32_unary", [SPECIAL, *bounds], attrs, as_attrs=at, isas=isas(), threads=[1])


@pytest.mark.parametrize("op", ["Min", "Max", "PRelu"])
def test_binary_of_special_numbers(op):
    numbers = np.resize(SPECIAL, 2 * SPECIAL.size)
    with np.errstate(all="ignore"):
        for a in (numbers, np.roll(numbers, 1), np.full(22, np.nan, np.float32)):
            check(op, "f32_binary", [a, np.ones_like(a)], isas=isas(), threads=[1])
            check(op, "f32_binary", [np.ones_like(a), a], isas=isas(), threads=[1])


@pytest.mark.parametrize("name", op_names(lambda op: op.fusable))
def test_fused_activation_of_special_numbers(name):
    """A bias of them under zero weights: sums that every kernel's way of adding leaves alone."""
    attrs = {"activation": name, "activation_params": [-0.5, 6.0] if name == "Clip" else []}
    count = SPECIAL.size
    x = np.zeros((1, count, 8, 9), np.float32)
    with np.errstate(all="ignore"):
        for way, group, k in [("gemm", 1, 1), ("gemm", 1, 3), ("depthwise", count, 3)]:
            w = np.zeros((count, count // group, k, k), np.float32)
            more = {**attrs, "group": group, "pads": [k // 2] * 4}
            check("Conv", f"f32_conv2d_{way}", [x, w, SPECIAL], more, channels_last=[0],
                  constant=(1, 2), isas=isas(), threads=[1])  # fmt: skip
        check("Add", "f32_binary", [x[0, 0, 0, :1], SPECIAL], attrs, isas=isas(), threads=[1])


@pytest.mark.parametrize("isa", isas())
def test_relative_error(isa):
    """exp, log, tanh, sigmoid, erf stay near single precision, also close to zero."""
    rng = np.random.default_rng(3)
    wide = rng.uniform(-80, 80, 40_000).astype(np.float32)
    near = rng.uniform(-1, 1, 40_000).astype(np.float32)
    exact = {
        "Exp": np.exp, "Tanh": np.tanh, "Sigmoid": lambda v: 1 / (1 + np.exp(-v)),
    }  # fmt: skip
    for op, fn in exact.items():
        for x in (wide, near):
            (y,) = run_step(op, "f32_unary", [x], [x], max_isa=isa, threads=1)
            wanted = fn(x.astype(np.float64))
            assert np.max(np.abs(y - wanted) / np.abs(wanted)) < 1e-6, op


@pytest.mark.parametrize("isa", isas())
@pytest.mark.parametrize("op, exact", [("Expm1", np.expm1), ("Log1p", np.log1p)])
def test_relative_error_near_zero(op, exact, isa):
    """e^x − 1 and ln(1 + x), where the steps one by one are 7 % off."""
    x = np.geomspace(1e-6, 1e-3, 99, dtype=np.float32)
    x = np.concatenate([x, -x])
    (y,) = run_step(op, "f32_unary", [x], [x], max_isa=isa, threads=1)
    np.testing.assert_allclose(y, exact(x.astype(np.float64)), rtol=3e-7)


def test_fused_gelu_has_both_forms():
    """They differ by 5e-4 at most: too little for the sums of other tests, enough to count."""
    x = np.linspace(-4, 4, 97, dtype=np.float32)
    for form, params in (("none", []), ("tanh", [1.0])):
        attrs = {"activation": "Gelu", "activation_params": params}
        (y,) = run_step("Add", "f32_binary", [x, np.zeros_like(x)], [x], attrs, threads=1)
        (wanted,) = reference("Gelu", [x], {"approximate": form})
        np.testing.assert_allclose(y, wanted, atol=2e-6)


def test_clip_bounds():
    x = np.linspace(-5, 5, 37, dtype=np.float32)
    low, high = np.float32(-1.5), np.float32(2.25)
    check("Clip", "f32_unary", [x, np.array(low), np.array(high)], as_attrs={"min": 1, "max": 2})
    check("Clip", "f32_unary", [x, None, np.array(high)], as_attrs={"max": 2})


SHAPES = [
    ((5,), (5,)), ((2, 3, 7, 17), (2, 3, 7, 17)), ((2, 3, 5, 33), (33,)), ((2, 3, 5, 33), (1,)),
    ((1,), (4, 9)), ((2, 1, 5, 1), (3, 1, 19)), ((2, 5, 6, 7), (2, 5, 1, 1)),
    ((1, 4, 4, 3), (1, 1, 1, 3)),
    ((), (7,)), ((), ()), ((3, 1), (1, 4)), ((1, 1, 1, 8200), (1, 2, 3, 8200)), ((0, 3), (3,)),
]  # fmt: skip


@pytest.mark.parametrize("isa", isas())
@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Min", "Max", "PRelu"])
def test_binary(op, isa):
    rng = np.random.default_rng(4)
    for a, b in SHAPES:
        if op == "PRelu" and np.broadcast_shapes(a, b) != a:
            continue
        x, y = rng.normal(size=a).astype(np.float32), rng.normal(size=b).astype(np.float32)
        check(op, "f32_binary", [np.asarray(x), np.asarray(y)], isas=[isa], threads=[1, 3])


@pytest.mark.parametrize("exponent", [2.0, 0.5, 3.0, -1.0, 1.7])
def test_pow(exponent):
    x = np.random.default_rng(5).uniform(0.1, 3, (3, 21)).astype(np.float32)
    check("Pow", "f32_binary", [x, np.array(exponent, np.float32)], tolerance=1e-5)


def test_fused_activation():
    rng = np.random.default_rng(6)
    x, y = (rng.normal(size=(3, 5000)).astype(np.float32) for _ in range(2))
    (got,) = run_step("Add", "f32_binary", [x, y], [x], {"activation": "Relu"})
    assert np.array_equal(got, np.maximum(x + y, 0))
    (got,) = run_step(
        "Add", "f32_binary", [x, y], [x], {"activation": "Clip", "activation_params": [-0.5, 0.25]}
    )
    assert np.array_equal(got, np.clip(x + y, np.float32(-0.5), np.float32(0.25)))
