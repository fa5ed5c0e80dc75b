"""Integer compute kernels: every instruction set must give exactly the reference's integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lite_engine.backends.cpu import native
from lite_engine.errors import ModelFormatError

from ..oracles import conv, deconv
from ..tiny import load, one_step_plan, run_step

pytestmark = pytest.mark.cpu

GEMM, DEPTHWISE, DECONV = "i8_conv2d_gemm", "i8_conv2d_depthwise", "i8_deconv2d"
U8, I8 = np.uint8, np.int8
LARGE = 2 << 20  # of a second-level cache, whatever this processor has

# kernel, x (N,H,W,C), output channels, kernel, attributes, x type, w type, y type
CONVS: list[tuple] = [
    (GEMM, (1, 1, 1, 1), 1, (1, 1), {}, U8, I8, U8),
    (GEMM, (1, 5, 5, 8), 9, (1, 1), {}, U8, I8, U8),
    (GEMM, (2, 4, 7, 33), 65, (1, 1), {}, I8, I8, I8),
    (GEMM, (1, 9, 9, 16), 40, (1, 1), {"strides": [2, 2]}, U8, I8, I8),
    (GEMM, (1, 11, 13, 3), 24, (3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}, U8, I8, U8),
    (GEMM, (1, 9, 8, 20), 33, (3, 3), {"pads": [1, 1, 1, 1]}, I8, U8, U8),
    (GEMM, (1, 9, 8, 32), 32, (3, 3), {"pads": [1, 1, 1, 1], "activation": "Relu"}, I8, I8, I8),
    (
        GEMM,
        (1, 7, 7, 6),
        10,
        (5, 5),
        {"pads": [2, 2, 2, 2], "dilations": [1, 2], "auto_pad": "SAME_UPPER"},
        U8,
        U8,
        I8,
    ),
    (GEMM, (1, 6, 6, 16), 16, (3, 3), {"group": 4, "pads": [1, 1, 1, 1]}, U8, I8, U8),
    (GEMM, (1, 6, 6, 10), 10, (3, 3), {"group": 10, "pads": [1, 1, 1, 1]}, I8, I8, I8),
    (GEMM, (1, 3, 3, 4), 6, (3, 3), {"pads": [3, 3, 3, 3]}, U8, I8, U8),
    (
        GEMM,
        (1, 16, 16, 64),
        64,
        (1, 1),
        {"activation": "Clip", "activation_params": [-0.5, 0.5]},
        U8,
        I8,
        U8,
    ),
    (GEMM, (2, 9, 10, 18), 20, (3, 3), {"pads": [0, 1, 1, 0]}, I8, I8, U8),
    (DEPTHWISE, (1, 8, 8, 64), 64, (3, 3), {"pads": [1, 1, 1, 1]}, U8, I8, U8),
    (DEPTHWISE, (2, 7, 9, 70), 70, (3, 3), {"pads": [1, 1, 1, 1]}, I8, I8, I8),
    (DEPTHWISE, (1, 9, 9, 20), 20, (3, 3), {"pads": [0, 0, 1, 1], "strides": [2, 2]}, U8, U8, I8),
    (DEPTHWISE, (1, 9, 8, 33), 33, (5, 5), {"pads": [2, 2, 2, 2]}, I8, U8, U8),
    (DEPTHWISE, (1, 9, 8, 17), 17, (5, 5), {"pads": [2, 2, 2, 2], "strides": [2, 2]}, U8, I8, U8),
    (DEPTHWISE, (1, 9, 1, 5), 5, (3, 3), {"pads": [2, 2, 2, 2], "dilations": [2, 2]}, U8, I8, U8),
    (DEPTHWISE, (1, 1, 3, 130), 130, (3, 3), {"pads": [1, 1, 1, 1]}, I8, I8, I8),
    (DEPTHWISE, (1, 5, 1, 4), 4, (1, 1), {"activation": "Relu"}, U8, I8, U8),
    # half a register of channels, an odd number of tiles in a row
    (DEPTHWISE, (1, 7, 17, 32), 32, (3, 3), {"pads": [1, 1, 1, 1]}, U8, I8, U8),
    (DEPTHWISE, (2, 9, 11, 96), 96, (5, 5), {"pads": [2, 2, 2, 2], "strides": [2, 2]}, I8, I8, I8),
    # 5x5: rows that end in parts of tiles and of registers, rows left out, padding of either kind
    (DEPTHWISE, (2, 11, 23, 72), 72, (5, 5), {"pads": [2, 2, 2, 2]}, I8, I8, U8),
    (
        DEPTHWISE,
        (1, 12, 19, 120),
        120,
        (5, 5),
        {"pads": [1, 3, 2, 0], "strides": [2, 2]},
        U8,
        U8,
        U8,
    ),
    (
        DEPTHWISE,
        (1, 17, 9, 24),
        24,
        (5, 5),
        {"pads": [4, 4, 4, 4], "strides": [6, 1], "activation": "Relu"},
        I8,
        I8,
        I8,
    ),
    (DEPTHWISE, (1, 5, 5, 8), 8, (5, 5), {"zeros": "some"}, U8, U8, I8),
    (DEPTHWISE, (1, 6, 73, 40), 40, (5, 5), {"pads": [2, 2, 2, 2]}, U8, I8, U8),
    # a residual, whole vectors and parts of them, of either type
    (GEMM, (1, 16, 16, 64), 64, (1, 1), {"residual": I8}, U8, I8, U8),
    (GEMM, (2, 4, 7, 33), 65, (1, 1), {"residual": U8}, I8, I8, I8),
    (GEMM, (1, 9, 8, 20), 33, (3, 3), {"pads": [1, 1, 1, 1], "residual": U8}, I8, I8, U8),
    (
        GEMM,
        (1, 6, 6, 16),
        16,
        (3, 3),
        {"group": 4, "pads": [1, 1, 1, 1], "residual": I8, "activation": "Relu"},
        U8,
        I8,
        I8,
    ),
    # sums rounded before it
    (GEMM, (1, 16, 16, 64), 64, (1, 1), {"residual": I8, "sum_zero": 11}, U8, I8, U8),
    (GEMM, (2, 4, 7, 33), 65, (1, 1), {"residual": I8, "sum_zero": -7}, I8, I8, I8),
    (
        GEMM,
        (1, 9, 8, 20),
        9,
        (3, 3),
        {"pads": [1, 1, 1, 1], "residual": U8, "sum_zero": 128, "activation": "Relu"},
        I8,
        I8,
        U8,
    ),
    # zero points of 0, and of the least number; two rows of seven pixels in one tile
    (GEMM, (1, 9, 7, 24), 64, (1, 1), {"y_zero": 0}, U8, I8, U8),
    (
        GEMM,
        (1, 9, 7, 24),
        48,
        (1, 1),
        {"residual": U8, "residual_zero": 0, "y_zero": 0},
        U8,
        I8,
        U8,
    ),
    (
        GEMM,
        (1, 5, 5, 24),
        48,
        (1, 1),
        {"residual": I8, "residual_zero": -128, "y_zero": -128, "sum_zero": 5},
        U8,
        I8,
        I8,
    ),
    (
        GEMM,
        (2, 7, 7, 64),
        40,
        (3, 3),
        {"pads": [1, 1, 1, 1], "residual": U8, "sum_zero": 9, "residual_zero": 0, "y_zero": 0},
        U8,
        I8,
        U8,
    ),
    (GEMM, (1, 7, 7, 32), 33, (3, 3), {"pads": [1, 1, 1, 1], "zeros": "some"}, U8, U8, U8),
    # weights with zero points: one for all, or one per channel
    *(
        (kernel, dims, out_c, k, {**options, "zeros": zeros}, *types)
        for zeros in (0, 151, 255, "some", "near")
        for kernel, dims, out_c, k, options, *types in (
            (GEMM, (1, 5, 5, 8), 9, (1, 1), {}, U8, U8, U8),
            (GEMM, (2, 4, 7, 133), 65, (1, 1), {}, I8, U8, I8),
            (GEMM, (1, 9, 8, 20), 33, (3, 3), {"pads": [1, 1, 1, 1]}, I8, I8, U8),
            (
                GEMM,
                (1, 11, 13, 3),
                24,
                (3, 3),
                {"strides": [2, 2], "pads": [1, 1, 1, 1]},
                U8,
                U8,
                U8,
            ),
            (GEMM, (1, 6, 6, 16), 16, (3, 3), {"group": 4, "pads": [1, 1, 1, 1]}, I8, U8, U8),
            (
                DEPTHWISE,
                (1, 9, 9, 20),
                20,
                (3, 3),
                {"pads": [0, 0, 1, 1], "strides": [2, 2]},
                U8,
                U8,
                I8,
            ),
            (DEPTHWISE, (1, 8, 8, 70), 70, (3, 3), {"pads": [1, 1, 1, 1]}, I8, I8, U8),
            (DEPTHWISE, (1, 9, 8, 33), 33, (5, 5), {"pads": [2, 2, 2, 2]}, U8, U8, U8),
        )
    ),
]

# Large enough for AMX tiles: what lies where it is read, copies with padding, rows split by stride,
# taps joined to one row of a tile, depths that do not fill tiles, groups, a residual, sums rounded
# before it.
TILED: list[tuple] = [
    (GEMM, (1, 16, 16, 64), 64, (1, 1), {}, U8, I8, U8),
    (GEMM, (1, 10, 10, 96), 40, (1, 1), {"residual": I8}, I8, I8, U8),
    (GEMM, (2, 4, 13, 256), 16, (1, 1), {"activation": "Relu"}, U8, I8, I8),
    (GEMM, (1, 14, 14, 58), 58, (1, 1), {"residual": U8}, U8, I8, U8),
    (GEMM, (1, 10, 10, 96), 40, (1, 1), {"residual": U8, "sum_zero": 0}, U8, I8, U8),
    (GEMM, (1, 14, 14, 64), 10, (1, 1), {"residual": I8, "sum_zero": 5}, U8, I8, I8),
    (GEMM, (1, 28, 27, 64), 128, (1, 1), {"strides": [2, 2]}, U8, I8, I8),
    (GEMM, (1, 7, 7, 128), 64, (3, 3), {"pads": [1, 1, 1, 1]}, I8, I8, I8),
    (GEMM, (2, 15, 13, 64), 33, (3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}, U8, I8, U8),
    (
        GEMM,
        (1, 17, 15, 72),
        48,
        (3, 3),
        {"pads": [0, 2, 1, 0], "strides": [3, 2], "residual": I8},
        I8,
        I8,
        U8,
    ),
    (GEMM, (1, 16, 15, 64), 96, (3, 3), {"pads": [2, 2, 2, 2], "dilations": [2, 2]}, U8, I8, U8),
    (GEMM, (1, 40, 42, 3), 64, (7, 7), {"pads": [3, 3, 3, 3], "strides": [2, 2]}, U8, I8, U8),
    (GEMM, (1, 30, 30, 16), 32, (3, 3), {"pads": [1, 1, 1, 1]}, I8, I8, I8),
    (GEMM, (1, 20, 21, 32), 48, (3, 3), {"pads": [1, 1, 1, 1]}, U8, I8, U8),
    (GEMM, (2, 18, 17, 28), 32, (3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}, I8, I8, I8),
    (GEMM, (1, 16, 17, 21), 33, (5, 5), {"pads": [2, 0, 2, 4], "residual": U8}, U8, I8, U8),
    (GEMM, (1, 12, 12, 128), 128, (3, 3), {"group": 2, "pads": [1, 1, 1, 1]}, U8, I8, U8),
    (
        GEMM,
        (1, 20, 18, 64),
        64,
        (5, 1),
        {"pads": [2, 0, 2, 0], "activation": "Clip", "activation_params": [-0.5, 9]},
        U8,
        I8,
        I8,
    ),
    (
        GEMM,
        (1, 7, 16, 100),
        30,
        (2, 3),
        {"pads": [3, 2, 2, 1], "strides": [3, 1], "dilations": [1, 2]},
        I8,
        I8,
        I8,
    ),
    (GEMM, (1, 2, 30, 64), 64, (3, 3), {"pads": [3, 3, 3, 3]}, U8, I8, U8),
]

# Large enough for Winograd's F(4,3): whole tiles and parts of them, edges without padding and with
# more than the kernel asks for, channels that fill no register, several images, residuals.
EXACT: list[tuple] = [
    (GEMM, (1, 16, 16, 64), 64, (3, 3), {"pads": [1, 1, 1, 1]}, U8, I8, U8),
    (GEMM, (1, 24, 18, 64), 48, (3, 3), {"pads": [1, 1, 1, 1], "activation": "Relu"}, I8, I8, I8),
    (GEMM, (2, 17, 21, 61), 75, (3, 3), {"pads": [0, 2, 1, 3], "y_zero": 0}, U8, I8, U8),
    (GEMM, (1, 22, 23, 96), 100, (3, 3), {}, I8, I8, U8),
    (GEMM, (1, 24, 20, 64), 70, (3, 3), {"pads": [1, 1, 1, 1], "residual": I8}, U8, I8, I8),
    (
        GEMM,
        (1, 20, 19, 64),
        64,
        (3, 3),
        {"pads": [1, 1, 1, 1], "residual": U8, "sum_zero": 9, "residual_zero": 0, "y_zero": 0},
        U8,
        I8,
        U8,
    ),
]

# x (N,H,W,C), output channels, kernel, attributes, x type, w type, y type: taps that overlap, gaps
# between them, cut edges, groups; the last ones are large enough for AMX, read in place or copied.
DECONVS: list[tuple] = [
    ((1, 3, 4, 8), 5, (2, 2), {"strides": [2, 2]}, U8, I8, U8),
    ((2, 5, 3, 7), 33, (3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}, I8, I8, I8),
    ((1, 4, 5, 12), 10, (4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}, U8, U8, I8),
    ((1, 4, 4, 6), 4, (1, 2), {"strides": [3, 2]}, U8, I8, U8),
    (
        (1, 5, 4, 8),
        12,
        (3, 2),
        {
            "strides": [2, 3],
            "dilations": [3, 2],
            "group": 4,
            "output_padding": [1, 2],
            "activation": "Relu",
        },
        I8,
        I8,
        U8,
    ),
    ((1, 6, 6, 20), 20, (4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1], "group": 20}, U8, I8, U8),
    (
        (1, 5, 6, 12),
        8,
        (3, 3),
        {"strides": [2, 1], "pads": [3, 2, 1, 0], "group": 2, "zeros": "some"},
        U8,
        U8,
        U8,
    ),
    ((1, 9, 8, 64), 48, (2, 2), {"strides": [2, 2]}, U8, I8, U8),
    ((2, 5, 7, 64), 64, (2, 2), {"strides": [2, 2], "activation": "Relu"}, I8, I8, I8),
    ((1, 12, 13, 64), 64, (4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}, U8, I8, I8),
]


def requantise(acc, scale, zero, dtype, low=-np.inf, high=np.inf, added=0):
    """clamp(round_half_even(float32(acc) * scale + added) + zero), float32 all the way."""
    info = np.iinfo(dtype)
    q = np.rint(acc.astype(np.float32) * scale + added).astype(np.float64) + zero
    return np.clip(q, max(info.min, low), min(info.max, high)).astype(dtype)


def quant_case(rng, depth, channels, x_type, w_type, y_type, names=("x", "w")) -> dict[str, Any]:
    x, w = names
    info = np.iinfo(x_type)
    return {
        f"{x}_scale": float(np.float32(0.02)),
        f"{x}_zero_point": int(rng.integers(info.min, info.max + 1)),
        f"{w}_scale": (rng.random(channels).astype(np.float32) * 0.02 + 0.001).tolist(),
        f"{w}_zero_point": [128 if w_type is U8 else 0],
        "y_scale": float(np.float32(0.03 * np.sqrt(depth))),
        "y_zero_point": 120 if y_type is U8 else -5,
    }


def scales(quant, names=("x", "w")) -> np.ndarray:
    x, w = names
    product = np.float32(quant[f"{x}_scale"]) * np.array(quant[f"{w}_scale"], np.float32)
    return product / np.float32(quant["y_scale"])


def weight_zeros(rng, kind, channels) -> np.ndarray:
    """Zero points of u8 weights."""
    if kind == "some":
        return rng.integers(0, 256, channels)
    return np.full(channels, {"near": 127}.get(kind, kind))


def int_conv_case(kernel, x_dims, out_c, k, options, x_type, w_type, y_type):
    """(inputs, attributes, expected output) of one QLinearConv; constants are at 3 and 8."""
    rng = np.random.default_rng(3)
    options = {"group": x_dims[3] if kernel == DEPTHWISE else 1, **options}
    residual, sum_zero = options.pop("residual", None), options.pop("sum_zero", None)
    residual_zero, y_zero = options.pop("residual_zero", 3), options.pop("y_zero", None)
    info = np.iinfo(x_type)
    x = rng.integers(info.min, info.max + 1, x_dims).astype(x_type)
    w = rng.integers(-127, 128, (out_c, x_dims[3] // options["group"], *k)).astype(np.int64)
    zeros = weight_zeros(rng, options.pop("zeros", 128), out_c)
    if (zeros != 128).any():
        w.flat[::7], w.flat[1::7] = 127, -128
    w += 128  # as stored in u8; zeros too
    w -= zeros.reshape(-1, 1, 1, 1)
    b = rng.integers(-3000, 3000, out_c).astype(np.int32)
    quant = quant_case(rng, w[0].size, out_c, x_type, w_type, y_type)
    if y_zero is not None:
        quant["y_zero_point"] = y_zero
    geometry = {n: v for n, v in options.items() if not n.startswith("activation")}
    acc = conv(x.astype(np.int64) - quant["x_zero_point"], w, **geometry) + b
    low, high, added, behind = -np.inf, np.inf, 0, []
    if residual:
        limits = np.iinfo(residual)
        r = rng.integers(limits.min, limits.max + 1, acc.shape).astype(residual)
        quant |= {"residual_scale": float(np.float32(0.027)), "residual_zero_point": residual_zero}
        ratio = np.float32(quant["residual_scale"]) / np.float32(quant["y_scale"])
        added, behind = (r.astype(np.int32) - residual_zero).astype(np.float32) * ratio, [r]
    if options.get("activation") == "Relu":
        low = quant["y_zero_point"]
    elif "activation" in options:
        low, high = (
            np.rint(np.float32(v) / np.float32(quant["y_scale"])) + quant["y_zero_point"]
            for v in options["activation_params"]
        )
    scale = scales(quant)
    if sum_zero is not None:
        quant |= {"sum_scale": float(np.float32(quant["y_scale"] / 3)), "sum_zero_point": sum_zero}
        own = scales({**quant, "y_scale": quant["sum_scale"]})
        acc = requantise(acc, own, sum_zero, y_type).astype(np.int32) - sum_zero
        scale = np.float32(quant["sum_scale"]) / np.float32(quant["y_scale"])
    want = requantise(acc, scale, quant["y_zero_point"], y_type, low, high, added)
    quant["w_zero_point"] = (zeros - (0 if w_type is U8 else 128)).tolist()
    stored = (w + zeros.reshape(-1, 1, 1, 1) - (0 if w_type is U8 else 128)).astype(w_type)
    none = [None, None]
    return [x, *none, stored, *none, *none, b, *behind], {**options, **quant}, want


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
@pytest.mark.parametrize(("channels", "name"), [(115, "winograd43"), (116, "gemm")])
def test_winograd_is_exact_up_to_its_largest_sums(channels, name, isa):
    """255 * 127 * 9 * 115 is the last below 2**25, which is as far as 576-fold sums reach."""
    x = np.full((1, 16, 16, channels), 255, U8)
    x[0, ::7] = x[0, :, ::5] = 0
    w = np.full((64, channels, 3, 3), 127, I8)
    w[1::2] = -127
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


def int_deconv_case(x_dims, out_c, k, options, x_type, w_type, y_type):
    """(inputs, attributes, expected output) of one QLinearConvTranspose; constants at 3 and 8."""
    rng = np.random.default_rng(5)
    geometry = {n: v for n, v in options.items() if n not in ("activation", "zeros")}
    info = np.iinfo(x_type)
    x = rng.integers(info.min, info.max + 1, x_dims).astype(x_type)
    group = options.get("group", 1)
    stored = rng.integers(-127, 128, (x_dims[3], out_c // group, *k)) + (w_type is U8) * 128
    zeros = weight_zeros(rng, options.get("zeros", 128), out_c) - (w_type is not U8) * 128
    own = np.repeat(zeros.reshape(group, 1, -1), x_dims[3] // group, axis=1)
    w = stored - own.reshape(*stored.shape[:2], 1, 1)
    b = rng.integers(-3000, 3000, out_c).astype(np.int32)
    quant = quant_case(rng, w.size // out_c, out_c, x_type, w_type, y_type)
    acc = deconv(x.astype(np.int64) - quant["x_zero_point"], w, **geometry).astype(np.int64) + b
    low = quant["y_zero_point"] if options.get("activation") == "Relu" else -np.inf
    want = requantise(acc, scales(quant), quant["y_zero_point"], y_type, low)
    attrs = {n: v for n, v in options.items() if n != "zeros"} | quant
    attrs["w_zero_point"] = zeros.tolist()
    return [x, None, None, stored.astype(w_type), *[None] * 4, b], attrs, want


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
    assert load(plan).memory().scratch_bytes < inputs[0].nbytes
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


def test_zero_points_outside_the_weights_type_are_refused():
    x, w = np.zeros((1, 4, 4, 4), U8), np.zeros((4, 4, 1, 1), I8)
    quant = quant_case(np.random.default_rng(0), 4, 4, U8, I8, U8)
    quant["w_zero_point"] = [128] * 4
    with pytest.raises(ModelFormatError, match="outside its type"):
        run_step("QLinearConv", GEMM, [x, None, None, w], [x], quant, constant=(3,))
