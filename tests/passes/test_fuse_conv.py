"""Conv with what follows it: batch-norm, bias, scale, residual, activation."""

from __future__ import annotations

import pytest
from lite_engine.passes.fuse_activation import fuse_activation
from lite_engine.passes.fuse_conv_affine import fuse_conv_bias, fuse_conv_scale
from lite_engine.passes.fuse_conv_batch_norm import fuse_conv_batch_norm
from lite_engine.passes.fuse_conv_residual import fuse_conv_residual
from lite_engine.passes.hoist_over_concat import hoist_activation_over_concat, hoist_batch_norm

CONV = """
    input x: f32[1,4,6,6]
    const w: f32[8,4,3,3] = rand
    const b: f32[8] = rand
    "conv": c = Conv(x, w, b) {pads=[1, 1, 1, 1]}
"""
FUSED = """
    input x: f32[1,4,6,6]
    const w: f32[8,4,3,3] = rand
    const b: f32[8] = rand
    "conv": y = Conv(x, w, b) {pads=[1, 1, 1, 1]}
    output y
"""


@pytest.mark.parametrize("op", ["Add", "Sub"])
def test_bias(bench, op):
    tail = f'const k: f32[1,8,1,1] = rand\n"add": y = {op}(c, k)\noutput y'
    bench.rewrites(fuse_conv_bias, CONV + tail, FUSED)


def test_bias_on_the_left(bench):
    bench.rewrites(
        fuse_conv_bias, CONV + 'const k: f32[8,1,1] = rand\n"add": y = Add(k, c)\noutput y', FUSED
    )


@pytest.mark.parametrize("op", ["Mul", "Div"])
def test_scale(bench, op):
    tail = f'const k: f32[1,8,1,1] = pos\n"s": y = {op}(c, k)\noutput y'
    bench.rewrites(fuse_conv_scale, CONV + tail, FUSED)


def test_scale_by_one_number(bench):
    bench.rewrites(
        fuse_conv_scale, CONV + 'const k: f32[] = [0.25]\n"s": y = Mul(c, k)\noutput y', FUSED
    )


def test_grouped_transposed_scale(bench):
    text = """
        input x: f32[1,4,5,5]
        const w: f32[4,3,2,2] = rand
        "up": c = ConvTranspose(x, w) {{group=2, strides=[2, 2]}}
        {tail}
    """
    bench.rewrites(
        fuse_conv_scale,
        text.format(tail='const k: f32[6,1,1] = rand\n"s": y = Mul(c, k)\noutput y'),
        """
        input x: f32[1,4,5,5]
        const w: f32[4,3,2,2] = rand
        const b: f32[6] = rand
        "up": y = ConvTranspose(x, w, b) {group=2, strides=[2, 2]}
        output y
        """,
    )


@pytest.mark.parametrize("step", [fuse_conv_bias, fuse_conv_scale, fuse_conv_batch_norm])
def test_what_follows_a_residual_stays(bench, step):
    """It is meant for the sum, not for the convolution alone."""
    call = {"fuse-conv-bias": "Add(c, k)", "fuse-conv-scale": "Mul(c, k)"}
    call = call.get(step.name, "BatchNormalization(c, v, v, v, v)")
    more = "input r: f32[1,8,6,6]\nconst k: f32[8,1,1] = rand\nconst v: f32[8] = pos\nconst w"
    text = CONV.replace("(x, w, b)", "(x, w, b, r)").replace("const w", more)
    bench.ignores(step, f'{text}"next": y = {call}\noutput y')


def test_per_row_constant_is_no_bias(bench):
    bench.refuses(
        fuse_conv_bias,
        CONV + 'const k: f32[6,1] = rand\n"add": y = Add(c, k)\noutput y',
        "not one number per channel",
    )


def test_second_reader_keeps_the_conv(bench):
    tail = 'const k: f32[8,1,1] = rand\n"add": y = Add(c, k)\n"r": z = Relu(c)\noutput y\noutput z'
    bench.refuses(fuse_conv_bias, CONV + tail, "Conv output has another reader")


def test_model_output_keeps_the_conv(bench):
    tail = 'const k: f32[8,1,1] = rand\n"add": y = Add(c, k)\noutput y\noutput c'
    bench.refuses(fuse_conv_bias, CONV + tail, "c is an output of the model")


def test_division_by_zero_is_left(bench):
    bench.refuses(
        fuse_conv_scale,
        CONV + 'const k: f32[] = [0.0]\n"s": y = Div(c, k)\noutput y',
        "division by zero",
    )


def test_a_bias_of_zeros_warns_of_nothing(bench, recwarn):
    tail = 'const k: f32[1,8,1,1] = [0, 0, 0, 0, 0, 0, 0, 0]\n"add": y = Add(c, k)\noutput y'
    bench.rewrites(fuse_conv_bias, CONV + tail, FUSED)
    assert not recwarn.list


RESIDUAL = """
    input x: f32[1,4,6,6]
    const w: f32[4,4,3,3] = rand
    "first": a = Conv(x, w) {pads=[1, 1, 1, 1]}
"""


def test_residual(bench):
    bench.rewrites(
        fuse_conv_residual,
        RESIDUAL + '"add": y = Add(x, a)\noutput y',
        """
        input x: f32[1,4,6,6]
        const w: f32[4,4,3,3] = rand
        "first": y = Conv(x, w, _, x) {pads=[1, 1, 1, 1]}
        output y
        """,
    )


def test_the_later_conv_takes_the_earlier(bench):
    bench.rewrites(
        fuse_conv_residual,
        RESIDUAL + '"second": b = Conv(x, w) {pads=[1, 1, 1, 1]}\n"add": y = Add(a, b)\noutput y',
        """
        input x: f32[1,4,6,6]
        const w: f32[4,4,3,3] = rand
        "first": a = Conv(x, w) {pads=[1, 1, 1, 1]}
        "second": y = Conv(x, w, _, a) {pads=[1, 1, 1, 1]}
        output y
        """,
    )


def test_a_convolution_added_to_itself_is_refused(bench):
    bench.refuses(fuse_conv_residual, RESIDUAL + '"add": y = Add(a, a)\noutput y', "another reader")


def test_residual_of_another_shape_is_refused(bench):
    text = "input s: f32[1,4,1,1]\n" + RESIDUAL + '"add": y = Add(a, s)\noutput y'
    bench.refuses(fuse_conv_residual, text, "differ in shape")


@pytest.mark.parametrize(
    "act, params",
    [
        ("Relu(c)", ""),
        ("LeakyRelu(c) {alpha=0.1}", ", activation_params=[0.1]"),
        ("HardSigmoid(c) {alpha=0.2}", ", activation_params=[0.2, 0.5]"),
        ("HardSwish(c)", ""),
        ("Silu(c)", ""),
        ('Gelu(c) {approximate="tanh"}', ", activation_params=[1.0]"),
    ],
)
def test_activation(bench, act, params):
    op = act.split("(")[0]
    bench.rewrites(
        fuse_activation,
        CONV + f'"act": y = {act}\noutput y',
        FUSED.replace("1]}", f'1], activation="{op}"{params}}}'),
    )


def test_clip_takes_its_bounds_along(bench):
    bench.rewrites(
        fuse_activation,
        CONV + 'const lo: f32[] = [0]\nconst hi: f32[] = [6]\n"act": y = Clip(c, lo, hi)\noutput y',
        FUSED.replace("1]}", '1], activation="Clip", activation_params=[0.0, 6.0]}'),
    )


def test_clip_with_computed_bounds_is_refused(bench):
    text = "input lo: f32[]\n" + CONV + '"act": y = Clip(c, lo)\noutput y'
    bench.refuses(fuse_activation, text, "bounds are not constant")


def test_second_activation_is_refused(bench):
    new = bench.apply(fuse_activation, CONV + '"a": r = Relu(c)\n"b": y = Sigmoid(r)\noutput y')
    assert [n.op for n in new[1].nodes] == ["Conv", "Sigmoid"]
    assert "an activation is fused already" in str(new[2])
    assert new[1].nodes[0].sources == ("conv", "a")


BN = """
    const g: f32[8] = pos
    const o: f32[8] = rand
    const m: f32[8] = rand
    const v: f32[8] = pos
    "bn": y = BatchNormalization(c, g, o, m, v) {epsilon=0.001}
    output y
"""


def test_batch_norm(bench):
    new = bench.rewrites(fuse_conv_batch_norm, CONV + BN, FUSED)
    assert new.nodes[0].sources == ("conv", "bn")


def test_batch_norm_without_bias(bench):
    bench.rewrites(fuse_conv_batch_norm, CONV.replace("(x, w, b)", "(x, w)") + BN, FUSED)


def test_computed_weight_is_refused(bench):
    text = CONV.replace("const w: f32[8,4,3,3] = rand", "input w: f32[8,4,3,3]") + BN
    bench.refuses(fuse_conv_batch_norm, text, "the weight is not constant")


TWO = """
    input x: f32[1,4,6,6]
    const w: f32[8,4,3,3] = rand
    const v: f32[3,4,1,1] = rand
    const b: f32[3] = rand
    "first": p = Conv(x, w) {pads=[1, 1, 1, 1]}
    "second": q = Conv(x, v, b)
"""
NORMS = """
    const g: f32[11] = rand
    const h: f32[11] = rand
    const m: f32[11] = rand
    const s: f32[11] = pos
"""
PARTS = """
    const g0: f32[8] = rand
    const h0: f32[8] = rand
    const m0: f32[8] = rand
    const s0: f32[8] = pos
    const g1: f32[3] = rand
    const h1: f32[3] = rand
    const m1: f32[3] = rand
    const s1: f32[3] = pos
"""


@pytest.mark.parametrize("axis", [1, -3])
def test_a_norm_behind_a_concat_is_of_each_part(bench, axis):
    joined = f'"cat": c = Concat(p, q) {{axis={axis}}}\n'
    bench.rewrites(
        hoist_batch_norm,
        TWO + NORMS + joined
        + '"bn": y = BatchNormalization(c, g, h, m, s) {epsilon=0.01}\noutput y',
        TWO + PARTS
        + '"bn.1": t = BatchNormalization(p, g0, h0, m0, s0) {epsilon=0.01}\n'
        + '"bn.2": u = BatchNormalization(q, g1, h1, m1, s1) {epsilon=0.01}\n'
        + f'"cat": y = Concat(t, u) {{axis={axis}}}\noutput y',
    )  # fmt: skip


def test_an_activation_behind_a_concat_is_of_each_part(bench):
    limits = "const low: f32[] = [-1.0]\nconst high: f32[] = [0.5]\n"
    bench.rewrites(
        hoist_activation_over_concat,
        TWO + limits + '"cat": c = Concat(p, q) {axis=1}\n"act": y = Clip(c, low, high)\noutput y',
        TWO
        + limits
        + '"a": t = Clip(p, low, high)\n"b": u = Clip(q, low, high)\n'
        + '"cat": y = Concat(t, u) {axis=1}\noutput y',
    )


@pytest.mark.parametrize(
    ("parts", "tail", "why"),
    [
        ("p, p, q", "", "a part of the Concat has another reader"),
        ("p, q", "output q", "a part of the Concat has another reader"),
        ("p, q", '"n": z = Neg(c)\noutput z', "Concat output has another reader"),
    ],
)
def test_what_is_read_elsewhere_stays(bench, parts, tail, why):
    text = f'"cat": c = Concat({parts}) {{axis=1}}\n"act": y = Relu(c)\noutput y\n{tail}'
    bench.refuses(hoist_activation_over_concat, TWO + text, why)


def test_a_part_that_is_no_convolution_stays(bench):
    bench.ignores(
        hoist_activation_over_concat,
        TWO + '"cat": c = Concat(p, q, x) {axis=1}\n"act": y = Relu(c)\noutput y',
    )


def test_a_norm_along_another_axis_stays(bench):
    bench.refuses(
        hoist_batch_norm,
        """
        input x: f32[1,4,6,6]
        const w: f32[4,4,1,1] = rand
        const v: f32[4,4,1,1] = rand
        const g: f32[4] = rand
        const s: f32[4] = pos
        "first": p = Conv(x, w)
        "second": q = Conv(x, v)
        "cat": c = Concat(p, q) {axis=2}
        "bn": y = BatchNormalization(c, g, g, g, s)
        output y
        """,
        "along the channels",
    )
