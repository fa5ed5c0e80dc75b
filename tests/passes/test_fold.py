"""What folds into a neighbour: padding, factors before a convolution, means, lone batch-norms."""

from __future__ import annotations

import pytest
from lite_engine.passes.decompose_batch_norm import decompose_batch_norm
from lite_engine.passes.fold_conv_input import fold_conv_input
from lite_engine.passes.fold_global_pool import fold_average_pool, fold_reduce_mean
from lite_engine.passes.fold_pad import fold_pad
from lite_engine.passes.fold_resize_axes import fold_resize_axes

X = "input x: f32[1,4,6,6]\n"
W = "const w: f32[6,2,3,3] = rand\nconst b: f32[6] = rand\n"


@pytest.mark.parametrize("op", ["Mul", "Div"])
def test_factor_before_a_grouped_conv(bench, op):
    tail = '"y": y = Conv({}, w, b) {{group=2, pads=[1, 1, 1, 1]}}\noutput y'
    bench.rewrites(
        fold_conv_input,
        X + W + f'const k: f32[4,1,1] = pos\n"k": s = {op}(x, k)\n' + tail.format("s"),
        X + W + tail.format("x"),
    )


def test_offset_before_an_unpadded_conv(bench):
    tail = '"y": y = Conv({}, w, b) {{group=2}}\noutput y'
    bench.rewrites(
        fold_conv_input,
        X + W + 'const k: f32[4,1,1] = rand\n"k": s = Sub(x, k)\n' + tail.format("s"),
        X + W + tail.format("x"),
    )


def test_offset_cannot_pass_padding(bench):
    bench.refuses(
        fold_conv_input,
        X
        + W
        + 'const k: f32[] = [1]\n"k": s = Add(x, k)\n'
        + '"y": y = Conv(s, w, b) {group=2, pads=[1, 1, 1, 1]}\noutput y',
        "an offset cannot pass zero padding",
    )


PAD = "const p: i64[8] = [0, 0, 1, 2, 0, 0, 3, 1]\n"


def test_pad_into_conv(bench):
    bench.rewrites(
        fold_pad,
        X + W + PAD + '"p": s = Pad(x, p)\n"y": y = Conv(s, w, b) {group=2}\noutput y',
        X + W + '"y": y = Conv(x, w, b) {group=2, auto_pad="NOTSET", pads=[1, 2, 3, 1]}\noutput y',
    )


def test_minus_infinity_into_max_pool(bench):
    value = "const v: f32[] = [-3.4028234e38]\n"
    bench.rewrites(
        fold_pad,
        X + PAD + value + '"p": s = Pad(x, p, v)\n'
        '"y": y = MaxPool(s) {kernel_shape=[4, 4], strides=[2, 2]}\noutput y',
        X + '"y": y = MaxPool(x) {auto_pad="NOTSET", kernel_shape=[4, 4], pads=[1, 2, 3, 1], '
        "strides=[2, 2]}\noutput y",
    )


REFUSED = [
    ("Pad(x, p, v)", "Conv(s, w, b) {group=2}", "pads with 1, not 0"),
    ('Pad(x, p) {mode="reflect"}', "Conv(s, w, b) {group=2}", "padding mode is reflect"),
    ("Pad(x, p)", "MaxPool(s) {kernel_shape=[2, 2]}", "0 could be the maximum"),
    ("Pad(x, p)", "AveragePool(s) {kernel_shape=[2, 2]}", "does not count padding"),
    ("Pad(x, c)", "AveragePool(s) {kernel_shape=[2, 2]}", "it pads the batch or the channels"),
    ("Pad(x, n)", "AveragePool(s) {kernel_shape=[2, 2]}", "negative widths crop"),
]


@pytest.mark.parametrize("pad, window, reason", REFUSED)
def test_pad_that_stays(bench, pad, window, reason):
    more = """
        const v: f32[] = [1]
        const c: i64[8] = [0, 1, 0, 0, 0, 0, 0, 0]
        const n: i64[8] = [0, 0, -1, 0, 0, 0, 0, 0]
    """
    text = X + W + PAD + more + f'"p": s = {pad}\n"y": y = {window}\noutput y'
    bench.refuses(fold_pad, text, reason)


MAXIMA = [
    ("y, i", "kernel_shape=[4, 4]", "its indices are an output"),
    ("y", "kernel_shape=[4, 4], strides=[2, 2], ceil_mode=1", "begin in the padding are left out"),
    ("y", "kernel_shape=[3, 3]", "a window may see nothing but padding"),
    ("y", "kernel_shape=[4, 4], dilations=[7, 1]", "a window may see nothing but padding"),
]


@pytest.mark.parametrize("outputs, attrs, reason", MAXIMA)
@pytest.mark.parametrize("value", ["0", "-3.4028234e38"])
def test_pad_before_a_maximum_that_stays(bench, outputs, attrs, reason, value):
    pad = f'{PAD}const v: f32[] = [{value}]\n"r": r = Relu(x)\n"p": s = Pad(r, p, v)\n'
    text = f'input x: f32[1,4,21,6]\n{pad}"y": {outputs} = MaxPool(s) {{{attrs}}}\noutput y'
    if ", i" in outputs:
        text += "\noutput i"
    if "dilations" in attrs:
        text = text.replace("21", "6").replace("0, 0, 3, 1", "0, 0, 18, 1")
    bench.refuses(fold_pad, text, reason)


def test_zeros_before_a_maximum_of_what_is_not_negative(bench):
    window = "MaxPool({}) {{{}kernel_shape=[2, 2], {}strides=[2, 2]}}\noutput y"
    attrs = 'auto_pad="NOTSET", ceil_mode=1, ', "pads=[1, 1, 0, 0], "
    bench.rewrites(
        fold_pad,
        X + 'const p: i64[8] = [0, 0, 1, 1, 0, 0, 0, 0]\n"r": r = Relu(x)\n"p": s = Pad(r, p)\n'
        '"y": y = ' + window.format("s", "ceil_mode=1, ", ""),
        X + '"r": r = Relu(x)\n"y": y = ' + window.format("r", *attrs),
    )


def test_mean_over_the_map(bench):
    axes = "const axes: i64[2] = [3, 2]\n"
    bench.rewrites(
        fold_reduce_mean,
        X + axes + '"y": y = ReduceMean(x, axes)\noutput y',
        X + '"y": y = GlobalAveragePool(x)\noutput y',
    )
    bench.rewrites(
        fold_reduce_mean,
        X + axes + '"y": y = ReduceMean(x, axes) {keepdims=0}\noutput y',
        X + '"p": p = GlobalAveragePool(x)\n"y": y = Flatten(p) {axis=1}\noutput y',
    )
    bench.ignores(
        fold_reduce_mean, X + 'const a: i64[1] = [1]\n"y": y = ReduceMean(x, a)\noutput y'
    )


def test_average_of_the_whole_map(bench):
    bench.rewrites(
        fold_average_pool,
        X + '"y": y = AveragePool(x) {kernel_shape=[6, 6]}\noutput y',
        X + '"y": y = GlobalAveragePool(x)\noutput y',
    )
    bench.ignores(fold_average_pool, X + '"y": y = AveragePool(x) {kernel_shape=[3, 6]}\noutput y')


BN = """
    const g: f32[4] = pos
    const o: f32[4] = rand
    const m: f32[4] = rand
    const v: f32[4] = pos
    "bn": y = BatchNormalization(x, g, o, m, v)
    output y
"""


def test_lone_batch_norm(bench):
    bench.rewrites(
        decompose_batch_norm,
        X + BN,
        X + "const w: f32[4,1,1,1] = rand\nconst b: f32[4] = rand\n"
        '"bn": y = Conv(x, w, b) {group=4, kernel_shape=[1, 1]}\noutput y',
    )
    bench.rewrites(
        decompose_batch_norm,
        "input x: f32[3,4]\n" + BN,
        "input x: f32[3,4]\nconst s: f32[4] = rand\n"
        '"m": m = Mul(x, s)\n"bn": y = Add(m, s)\noutput y',
    )


@pytest.mark.parametrize(
    ("given", "port", "whole"),
    [
        ("f32[2] = [1.5, 2]", "x, _, k", [1, 1, 1.5, 2]),
        ("i64[2] = [9, 3]", "x, _, _, k", [1, 4, 9, 3]),
    ],
)
def test_resize_of_some_axes_is_one_of_all(bench, given, port, whole):
    tail = '"y": y = Resize({}) {{{}mode="linear"}}\noutput y'
    new = bench.rewrites(
        fold_resize_axes,
        X + f"const k: {given}\n" + tail.format(port, "axes=[2, -1], "),
        X + f"const k: {given[:3]}[4] = {whole}\n" + tail.format(port, ""),
    )
    assert [v.const.tolist() for v in new.constants()] == [whole]


def test_resize_to_a_computed_size_is_refused(bench):
    text = X + 'input k: i64[2]\n"y": y = Resize(x, _, _, k) {axes=[2, 3]}\noutput y'
    bench.refuses(fold_resize_axes, text, "not constant")
