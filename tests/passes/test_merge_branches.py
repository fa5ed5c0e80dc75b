"""Parallel convolutions of one tensor: one convolution, with the numbers of both."""

from __future__ import annotations

import pytest
from lite_engine.passes import optimize_graph
from lite_engine.passes.merge_branches import merge_branches

X = "input x: f32[2,4,7,8]\n"
WEIGHTS = "const v: f32[4,{i},{size}] = rand\nconst w: f32[4,{j},{other}] = rand\n"
BIASES = "const b: f32[4] = rand\nconst c: f32[4] = rand\n"
NORM = "".join(f"const {name}: f32[4] = rand\n" for name in "gem") + "const s: f32[4] = pos\n"


def branches(op: str, size: str, first: str, other: str, second: str, inputs: int = 4) -> str:
    """Two convolutions of x, v of `size` and w of `other`, and what joins them."""
    return (
        X + WEIGHTS.format(i=inputs, j=inputs, size=size, other=other) + BIASES
        + f'"one": p = Conv(x, v, b) {{{first}}}\n"two": q = Conv(x, w, c) {{{second}}}\n'
        f'"y": y = {op}(p, q)\noutput y'
    )  # fmt: skip


def joined(size: str, attrs: str, inputs: int = 4) -> str:
    return (
        X + f"const w: f32[4,{inputs},{size}] = rand\nconst b: f32[4] = rand\n"
        f'"one": y = Conv(x, w, b) {{{attrs}}}\noutput y'
    )


def window(rows: int, columns: int, pads: str, dilation: int = 1, more: str = "") -> str:
    return (
        f"{more}dilations=[{dilation}, {dilation}], kernel_shape=[{rows}, {columns}], pads={pads}"
    )


@pytest.mark.parametrize("op", ["Add", "Sub"])
@pytest.mark.parametrize(
    "size, first, other, second, want, attrs",
    [
        # RepVGG: a 1x1 convolution in the middle of a 3x3 one, first or second
        ("3,3", "pads=[1, 1, 1, 1]", "1,1", "", "3,3", window(3, 3, "[1, 1, 1, 1]")),
        ("1,1", "", "3,3", "pads=[1, 1, 1, 1]", "3,3", window(3, 3, "[1, 1, 1, 1]")),
        # ACNet: a row beside a square
        ("3,3", "pads=[1, 1, 1, 1]", "1,3", "pads=[0, 1, 0, 1]", "3,3",
         window(3, 3, "[1, 1, 1, 1]")),
        # one that does not lie in the other's middle
        ("3,3", "pads=[2, 2, 0, 0]", "2,2", "pads=[1, 1, 0, 0]", "3,3",
         window(3, 3, "[2, 2, 0, 0]")),
        # neither holds the other
        ("1,2", "pads=[0, 1, 0, 0]", "1,2", "pads=[0, 0, 0, 1]", "1,3",
         window(1, 3, "[0, 1, 0, 1]")),
        ("3,3", "pads=[2, 2, 2, 2], dilations=[2, 2]", "1,1", "", "3,3",
         window(3, 3, "[2, 2, 2, 2]", 2)),
        ("3,3", "pads=[1, 1, 1, 1], strides=[2, 2]", "1,1", "strides=[2, 2]", "3,3",
         window(3, 3, "[1, 1, 1, 1]", more="strides=[2, 2], ")),
    ],
)  # fmt: skip
def test_two_convolutions(bench, op, size, first, other, second, want, attrs):
    bench.rewrites(merge_branches, branches(op, size, first, other, second), joined(want, attrs))


@pytest.mark.parametrize("order", ["Add(p, n)", "Add(n, p)", "Sub(p, n)", "Sub(n, p)"])
@pytest.mark.parametrize("inputs, group", [(4, ""), (2, "group=2, "), (1, "group=4, ")])
def test_batch_norm_beside_a_convolution(bench, order, inputs, group):
    text = (
        X + f"const v: f32[4,{inputs},3,3] = rand\n" + BIASES + NORM
        + f'"one": p = Conv(x, v, b) {{{group}pads=[1, 1, 1, 1]}}\n'
        f'"two": n = BatchNormalization(x, g, e, m, s)\n"y": y = {order}\noutput y'
    )  # fmt: skip
    attrs = window(3, 3, "[1, 1, 1, 1]", more=group)
    bench.rewrites(merge_branches, text, joined("3,3", attrs, inputs))


@pytest.mark.parametrize("order", ["Add(p, x)", "Sub(p, x)", "Sub(x, p)"])
def test_the_input_beside_a_depthwise_convolution(bench, order):
    text = (
        X + "const v: f32[4,1,3,3] = rand\n" + BIASES
        + f'"one": p = Conv(x, v, b) {{group=4, pads=[1, 1, 1, 1]}}\n"y": y = {order}\noutput y'
    )  # fmt: skip
    attrs = window(3, 3, "[1, 1, 1, 1]", more="group=4, ")
    bench.rewrites(merge_branches, text, joined("3,3", attrs, 1))


@pytest.mark.parametrize(
    "text, reason",
    [
        (branches("Add", "1,3", "pads=[0, 1, 0, 1]", "3,1", "pads=[1, 0, 1, 0]"), "more taps"),
        (branches("Add", "3,3", "pads=[2, 2, 2, 2], dilations=[2, 2]", "3,3",
                  "pads=[1, 1, 1, 1]"), "more taps"),
        (branches("Add", "3,3", "pads=[1, 1, 1, 1], strides=[2, 2]", "1,1", "")
         .replace("[2,4,7,8]", "[2,4,1,1]"), "strides"),
        (branches("Add", "3,3", "", "1,1", "").replace("[2,4,7,8]", "[2,4,3,3]"), "size"),
        (branches("Add", "3,3", 'auto_pad="SAME_UPPER"', "1,1", ""), "its own padding"),
        (X + "const v: f32[4,4,3,3] = rand\n" + BIASES + '"one": p = Conv(x, v, b) '
         '{pads=[1, 1, 1, 1]}\n"y": y = Add(p, x)\noutput y', "residual"),
        (branches("Add", "3,3", "pads=[1, 1, 1, 1]", "1,1", "").replace("[4,4,3,3]", "[1,4,3,3]")
         .replace("b: f32[4]", "b: f32[1]"), "channels"),
    ],
)  # fmt: skip
def test_branches_that_stay(bench, text, reason):
    bench.refuses(merge_branches, text, reason)


@pytest.mark.parametrize(
    "old, new, reason",
    [
        ("pads=[1, 1, 1, 1]", "pads=[1, 1, 1]", "pads do not fit"),
        ("pads=[1, 1, 1, 1]", "pads=[1, 1, 1, -9223372036854775808]", "pads do not fit"),
        ("pads=[1, 1, 1, 1]", "strides=[0, 1]", "strides, dilations"),
        ("pads=[1, 1, 1, 1]", "dilations=[1]", "do not fit"),
        ("pads=[1, 1, 1, 1]", "pads=0.5", "do not fit"),
        ("pads=[1, 1, 1, 1]", "group=[1]", "do not fit"),
        ("pads=[1, 1, 1, 1]", 'strides="1"', "do not fit"),
        ("v: f32[4,4,3,3]", "v: f32[4,4]", "do not fit"),
        ("w: f32[4,4,1,1]", "w: f32[4,4,1]", "strides"),
    ],
)
def test_windows_that_no_inference_has_seen(bench, old, new, reason):
    """Where the input has no shape, none has compared a window with it."""
    text = branches("Add", "3,3", "pads=[1, 1, 1, 1]", "1,1", "").replace("[2,4,7,8]", "[...]")
    assert old in text
    bench.refuses(merge_branches, text.replace(old, new), reason)


@pytest.mark.parametrize("name", "gems")
def test_norms_that_no_inference_has_seen(bench, name):
    text = (
        "input x: f32[...]\n" + WEIGHTS.format(i=4, j=4, size="3,3", other="1,1") + NORM
        + '"one": p = Conv(x, v) {pads=[1, 1, 1, 1]}\n'
        + '"two": q = BatchNormalization(x, g, e, m, s)\n"y": y = Add(p, q)\noutput y'
    )  # fmt: skip
    text = text.replace(f"const {name}: f32[4]", f"const {name}: f32[3]")
    bench.refuses(merge_branches, text, "channels" if name == "g" else "differ in size")


def test_a_branch_that_is_an_output_stays(bench):
    text = branches("Add", "3,3", "pads=[1, 1, 1, 1]", "1,1", "")
    bench.refuses(merge_branches, text + "\noutput p", "output of the model")


def test_a_whole_block_becomes_one_convolution(bench):
    """FastViT's mixer: x + scale · (norm(mix(x)) − norm(x)), all of it linear."""
    text = (
        X + WEIGHTS.format(i=1, j=1, size="3,3", other="1,1") + BIASES + NORM
        + "const k: f32[4,1,1] = rand\n"
        '"a": a = Conv(x, v, b) {group=4, pads=[1, 1, 1, 1]}\n"b": d = Conv(x, w, c) {group=4}\n'
        '"c": f = Add(a, d)\n"d": h = BatchNormalization(f, g, e, m, s)\n'
        '"e": i = BatchNormalization(x, g, e, m, s)\n"f": j = Sub(h, i)\n"g": l = Mul(j, k)\n'
        '"h": y = Add(x, l)\noutput y'
    )  # fmt: skip
    graph = bench.graph(text)
    (node,) = optimize_graph(graph).nodes
    assert node.op == "Conv" and node.inputs[1].const.shape == (4, 1, 3, 3)
