"""Float compute kernels against the NumPy references, at sizes that straddle their tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lite_engine.backends.cpu import native
from lite_engine.errors import ModelFormatError
from lite_engine.ir import DType
from lite_engine.ops._core import bf16_to_f32, f32_to_bf16
from lite_engine.ops.activation import apply_activation
from lite_engine.plan.memory import assign_offsets
from lite_engine.plan.model import PlanTensor, Step, row_major

from ..oracles import conv, deconv
from ..tiny import as_bf16, load, one_step_plan, run_step

pytestmark = pytest.mark.cpu

GEMM = "f32_conv2d_gemm"
W23, W43, DEPTHWISE = "f32_conv2d_winograd23", "f32_conv2d_winograd43", "f32_conv2d_depthwise"
DECONV, BF16 = "f32_deconv2d", "bf16_conv2d_gemm"

# kernel, x (N,H,W,C), output channels, kernel (h,w), attributes; "r": with a residual
CONVS: list[tuple[str, tuple[int, ...], int, tuple[int, int], dict[str, Any]]] = [
    (GEMM, (1, 1, 1, 1), 1, (1, 1), {}),
    (GEMM, (1, 5, 5, 7), 9, (1, 1), {"r": 1}),
    (GEMM, (2, 3, 5, 33), 31, (1, 1), {"activation": "Relu"}),
    (GEMM, (1, 7, 7, 16), 65, (1, 1), {"strides": [2, 2]}),
    (GEMM, (1, 15, 13, 17), 35, (3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    (
        GEMM,
        (2, 6, 6, 20),
        33,
        (3, 3),
        {"pads": [1, 1, 1, 1], "r": 1, "activation": "LeakyRelu", "activation_params": [0.1]},
    ),
    (GEMM, (1, 23, 20, 3), 32, (7, 7), {"strides": [2, 2], "pads": [3, 3, 3, 3]}),
    (GEMM, (1, 9, 9, 5), 6, (3, 3), {"dilations": [2, 3], "pads": [2, 3, 2, 3]}),
    (GEMM, (1, 3, 3, 5), 6, (3, 3), {"pads": [4, 4, 4, 4]}),
    (GEMM, (1, 8, 8, 4), 6, (3, 3), {"pads": [0, 1, 2, 0], "strides": [2, 1]}),
    (GEMM, (1, 1, 40, 5), 18, (1, 7), {"pads": [0, 3, 0, 3]}),
    (GEMM, (1, 9, 8, 6), 7, (2, 2), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    (GEMM, (1, 9, 8, 6), 7, (4, 4), {"auto_pad": "SAME_LOWER"}),
    (GEMM, (1, 30, 30, 8), 100, (1, 1), {"activation": "HardSwish"}),
    (GEMM, (1, 9, 9, 32), 64, (3, 3), {"group": 4, "pads": [1, 1, 1, 1], "r": 1}),
    (GEMM, (1, 9, 9, 24), 24, (3, 3), {"group": 8, "pads": [1, 1, 1, 1]}),
    (GEMM, (1, 6, 9, 24), 48, (3, 3), {"group": 24, "strides": [2, 2]}),
    (GEMM, (1, 4, 4, 6), 15, (1, 1), {"group": 3}),
    (W23, (1, 7, 7, 20), 33, (3, 3), {"pads": [1, 1, 1, 1], "r": 1, "activation": "Relu"}),
    (W23, (2, 3, 9, 16), 16, (3, 3), {"pads": [0, 1, 0, 1]}),
    (W43, (1, 14, 14, 144), 560, (3, 3), {"pads": [1, 1, 1, 1], "r": 1}),  # two groups of panels
    (
        W43,
        (1, 15, 14, 36),
        50,
        (3, 3),
        {"pads": [1, 1, 1, 1], "r": 1, "activation": "Clip", "activation_params": [0.0, 6.0]},
    ),
    (W43, (1, 5, 30, 16), 17, (3, 3), {"activation": "Silu"}),
    (W43, (2, 33, 30, 3), 8, (3, 3), {"pads": [2, 2, 2, 2]}),
    # one to four tiles: on AVX-512 the kernel that transforms weights as it reads them
    (W43, (1, 4, 4, 64), 16, (3, 3), {"pads": [1, 1, 1, 1]}),
    (W43, (2, 6, 5, 48), 70, (3, 3), {"pads": [0, 0, 0, 0], "r": 1}),
    (W43, (1, 3, 12, 35), 20, (3, 3), {"pads": [1, 1, 1, 1], "activation": "Silu"}),
    (W43, (1, 7, 7, 20), 33, (3, 3), {"pads": [1, 1, 1, 1], "r": 1, "activation": "Relu"}),
    (DEPTHWISE, (1, 14, 14, 40), 40, (3, 3), {"pads": [1, 1, 1, 1]}),
    (DEPTHWISE, (2, 13, 15, 35), 35, (3, 3), {"pads": [0, 0, 1, 1], "strides": [2, 2], "r": 1}),
    (DEPTHWISE, (1, 7, 6, 72), 72, (5, 5), {"pads": [2, 2, 2, 2], "activation": "HardSwish"}),
    (DEPTHWISE, (1, 14, 9, 33), 33, (5, 5), {"pads": [2, 2, 2, 2], "strides": [2, 2]}),
    (DEPTHWISE, (1, 1, 3, 5), 5, (3, 3), {"pads": [1, 1, 1, 1]}),
    (DEPTHWISE, (1, 9, 9, 20), 20, (3, 3), {"pads": [2, 2, 2, 2], "dilations": [2, 2]}),
    (DEPTHWISE, (1, 9, 9, 50), 50, (7, 7), {"pads": [3, 3, 3, 3], "activation": "Relu"}),
    (DEPTHWISE, (1, 4, 9, 18), 18, (1, 3), {"pads": [0, 5, 0, 5], "strides": [1, 3]}),
    (DECONV, (1, 8, 8, 20), 12, (2, 2), {"strides": [2, 2]}),
    (
        DECONV,
        (2, 7, 9, 20),
        33,
        (3, 3),
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1], "activation": "Relu"},
    ),
    (DECONV, (1, 7, 5, 9), 18, (4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    (DECONV, (1, 7, 5, 8), 8, (2, 2), {"strides": [3, 3], "group": 8}),
    (DECONV, (1, 4, 5, 8), 6, (3, 3), {"strides": [2, 3], "dilations": [2, 2]}),
    (DECONV, (1, 6, 5, 8), 6, (3, 3), {"pads": [1, 1, 1, 1]}),
]
CONVS += [(k, *c[1:]) for k in (BF16,) for c in CONVS if c[0] == GEMM]
# Large enough for AMX tiles, in every way that those read their input.
TILED: list = [
    (BF16, (1, 16, 16, 64), 64, (1, 1), {"r": True, "activation": "Relu"}),
    (BF16, (2, 10, 11, 37), 40, (1, 1), {"activation": "HardSwish"}),
    (BF16, (1, 28, 27, 64), 128, (1, 1), {"strides": [2, 2]}),
    (BF16, (2, 15, 13, 64), 33, (3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2], "r": True}),
    (BF16, (1, 30, 30, 9), 64, (3, 3), {"pads": [1, 1, 1, 1]}),
    (BF16, (1, 16, 15, 64), 96, (3, 3), {"pads": [2, 2, 2, 2], "dilations": [2, 2]}),
    (BF16, (1, 20, 21, 14), 48, (3, 3), {"pads": [1, 1, 1, 1]}),
    (BF16, (1, 16, 17, 11), 33, (5, 5), {"pads": [2, 0, 2, 4], "strides": [2, 2], "r": True}),
    (BF16, (1, 12, 12, 128), 128, (3, 3), {"group": 2, "pads": [1, 1, 1, 1]}),
]
# Direct products of bf16 on matrix units, F(4,3) elsewhere: the tolerance is that of F(4,3).
W43_BF16 = "bf16_conv2d_3x3"
F32_3X3 = "f32_conv2d_3x3"
X2, DECONV_X2 = "f32_conv2d_bf16x2", "f32_deconv2d_bf16x2"
DECONV_BF16 = "bf16_deconv2d"
TRANSPOSED = (DECONV, DECONV_X2, DECONV_BF16)
TILED += [(X2, *c[1:]) for c in TILED]
# A network's first layer: pixels of three channels.
TILED += [
    (BF16, (2, 33, 31, 3), 32, (3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    (BF16, (1, 45, 46, 3), 64, (7, 7), {"pads": [3, 3, 3, 3], "strides": [2, 2]}),
]
# More than the second-level cache holds: copied and computed some rows at a time.
TILED += [
    (X2, (2, 40, 41, 128), 33, (3, 3), {"pads": [1, 1, 1, 1], "r": True}),
    (
        X2,
        (1, 81, 80, 64),
        33,
        (3, 3),
        {"pads": [1, 1, 1, 1], "strides": [2, 2], "activation": "Silu"},
    ),
    (X2, (1, 64, 80, 80), 40, (1, 1), {"r": True, "activation": "Relu"}),
    (DECONV_X2, (1, 17, 16, 64), 48, (2, 2), {"strides": [2, 2], "activation": "Silu"}),
    (DECONV_X2, (2, 70, 50, 64), 33, (2, 3), {"strides": [2, 1]}),
]
TILED += [(DECONV_BF16, *c[1:]) for c in TILED if c[0] == DECONV_X2]
CONVS += TILED
CONVS += [(k, *c[1:]) for k in (F32_3X3,) for c in CONVS if c[0] in (W23, W43)]
CONVS += [  # stride 2: F(2,3), the GEMM on few pixels
    (
        F32_3X3,
        (2, 15, 13, 36),
        50,
        (3, 3),
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "r": 1, "activation": "Relu"},
    ),
    (F32_3X3, (1, 18, 28, 33), 33, (3, 3), {"strides": [2, 2], "pads": [0, 0, 1, 1]}),
    (F32_3X3, (1, 5, 5, 40), 34, (3, 3), {"strides": [2, 2], "activation": "Silu"}),
]
CONVS += [
    (W43_BF16, (1, 12, 14, 64), 48, (3, 3), {"pads": [1, 1, 1, 1], "activation": "Relu"}),
    (W43_BF16, (1, 17, 9, 20), 33, (3, 3), {"pads": [1, 1, 1, 1], "r": True}),
]


def cases(convs: list) -> list:
    return [
        pytest.param(*c, id=f"{c[0]}-{'x'.join(map(str, c[1]))}-{c[2]}-{i}")
        for i, c in enumerate(convs)
    ]


def close(got: np.ndarray, want: np.ndarray, limit: float = 3e-5) -> None:
    """Within `limit` of the output's root mean square, everywhere."""
    assert got.shape == want.shape
    scale = float(np.sqrt(np.mean(np.square(want, dtype=np.float64)))) + 1e-30
    error = np.abs(got.astype(np.float64) - want)
    worst = np.unravel_index(int(np.argmax(error)), error.shape)
    assert np.all(np.isfinite(got)) and error[worst] <= limit * scale, (
        f"{got[worst]} instead of {want[worst]} at {worst}, output rms {scale}"
    )


def limit_of(kernel: str, isa: str) -> float:
    """F(4,3) and floats as two bf16 lose more than plain sums."""
    return 1e-4 if kernel in (W43, F32_3X3, W43_BF16, X2, DECONV_X2) else 3e-5


def short(x: np.ndarray) -> np.ndarray:
    """Numbers that bf16 holds, so that every instruction set multiplies the same."""
    return (x.view(np.uint32) & 0xFFFF0000).view(np.float32)


def conv_case(kernel: str, x_dims, out_c, k, options, seed=0, rounded=None):
    """(op, physical inputs, attributes, expected physical output) of one convolution."""
    rng = np.random.default_rng(seed)
    attrs = {name: v for name, v in options.items() if name != "r"}
    group = attrs.setdefault("group", x_dims[3] if "depthwise" in kernel else 1)
    transposed = kernel in TRANSPOSED
    w_dims = (x_dims[3], out_c // group, *k) if transposed else (out_c, x_dims[3] // group, *k)
    x, w, b = (rng.standard_normal(d, np.float32) for d in (x_dims, w_dims, out_c))
    if kernel in (BF16, W43_BF16, DECONV_BF16, DEPTHWISE_BF16):
        x, w = short(x), short(w)
    if rounded:
        x, w = rounded(x), rounded(w)
    geometry = {n: v for n, v in attrs.items() if not n.startswith("activation")}
    want = (deconv if transposed else conv)(x, w, **geometry) + b
    inputs = [x, w, b]
    if options.get("r"):
        inputs.append(short(rng.standard_normal(want.shape, np.float32)))
        want = want + inputs[3]
    want = apply_activation(attrs.get("activation", ""), attrs.get("activation_params", []), want)
    return "ConvTranspose" if transposed else "Conv", inputs, attrs, want


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize(("kernel", "x", "out_c", "k", "options"), cases(CONVS))
def test_conv(kernel, x, out_c, k, options, isa):
    op, inputs, attrs, want = conv_case(kernel, x, out_c, k, options)
    for threads in (1, 3):
        (got,) = run_step(
            op,
            kernel,
            inputs,
            [np.full(want.shape, np.nan, np.float32)],
            attrs,
            constant=(1, 2),
            threads=threads,
            max_isa=isa,
        )
        close(got, want, limit_of(kernel, isa))


def test_threads_take_what_others_leave():
    """Large products are cut finer than by threads; whoever takes a piece, it is the same."""
    op, inputs, attrs, want = conv_case(GEMM, (1, 30, 31, 96), 100, (1, 1), {})
    assert inputs[0].nbytes + want.nbytes > 128 << 10  # kLargeBytes of src/runtime/prepare.cc
    results = [
        run_step(op, GEMM, inputs, [np.full(want.shape, np.nan, np.float32)], attrs,
                 constant=(1, 2), threads=threads)[0]
        for threads in (1, 2, 3, 7, 64)
    ]  # fmt: skip
    close(results[0], want)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


@pytest.mark.skipif("amx" not in native.isas(), reason="this processor has no AMX")
@pytest.mark.parametrize(("kernel", "x", "out_c", "k", "options"), cases(TILED))
def test_amx_takes_what_suits_it(kernel, x, out_c, k, options):
    op, inputs, attrs, want = conv_case(kernel, x, out_c, k, options)
    plan = one_step_plan(op, kernel, inputs, [want.astype(np.float32)], attrs, (1, 2))
    (step,) = load(plan).steps()
    assert step.variant.startswith(f"{kernel}__amx_")


@pytest.mark.skipif("avx512" not in native.isas(), reason="this processor has no AVX-512")
@pytest.mark.parametrize(
    ("x", "compact"),
    [((1, 7, 7, 20), True), ((1, 2, 7, 20), False), ((1, 7, 7, 12), False), ((1, 9, 7, 20), False)],
)
def test_small_maps_keep_their_weights_small(x, compact):
    op, inputs, attrs, want = conv_case(F32_3X3, x, 33, (3, 3), {"pads": [1, 1, 1, 1]})
    plan = one_step_plan(op, F32_3X3, inputs, [want.astype(np.float32)], attrs, (1, 2))
    (step,) = load(plan).steps()
    assert step.variant.endswith("_compact") == compact


# Values that lie in memory in bf16: kernels of their own, or bf16.cc around those of floats.
DEPTHWISE_BF16 = "bf16_conv2d_depthwise"
SHORTS = [c for c in CONVS if c[0] in (BF16, W43_BF16, DECONV_BF16)]
SHORTS += [(DEPTHWISE_BF16, *c[1:]) for c in CONVS if c[0] == DEPTHWISE]
SHORTS += [
    (DEPTHWISE_BF16, (1, 40, 37, 48), 48, (3, 3), {"pads": [1, 1, 1, 1], "activation": "Relu"}),
    (DEPTHWISE_BF16, (2, 9, 8, 33), 33, (5, 5), {"pads": [2, 2, 2, 2], "activation": "Silu"}),
]


def close_short(got: np.ndarray, want: np.ndarray, limit: float) -> None:
    """`close` of a result that was rounded to bf16: at most half a unit of its last place off."""
    nearest = bf16_to_f32(f32_to_bf16(want.astype(np.float32)))
    close(np.where(np.abs(got - want) <= np.abs(want) * 2.0**-8, nearest, got), nearest, limit)


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize(("kernel", "x", "out_c", "k", "options"), cases(SHORTS))
def test_conv_of_shorts(kernel, x, out_c, k, options, isa):
    """All values in bf16, or only the input, the output or the residual."""
    op, inputs, attrs, want = conv_case(kernel, x, out_c, k, options)
    every = [0, 3, -1] if options.get("r") else [0, -1]
    for which in [every] if kernel == DEPTHWISE_BF16 else [every, *([i] for i in every)]:
        given = [as_bf16(a) if i in which else a for i, a in enumerate(inputs)]
        y = np.full(want.shape, np.nan, np.float32)
        (got,) = run_step(
            op,
            kernel,
            given,
            [as_bf16(y) if -1 in which else y],
            attrs,
            (1, 2),
            threads=1 + len(which) % 3,
            max_isa=isa,
        )
        if -1 in which:
            close_short(bf16_to_f32(got), want, limit_of(kernel, isa))
        else:
            close(got, want, limit_of(kernel, isa))


HALO = (2, 1, 1, 3)
PITCHED = [c for c in CONVS if c[1][0] == 1][::2]
PITCHED += [c for c in SHORTS if c[0] == DEPTHWISE_BF16 and c[1][0] == 1][::2]


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize(("kernel", "x", "out_c", "k", "options"), cases(PITCHED))
def test_conv_in_a_concat_buffer(kernel, x, out_c, k, options, isa):
    """Input with pitch and halo, output a slice between two others that must stay as they are."""
    op, inputs, attrs, want = conv_case(kernel, x, out_c, k, options)
    in_shorts = kernel in (BF16, DEPTHWISE_BF16)
    dtype, y = DType.F32, want.astype(np.float32)
    if in_shorts:
        dtype, inputs[0], y = DType.BF16, as_bf16(inputs[0]), as_bf16(y)
    plan = one_step_plan(op, kernel, inputs, [y], attrs, (1, 2))
    step, image, side = plan.steps[0], plan.tensors[0], 5
    wide = (*want.shape[:3], out_c + 2 * side)
    sides = [np.full((*want.shape[:3], side), v, np.float32) for v in (7.0, -3.0)]
    if in_shorts:
        sides = [f32_to_bf16(s) for s in sides]

    def add(name, dims, role, **more) -> int:
        plan.tensors.append(
            PlanTensor(len(plan.tensors), name, dtype, dims, row_major(len(dims)), role, **more)
        )
        return len(plan.tensors) - 1

    padded = add("padded", image.dims, "arena", pitch=image.dims[3] + 3, halo=HALO)
    buffer = add("buffer", wide, "arena")
    whole = add("whole", wide, "output")
    slices = [
        add(f"slice{i}", (*want.shape[:3], c), "arena", pitch=wide[3], alias_of=buffer)
        for i, c in enumerate((side, out_c, side))
    ]
    feeds = [add(f"side{i}", s.shape, "input") for i, s in enumerate(sides)]
    plan.inputs += feeds
    copies = [(image.index, padded), (feeds[0], slices[0]), (feeds[1], slices[2])]
    same = {"perm": [0, 1, 2, 3]}
    steps = [
        Step(i, f"copy{i}", "Relayout", "copy_relayout", "test", "cpu", [a], [b], same)
        for i, (a, b) in enumerate(copies)
    ]
    step.inputs[0], step.outputs[0], step.index = padded, slices[1], 3
    copies_out = Step(4, "out", "Relayout", "copy_relayout", "test", "cpu", [buffer], [whole], same)
    plan.steps[:] = [*steps, step, copies_out]
    plan.outputs[:] = [whole]
    assign_offsets(plan)
    for index, first in zip(slices, (0, side, side + out_c)):
        plan.tensors[index].offset = plan.tensors[buffer].offset + dtype.itemsize * first
    fed = [a for i, a in enumerate(inputs) if i not in (1, 2)]
    (got,) = load(plan, threads=2, max_isa=isa).run([*fed, *sides])
    if in_shorts:
        close_short(bf16_to_f32(got[..., side:-side]), want, limit_of(kernel, isa))
    else:
        close(got[..., side:-side], want, limit_of(kernel, isa))
    assert np.array_equal(got[..., :side], sides[0])
    assert np.array_equal(got[..., -side:], sides[1])


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


REFUSED = [
    (W43, (1, 8, 8, 4), 4, (5, 5), {"pads": [2, 2, 2, 2]}, "takes 3x3"),
    (W23, (1, 8, 8, 4), 4, (3, 3), {"group": 2, "pads": [1, 1, 1, 1]}, "one group"),
    (DEPTHWISE, (1, 8, 8, 4), 8, (1, 1), {"group": 4}, "one output channel per group"),
    (GEMM, (1, 8, 8, 4), 4, (1, 1), {"activation": "Nonsense"}, "cannot be fused"),
    (GEMM, (1, 8, 8, 4), 4, (3, 3), {"strides": [0, 1]}, "strides"),
    (GEMM, (1, 8, 8, 4), 4, (3, 3), {"pads": [1, 1]}, "pads has 2"),
    (GEMM, (1, 8, 8, 4), 4, (3, 3), {"pads": [1, 1, 1, 1], "dilations": [2, 2]}, "output axis"),
]


@pytest.mark.parametrize(("kernel", "x", "out_c", "k", "options", "text"), REFUSED)
def test_refusals_say_why(kernel, x, out_c, k, options, text):
    group = options.get("group", 1)
    w = np.zeros((out_c, x[3] // group, *k), np.float32)
    with pytest.raises(ModelFormatError, match=text):
        run_step(
            "Conv",
            kernel,
            [np.zeros(x, np.float32), w],
            [np.zeros((1, 8, 8, out_c), np.float32)],
            options,
            constant=(1,),
        )
