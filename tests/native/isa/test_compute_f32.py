"""Float compute kernels against the NumPy references, at sizes that straddle their tiles."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.backends.cpu import native
from lite_engine.errors import ModelFormatError
from lite_engine.ir import DType
from lite_engine.ir.bfloat16 import bf16_to_f32, f32_to_bf16
from lite_engine.plan.memory import assign_offsets
from lite_engine.plan.model import PlanTensor, Step, row_major

from ..tiny import as_bf16, load, one_step_plan, run_step
from .cases_f32 import (
    BF16,
    CONVS,
    DECONV_BF16,
    DEPTHWISE,
    DEPTHWISE_BF16,
    F32_3X3,
    GEMM,
    GROUPED,
    ROUNDED,
    SAME,
    TILED,
    W23,
    W43,
    W43_BF16,
    cases,
    close,
    close_short,
    conv_case,
    limit_of,
    rounding_error,
)

pytestmark = pytest.mark.cpu


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


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("case", ROUNDED, ids=lambda c: f"{c[0]}-{c[1][3]}")
def test_long_sums_are_rounded_little(case, isa):
    op, inputs, attrs, want = conv_case(*case[:5])
    blank = np.full(want.shape, np.nan, np.float32)
    (got,) = run_step(op, case[0], inputs, [blank], attrs, constant=(1, 2), max_isa=isa)
    assert rounding_error(got, want) < case[5]


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize(("x", "out_c", "k", "options"), GROUPED)
def test_small_groups_do_not_depend_on_threads(x, out_c, k, options, isa):
    op, inputs, attrs, want = conv_case(GEMM, x, out_c, k, options)
    blank = np.full(want.shape, np.nan, np.float32)
    one, three = (
        run_step(op, GEMM, inputs, [blank], attrs, constant=(1, 2), threads=n, max_isa=isa)[0]
        for n in (1, 3)
    )
    assert np.array_equal(one, three)


@pytest.mark.parametrize(("isa", "tile"), [("avx2", "7x8"), ("avx512", "14x16")])
def test_groups_of_four_have_their_own_tile(isa, tile):
    if isa not in native.isas():
        pytest.skip(f"this processor has no {isa}")
    op, inputs, attrs, want = conv_case(GEMM, (1, 4, 28, 32), 32, (3, 3), {**SAME, "group": 8})
    y = want.astype(np.float32)
    (step,) = load(one_step_plan(op, GEMM, inputs, [y], attrs, (1, 2)), max_isa=isa).steps()
    assert step.variant == f"{GEMM}__{isa}_grouped_{tile}"


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
    (step,) = load(plan, threads=1).steps()  # many threads would leave too few rows to each
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


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize(
    ("size", "dilation", "winograd"), [(28, 2, True), (28, 4, True), (28, 24, False), (9, 9, False)]
)
def test_dilated_layers_take_what_multiplies_less(size, dilation, winograd, isa):
    """Winograd transforms whole tiles; where most taps lie outside, the GEMM leaves them out."""
    options = {"pads": [dilation] * 4, "dilations": [dilation] * 2}
    op, inputs, attrs, want = conv_case(F32_3X3, (1, size, size, 32), 32, (3, 3), options)
    y = want.astype(np.float32)
    (step,) = load(one_step_plan(op, F32_3X3, inputs, [y], attrs, (1, 2)), max_isa=isa).steps()
    assert ("winograd" in step.variant) == winograd
    (got,) = run_step(op, F32_3X3, inputs, [y * 0], attrs, constant=(1, 2), max_isa=isa)
    close(got, want, limit_of(F32_3X3, isa))


SHORTS = [c for c in CONVS if c[0] in (BF16, W43_BF16, DECONV_BF16)]
SHORTS += [(DEPTHWISE_BF16, *c[1:]) for c in CONVS if c[0] == DEPTHWISE]
SHORTS += [
    (DEPTHWISE_BF16, (1, 40, 37, 48), 48, (3, 3), {"pads": [1, 1, 1, 1], "activation": "Relu"}),
    (DEPTHWISE_BF16, (2, 9, 8, 33), 33, (5, 5), {"pads": [2, 2, 2, 2], "activation": "Silu"}),
]


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
