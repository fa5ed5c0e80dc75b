"""Matrix products with what follows them; chains of views; duplicates."""

from __future__ import annotations

import pytest
from lite_engine.passes.drop_duplicates import drop_duplicates
from lite_engine.passes.fuse_gemm import fuse_gemm_affine, hoist_activation, recompose_gemm
from lite_engine.passes.fuse_gemm_residual import fuse_gemm_residual
from lite_engine.passes.merge_views import (
    fold_transpose_of_ones,
    merge_reshapes,
    merge_transposes,
)

W = "const w: f32[4,5] = rand\nconst b: f32[5] = rand\n"


def test_matmul_by_a_constant(bench):
    bench.rewrites(
        recompose_gemm,
        "input x: f32[3,4]\n" + W + '"p": y = MatMul(x, w)\noutput y',
        "input x: f32[3,4]\n" + W + '"p": y = Gemm(x, w)\noutput y',
    )


def test_matmul_of_higher_rank(bench):
    x = "input x: f32[n,3,4]\n" + W
    bench.rewrites(
        recompose_gemm,
        x + '"p": y = MatMul(x, w)\noutput y',
        x + "const r: i64[2] = [-1, 4]\nconst s: i64[3] = [-1, 3, 5]\n"
        '"a": f = Reshape(x, r)\n"p": g = Gemm(f, w)\n"c": y = Reshape(g, s)\noutput y',
    )


def test_matmul_of_two_open_sizes(bench):
    x = "input x: f32[n,t,4]\n" + W
    after = (
        x + "const r: i64[2] = [-1, 4]\nconst k: i64[1] = [5]\n"
        '"s": m = Shape(x) {start=0, end=2}\n"t": s = Concat(m, k) {axis=0}\n'
        '"a": f = Reshape(x, r)\n"p": g = Gemm(f, w)\n'
        '"c": y = Reshape(g, s) {allowzero=1}\noutput y'
    )
    made = bench.rewrites(recompose_gemm, x + '"p": y = MatMul(x, w)\noutput y', after)
    assert made.outputs[0].shape == ("n", "t", 5)


@pytest.mark.parametrize(
    "x, w, reason",
    [
        ("f32[2,3,4]", "f32[2,4,5]", "a stack of matrices"),
    ],
)  # fmt: skip
def test_matmul_that_stays(bench, x, w, reason):
    text = f'input x: {x}\nconst w: {w} = rand\n"p": y = MatMul(x, w)\noutput y'
    bench.refuses(recompose_gemm, text, reason)


def test_bias_per_row_stays(bench):
    text = "input x: f32[5,4]\n" + W + 'const k: f32[5,1] = rand\n"p": p = Gemm(x, w)\n'
    bench.refuses(fuse_gemm_affine, text + '"y": y = Add(p, k)\noutput y', "one number per column")


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
@pytest.mark.parametrize("weight, attrs", [("4,5", ""), ("5,4", " {transB=1}")])
def test_gemm_absorbs_a_constant_per_column(bench, op, weight, attrs):
    base = f"input x: f32[3,4]\nconst w: f32[{weight}] = rand\nconst b: f32[5] = rand\n"
    bench.rewrites(
        fuse_gemm_affine,
        base
        + f'const k: f32[5] = pos\n"g": g = Gemm(x, w, b){attrs}\n"y": y = {op}(g, k)\noutput y',
        base + f'"g": y = Gemm(x, w, b){attrs}\noutput y',
    )


RESIDUAL = "input x: f32[6,4]\ninput r: f32[6,5]\n" + W + '"g": g = Gemm(x, w, b)\n'


@pytest.mark.parametrize("operands", ["g, r", "r, g"])
def test_gemm_takes_a_residual(bench, operands):
    bench.rewrites(
        fuse_gemm_residual,
        RESIDUAL + f'"y": y = Add({operands}) {{activation="Relu"}}\noutput y',
        RESIDUAL.split('"g"')[0] + '"g": y = Gemm(x, w, b, r) {activation="Relu"}\noutput y',
    )


def test_gemm_takes_a_residual_behind_its_rows(bench):
    base = "input x: f32[6,4]\ninput r: f32[2,3,5]\nconst s: i64[3] = [2, 3, 5]\n" + W
    bench.rewrites(
        fuse_gemm_residual,
        base + '"g": g = Gemm(x, w, b)\n"v": v = Reshape(g, s)\n"y": y = Add(v, r)\noutput y',
        base + "const m: i64[2] = [6, 5]\n"
        '"f": f = Reshape(r, m)\n"g": g = Gemm(x, w, b, f)\n"v": y = Reshape(g, s)\noutput y',
    )


def test_gemm_takes_a_residual_of_images(bench):
    """Rows of pixels whose columns become channels, as ConvNeXt has them."""
    base = "input x: f32[6,4]\ninput r: f32[1,5,2,3]\nconst s: i64[4] = [1, 2, 3, 5]\n" + W
    bench.rewrites(
        fuse_gemm_residual,
        base + '"g": g = Gemm(x, w, b)\n"v": v = Reshape(g, s)\n'
        '"t": t = Transpose(v) {perm=[0, 3, 1, 2]}\n"y": y = Add(t, r)\noutput y',
        base + 'const m: i64[2] = [6, 5]\n"u": u = Transpose(r) {perm=[0, 2, 3, 1]}\n'
        '"f": f = Reshape(u, m)\n"g": g = Gemm(x, w, b, f)\n"v": v = Reshape(g, s)\n'
        '"t": y = Transpose(v) {perm=[0, 3, 1, 2]}\noutput y',
    )


def test_the_later_product_takes_the_earlier(bench):
    inputs, gemm = RESIDUAL.split('"g"')[0], '"h": h = Gemm(r, v, b)\n"g": g = Gemm(x, w, b)\n'
    more = inputs + "const v: f32[5,5] = rand\n"
    bench.rewrites(
        fuse_gemm_residual,
        more + gemm + '"y": y = Add(h, g)\noutput y',
        more + '"h": h = Gemm(r, v, b)\n"g": y = Gemm(x, w, b, h)\noutput y',
    )


@pytest.mark.parametrize(
    "more, call, reason",
    [
        ("const k: f32[6,5] = rand\n", "Add(g, k)", "the other operand is constant"),
        ("input k: f32[5]\n", "Add(g, k)", "differ in shape"),
        ("", "Add(g, g)", "another reader"),
        (
            "input k: f32[1,5,3,2]\nconst s: i64[4] = [1, 2, 3, 5]\n"
            '"v": v = Reshape(g, s)\n"t": t = Transpose(v) {perm=[0, 3, 2, 1]}\n',
            "Add(t, k)",
            "another order",
        ),
    ],
)
def test_what_is_no_residual(bench, more, call, reason):
    bench.refuses(fuse_gemm_residual, f'{RESIDUAL}{more}"y": y = {call}\noutput y', reason)


@pytest.mark.parametrize("op", ["Add", "Mul", "Div"])
def test_gemm_absorbs_a_constant_behind_its_rows(bench, op):
    """A scale of each channel behind the product's rows as an image, as ConvNeXt has it."""
    base = "input x: f32[6,4]\nconst s: i64[4] = [1, 2, 3, 5]\n" + W
    bench.rewrites(
        fuse_gemm_affine,
        base + 'const k: f32[1,1,1,5] = pos\n"g": g = Gemm(x, w, b)\n"v": v = Reshape(g, s)\n'
        f'"y": y = {op}(v, k)\noutput y',
        base + '"g": g = Gemm(x, w, b)\n"y": y = Reshape(g, s)\noutput y',
    )


def test_a_constant_per_row_of_the_image_stays(bench):
    text = "input x: f32[6,4]\nconst s: i64[3] = [2, 3, 5]\nconst k: f32[3,5] = rand\n" + W
    text += '"g": g = Gemm(x, w, b)\n"v": v = Reshape(g, s)\n"y": y = Mul(v, k)\noutput y'
    bench.refuses(fuse_gemm_affine, text, "one number per column")


@pytest.mark.parametrize("op", ["Add", "Mul"])
def test_gemm_keeps_its_factors(bench, op):
    """alpha stays the product's; beta goes into the bias, which is then added as it is."""
    base = "input x: f32[3,4]\nconst w: f32[4,5] = rand\nconst b: f32[5] = rand\n"
    bench.rewrites(
        fuse_gemm_affine,
        base + 'const k: f32[5] = pos\n"g": g = Gemm(x, w, b) {alpha=0.5, beta=3.0}\n'
        f'"y": y = {op}(g, k)\noutput y',
        base + '"g": y = Gemm(x, w, b) {alpha=0.5}\noutput y',
    )


def test_activation_moves_before_the_view(bench):
    base = "input x: f32[6,4]\nconst s: i64[3] = [2, 3, 5]\n" + W
    bench.rewrites(
        hoist_activation,
        base + '"g": g = Gemm(x, w, b)\n"v": v = Reshape(g, s)\n"y": y = Relu(v)\noutput y',
        base + '"g": g = Gemm(x, w, b)\n"v": v = Relu(g)\n"y": y = Reshape(v, s)\noutput y',
    )


def test_the_order_of_transposes_counts(bench):
    bench.rewrites(
        merge_transposes,
        'input x: f32[2,3,4]\n"a": a = Transpose(x) {perm=[1, 2, 0]}\n'
        '"b": y = Transpose(a) {perm=[1, 0, 2]}\noutput y',
        'input x: f32[2,3,4]\n"b": y = Transpose(x) {perm=[2, 1, 0]}\noutput y',
    )


def test_transposes_compose(bench):
    bench.rewrites(
        merge_transposes,
        'input x: f32[2,3,4]\n"a": a = Transpose(x) {perm=[1, 2, 0]}\n'
        '"y": y = Transpose(a) {perm=[1, 2, 0]}\noutput y',
        'input x: f32[2,3,4]\n"y": y = Transpose(x) {perm=[2, 0, 1]}\noutput y',
    )


def test_views_in_a_row_become_one(bench):
    bench.rewrites(
        merge_reshapes,
        "input x: f32[2,3,4,1]\nconst s: i64[1] = [3]\nconst t: i64[2] = [0, -1]\n"
        'const z: i64[1] = [0]\n"a": a = Squeeze(x, s)\n"b": b = Reshape(a, t)\n'
        '"y": y = Unsqueeze(b, z)\noutput y',
        'input x: f32[2,3,4,1]\nconst s: i64[3] = [1, 2, 12]\n"y": y = Reshape(x, s)\noutput y',
    )


def test_transpose_of_ones_is_a_view(bench):
    bench.rewrites(
        fold_transpose_of_ones,
        'input x: f32[1,7,1,1]\n"y": y = Transpose(x) {perm=[0, 2, 3, 1]}\noutput y',
        'input x: f32[1,7,1,1]\nconst s: i64[4] = [1, 1, 1, 7]\n"y": y = Reshape(x, s)\noutput y',
    )
    bench.ignores(
        fold_transpose_of_ones,
        'input x: f32[1,7,2,1]\n"y": y = Transpose(x) {perm=[0, 2, 3, 1]}\noutput y',
    )
    bench.ignores(  # 0 in a Reshape is the size of the input at that place
        fold_transpose_of_ones,
        'input x: f32[1,7,0,1]\n"y": y = Transpose(x) {perm=[0, 1, 3, 2]}\noutput y',
    )


def test_equal_nodes_become_one(bench):
    new = bench.rewrites(
        drop_duplicates,
        "input x: f32[4]\nconst a: f32[] = [2]\nconst b: f32[] = [2]\n"
        '"m": m = Mul(x, a)\n"n": n = Mul(x, b)\n"y": y = Add(m, n)\noutput y',
        'input x: f32[4]\nconst a: f32[] = [2]\n"m": m = Mul(x, a)\n"y": y = Add(m, m)\noutput y',
    )
    assert new.nodes[0].sources == ("m", "n")


def test_equal_branches_become_one(bench):
    """The second nodes read other values until the first ones are one."""
    bench.rewrites(
        drop_duplicates,
        'input x: f32[4]\n"m": m = Relu(x)\n"o": o = Neg(m)\n"n": n = Relu(x)\n"p": p = Neg(n)\n'
        '"y": y = Add(o, p)\noutput y',
        'input x: f32[4]\n"m": m = Relu(x)\n"o": o = Neg(m)\n"y": y = Add(o, o)\noutput y',
    )


def test_duplicate_that_is_an_output_stays(bench):
    bench.refuses(
        drop_duplicates,
        'input x: f32[4]\n"m": m = Relu(x)\n"n": n = Relu(x)\noutput m\noutput n',
        "makes an output of the model",
    )
