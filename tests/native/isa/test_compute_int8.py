"""Integer compute kernels: every instruction set must give exactly the reference's integers."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.backends.cpu import native
from lite_engine.errors import ModelFormatError
from lite_engine.plan.program import WeightTable, encode

from ..oracles import conv
from ..tiny import load, one_step_plan, run_step
from .cases_int8 import (
    CONVS,
    DECONV,
    DECONVS,
    DEPTHWISE,
    EXACT,
    GEMM,
    I8,
    LARGE,
    TILED,
    U8,
)
from .oracle_int8 import (
    int_conv_case,
    int_deconv_case,
    product_cases,
    quant_case,
    requantise,
    scales,
)

pytestmark = pytest.mark.cpu


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize(
    "case", CONVS + TILED + EXACT, ids=lambda c: f"{c[0]}-{'x'.join(map(str, c[1]))}"
)
def test_qlinear_conv(case, isa):
    inputs, attrs, want = int_conv_case(*case)
    # With a small cache nothing takes Winograd's form or keeps rows of floats (5x5 depthwise).
    for threads, cache in ((1, LARGE), (3, LARGE), (1, 1024)):
        (got,) = run_step(
            "QLinearConv",
            case[0],
            inputs,
            [np.zeros_like(want)],
            attrs,
            constant=(3, 8),
            max_isa=isa,
            threads=threads,
            l2_bytes=cache,
        )
        assert np.array_equal(got, want), (threads, cache)


def test_equal_zero_points_are_written_once():
    """One for all channels means the same, and a file has a program for each kind of device."""
    inputs, attrs, want = int_conv_case(GEMM, (1, 5, 5, 8), 9, (1, 1), {}, U8, I8, U8)
    written = []
    for zeros in ([0] * 9, [0]):
        attrs["w_zero_point"] = np.array(zeros, np.int8)
        plan = one_step_plan("QLinearConv", GEMM, inputs, [want], attrs, constant=(3, 8))
        written.append(encode(plan, WeightTable()))
        (got,) = load(plan).run([inputs[0]])
        assert np.array_equal(got, want)
    assert written[0] == written[1]


@pytest.mark.skipif("avx2" not in native.isas(), reason="this processor has no AVX2")
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize(("bias", "floats"), [(0, True), (1 << 24, False), (-(1 << 24), False)])
def test_5x5_sums_are_floats_where_these_hold_them(bias, floats, stride):
    options = {"pads": [2, 2, 2, 2], "strides": [stride, stride]}
    inputs, attrs, want = int_conv_case(DEPTHWISE, (1, 9, 11, 40), 40, (5, 5), options, U8, I8, U8)
    inputs[8] = inputs[8] + np.int32(bias)
    if bias:  # outputs of 100 and more, or of none, that differ
        attrs |= {"y_scale": float(abs(bias) * attrs["x_scale"] * max(attrs["w_scale"]) / 100)}
        attrs |= {"y_zero_point": 128 if bias < 0 else 0}
    plan = one_step_plan("QLinearConv", DEPTHWISE, inputs, [np.zeros_like(want)], attrs, (3, 8))
    program = load(plan, max_isa="avx2", l2_bytes=LARGE)
    assert ("floats" in program.steps()[0].variant) == floats
    (got,), (other,) = program.run(inputs[:1]), load(plan, max_isa="sse2").run(inputs[:1])
    assert len(np.unique(got)) > 10 and np.array_equal(got, other)


def kernels_of(inputs, attrs, want) -> set[str]:
    """What takes the step on instruction sets that have Winograd's form."""
    plan = one_step_plan("QLinearConv", GEMM, inputs, [np.zeros_like(want)], attrs, (3, 8))
    taken = set()
    for isa in set(native.isas()) - {"avx512bf16", "amx"}:
        (step,) = load(plan, max_isa=isa, l2_bytes=LARGE).steps()
        taken.add(step.variant.partition("__")[0])
    return taken


@pytest.mark.parametrize("case", EXACT, ids=lambda c: "x".join(map(str, c[1])))
def test_winograd_takes_what_suits_it(case):
    assert kernels_of(*int_conv_case(*case)) == {"i8_conv2d_winograd43"}


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("signs", [1, 2])
@pytest.mark.parametrize(("channels", "name"), [(115, "winograd43"), (116, "gemm")])
def test_winograd_is_exact_up_to_its_largest_sums(channels, name, signs, isa):
    """255 * 127 * 9 * 115 is the last below 2**25, which is as far as 576-fold sums reach.
    Weights of two signs reach it with twice the channels."""
    x = np.zeros((1, 16, 16, channels * signs), U8)
    x[..., ::signs] = 255
    x[0, ::7] = x[0, :, ::5] = 0
    w = np.full((64, channels * signs, 3, 3), 127, I8)
    w[1::2] = -127
    w[:, 1::2] *= (-1) ** (signs - 1)
    sums = conv(x.astype(np.int64), w.astype(np.int64), pads=[1, 1, 1, 1])
    quant = {
        "x_scale": 1.0,
        "x_zero_point": 0,
        "w_scale": [1.0],
        "w_zero_point": [0],
        "y_scale": 3e5,
        "y_zero_point": 0,
    }
    want = requantise(sums, np.float32(1) / np.float32(3e5), 0, I8)
    attrs = {"pads": [1, 1, 1, 1], **quant}
    inputs = [x, None, None, w, None, None, None, None, np.zeros(64, np.int32)]
    assert kernels_of(inputs, attrs, want) == {f"i8_conv2d_{name}"}
    (got,) = run_step(
        "QLinearConv",
        GEMM,
        inputs,
        [np.zeros_like(want)],
        attrs,
        constant=(3, 8),
        max_isa=isa,
        l2_bytes=LARGE,
    )
    assert np.array_equal(got, want)
    assert got.min() < -100 and got.max() > 100


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("case", DECONVS, ids=lambda c: "x".join(map(str, (*c[0], *c[2]))))
def test_qlinear_conv_transpose(case, isa):
    inputs, attrs, want = int_deconv_case(*case)
    for threads in (1, 3):
        (got,) = run_step(
            "QLinearConvTranspose",
            DECONV,
            inputs,
            [np.zeros_like(want)],
            attrs,
            constant=(3, 8),
            threads=threads,
            max_isa=isa,
        )
        assert np.array_equal(got, want)


@pytest.mark.skipif("amx" not in native.isas(), reason="this processor has no AMX")
@pytest.mark.parametrize("case", DECONVS[-3:], ids=lambda c: "x".join(map(str, (*c[0], *c[2]))))
def test_amx_takes_transposed_convolutions(case):
    inputs, attrs, want = int_deconv_case(*case)
    plan = one_step_plan(
        "QLinearConvTranspose", DECONV, inputs, [np.zeros_like(want)], attrs, (3, 8)
    )
    (step,) = load(plan).steps()
    assert step.variant.startswith("i8_deconv2d__amx_")


@pytest.mark.skipif("amx" not in native.isas(), reason="this processor has no AMX")
@pytest.mark.parametrize("case", TILED, ids=lambda c: f"{c[0]}-{'x'.join(map(str, c[1]))}")
def test_amx_takes_what_suits_it(case):
    inputs, attrs, want = int_conv_case(*case)
    plan = one_step_plan("QLinearConv", case[0], inputs, [np.zeros_like(want)], attrs, (3, 8))
    (step,) = load(plan).steps()
    assert step.variant.startswith("i8_conv2d_gemm__amx_")


@pytest.mark.skipif("amx" not in native.isas(), reason="this processor has no AMX")
@pytest.mark.parametrize("case", [
    (GEMM, (1, 130, 340, 32), 33, (3, 3), {"pads": [1, 1, 1, 1], "residual": U8}, U8, I8, U8),
    (GEMM, (3, 81, 199, 32), 16, (3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}, I8, I8, U8),
], ids=["rows", "images"])  # fmt: skip
def test_large_copies_are_made_in_parts(case):
    """Copies of the whole input would leave the second-level cache (2 MiB where AMX is)."""
    inputs, attrs, want = int_conv_case(*case)
    outputs = [np.zeros_like(want)]
    plan = one_step_plan("QLinearConv", GEMM, inputs, outputs, attrs, (3, 8))
    assert load(plan, threads=1).memory().scratch_bytes < inputs[0].nbytes  # each has its own
    for threads in (1, 3):
        (got,) = run_step(
            "QLinearConv", GEMM, inputs, outputs, attrs, constant=(3, 8), threads=threads
        )
        assert np.array_equal(got, want)


def test_threads_take_what_others_leave():
    case = (GEMM, (1, 40, 41, 48), 70, (3, 3), {"pads": [1, 1, 1, 1]}, U8, I8, U8)
    inputs, attrs, want = int_conv_case(*case)
    assert inputs[0].nbytes + want.nbytes > 128 << 10  # kLargeBytes of src/runtime/prepare.cc
    for threads in (2, 3, 7, 64):
        (got,) = run_step(
            "QLinearConv",
            GEMM,
            inputs,
            [np.zeros_like(want)],
            attrs,
            constant=(3, 8),
            threads=threads,
        )
        assert np.array_equal(got, want)


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize(
    ("a_dims", "n", "trans"),
    [((1, 1), 1, 0), ((3, 17), 33, 1), ((2, 15, 64), 40, 0), ((1, 256), 100, 1), ((29, 6), 16, 1)],
)
def test_quantised_matrix_products(a_dims, n, trans, isa):
    rng = np.random.default_rng(4)
    a = rng.integers(0, 256, a_dims).astype(U8)
    b = rng.integers(-127, 128, (a_dims[-1], n)).astype(I8)
    quant = quant_case(rng, a_dims[-1], n, U8, I8, U8, ("a", "b"))
    acc = (a.astype(np.int64) - quant["a_zero_point"]) @ b.astype(np.int64)
    bias = rng.integers(-500, 500, n).astype(np.int32)
    op = "QGemm" if trans else "QLinearMatMul"
    acc = acc + bias if trans else acc
    want = requantise(acc, scales(quant, ("a", "b")), quant["y_zero_point"], U8)
    inputs = [a, None, None, np.ascontiguousarray(b.T) if trans else b]
    if trans:
        inputs += [None, None, bias]
        quant["transB"] = 1
    for threads in (1, 2):
        (got,) = run_step(
            op,
            "i8_gemm",
            inputs,
            [np.zeros_like(want)],
            quant,
            constant=(3, 6),
            threads=threads,
            max_isa=isa,
        )
        assert np.array_equal(got, want)


@pytest.mark.parametrize("isa", native.isas())
def test_products_of_two_computed_matrices(isa):
    for inputs, quant, want in product_cases():
        for threads in (1, 3):
            (got,) = run_step(
                "QLinearMatMul", "i8_matmul", inputs, [np.zeros_like(want)], quant,
                threads=threads, max_isa=isa,
            )  # fmt: skip
            assert np.array_equal(got, want)


def test_zero_points_outside_the_weights_type_are_refused():
    x, w = np.zeros((1, 4, 4, 4), U8), np.zeros((4, 4, 1, 1), I8)
    quant = quant_case(np.random.default_rng(0), 4, 4, U8, I8, U8)
    quant["w_zero_point"] = [128] * 4
    with pytest.raises(ModelFormatError, match="outside its type"):
        run_step("QLinearConv", GEMM, [x, None, None, w], [x], quant, constant=(3,))
