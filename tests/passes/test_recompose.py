"""Operators that exporters spell out in elementary ones."""

from __future__ import annotations

import math

import numpy as np
import pytest
from lite_engine.ir import Journal
from lite_engine.passes.recompose_activations import recompose_activations
from lite_engine.passes.recompose_layer_norm import (
    fuse_norm_affine,
    recompose_l2_norm,
    recompose_layer_norm,
    recompose_rms_norm,
)
from lite_engine.passes.recompose_shuffles import recompose_shuffles

NUMBERS = f"""
    input x: f32[2,3,4,4]
    const zero: f32[] = [0]
    const one: f32[] = [1]
    const two: f32[] = [2]
    const three: f32[] = [3]
    const six: f32[] = [6]
    const half: f32[1] = [0.5]
    const sixth: f32[] = [{1 / 6}]
    const tenth: f32[] = [0.1]
    const root2: f32[] = [{math.sqrt(2)}]
    const iroot2: f32[] = [{math.sqrt(0.5)}]
    const c: f32[] = [0.044715]
    const s: f32[] = [{math.sqrt(2 / math.pi)}]
    const slopes: f32[3,1,1] = [0.1, 0.2, 0.3]
"""
CLIP6 = '"a": a = Add(x, three)\n"b": b = Clip(a, zero, six)\n'
ERF = '"a": a = Div(x, root2)\n"b": b = Erf(a)\n"d": d = Add(b, one)\n'
CUBE = '"p": p = Pow(x, three)\n'
TANH = (
    '"q": q = Mul(p, c)\n"r": r = Add(x, q)\n"t": t = Mul(s, r)\n'
    '"u": u = Tanh(t)\n"d": d = Add(one, u)\n'
)


class _All:
    """The list of recompositions as one pass, for the bench."""

    name = "recompose"

    def __call__(self, graph, journal: Journal) -> int:
        return sum(step(graph, journal) for step in recompose_activations)


SPELLINGS = [
    ("HardSwish(x)", CLIP6 + '"m": m = Mul(x, b)\n"y": y = Div(m, six)'),
    ("HardSwish(x)", CLIP6 + '"m": m = Mul(b, x)\n"y": y = Mul(m, sixth)'),
    ("HardSwish(x)", CLIP6 + '"m": m = Div(b, six)\n"y": y = Mul(x, m)'),
    ("HardSwish(x)", '"h": h = HardSigmoid(x) {alpha=0.16666667, beta=0.5}\n"y": y = Mul(h, x)'),
    ("HardSigmoid(x) {alpha=0.166666667, beta=0.5}", CLIP6 + '"y": y = Div(b, six)'),
    (
        "HardSigmoid(x) {alpha=0.1, beta=0.5}",
        '"m": m = Mul(x, tenth)\n"a": a = Add(m, half)\n"y": y = Clip(a, zero, one)',
    ),
    ("Silu(x)", '"g": g = Sigmoid(x)\n"y": y = Mul(g, x)'),
    ("Swish(x) {alpha=0.1}", '"m": m = Mul(x, tenth)\n"g": g = Sigmoid(m)\n"y": y = Mul(x, g)'),
    ("LogSigmoid(x)", '"g": g = Sigmoid(x)\n"y": y = Log(g)'),
    (
        'Add(x, slopes) {activation="Gelu", activation_params=[1.0]}',
        '"y": y = BiasGelu(x, slopes) {approximate="tanh"}',
    ),
    ("Mish(x)", '"g": g = Softplus(x)\n"t": t = Tanh(g)\n"y": y = Mul(x, t)'),
    ("Softplus(x)", '"e": e = Exp(x)\n"a": a = Add(e, one)\n"y": y = Log(a)'),
    ("Sigmoid(x)", '"n": n = Neg(x)\n"e": e = Exp(n)\n"a": a = Add(one, e)\n"y": y = Div(one, a)'),
    ("Gelu(x)", ERF + '"m": m = Mul(x, d)\n"y": y = Mul(m, half)'),
    ("Gelu(x)", ERF + '"m": m = Mul(half, x)\n"y": y = Mul(m, d)'),
    (
        "Gelu(x)",
        ERF.replace("Div(x, root2)", "Mul(x, iroot2)")
        + '"m": m = Mul(d, half)\n"y": y = Mul(x, m)',
    ),
    ('Gelu(x) {approximate="tanh"}', CUBE + TANH + '"m": m = Mul(x, d)\n"y": y = Mul(half, m)'),
    (
        'Gelu(x) {approximate="tanh"}',
        '"o": o = Mul(x, x)\n"p": p = Mul(o, x)\n'
        + TANH
        + '"m": m = Mul(x, half)\n"y": y = Mul(m, d)',
    ),
    ("LeakyRelu(x) {alpha=0.1}", '"m": m = Mul(x, tenth)\n"y": y = Max(m, x)'),
    ("LeakyRelu(x) {alpha=0.1}", '"y": y = PRelu(x, tenth)'),
    ("Relu(x)", '"y": y = Max(x, zero)'),
    ("Relu(x)", '"y": y = Clip(x, zero)'),
    ("Clip(x, zero, six)", '"m": m = Max(x, zero)\n"y": y = Min(m, six)'),
    ("Clip(x, zero, six)", '"m": m = Relu(x)\n"y": y = Clip(m, _, six)'),
]  # fmt: skip


@pytest.mark.parametrize("expected, spelling", SPELLINGS)
def test_activation_becomes_one_operator(bench, expected, spelling):
    bench.rewrites(
        _All(), NUMBERS + spelling + "\noutput y", NUMBERS + f'"y": y = {expected}\noutput y'
    )


@pytest.mark.parametrize(
    "spelling, reason",
    [
        (
            '"m": m = Mul(x, slopes)\n"g": g = Sigmoid(m)\n"y": y = Mul(x, g)',
            "one factor per channel",
        ),
        ('"h": h = HardSigmoid(x)\n"y": y = Mul(h, x)', "its gate is HardSigmoid(0.2, 0.5)"),
        ('"y": y = PRelu(x, slopes)', "one slope per channel"),
        ('"m": m = Mul(x, two)\n"y": y = Max(m, x)', "max(x, 2x) is not a LeakyRelu"),
        ('"m": m = Max(x, six)\n"y": y = Min(m, zero)', "the bounds 6 and 0 cross"),
        ('"g": g = Sigmoid(x)\n"y": y = Mul(g, x)\noutput g', "g is an output of the model"),
    ],
)
def test_what_only_looks_alike_stays(bench, spelling, reason):
    bench.refuses(_All(), NUMBERS + spelling + "\noutput y", reason)


NORM = """
    input x: f32[2,5,8]
    const last: i64[1] = [-1]
    const two: f32[] = [2]
    const eps: f32[] = [0.0001]
    const gamma: f32[8] = pos
    const beta: f32[8] = rand
"""
CENTRE = '"mu": mu = ReduceMean(x, last)\n"c": c = Sub(x, mu)\n'
STD = '"v": v = ReduceMean(p, last)\n"e": e = Add(v, eps)\n"r": r = Sqrt(e)\n'


@pytest.mark.parametrize(
    "square", ["Pow(c, two)", "Mul(c, c)", "Square(c)", "SquaredDifference(x, mu)"]
)
def test_layer_norm(bench, square):
    new = bench.rewrites(
        recompose_layer_norm,
        NORM + CENTRE + f'"p": p = {square}\n' + STD + '"y": y = Div(c, r)\noutput y',
        NORM + '"y": y = LayerNormalization(x, gamma) {axis=-1, epsilon=0.0001}\noutput y',
    )
    assert set(new.nodes[0].sources) == {"mu", "c", "p", "v", "e", "r", "y"}


def test_layer_norm_over_the_first_axis_stays(bench):
    text = NORM + CENTRE + '"p": p = Mul(c, c)\n' + STD + '"y": y = Div(c, r)\noutput y'
    bench.refuses(recompose_layer_norm, text.replace("[-1]", "[1]"), "does not normalize the last")


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("ReduceMean(p, last)", "ReduceMean(p, last) {keepdims=0}", "drops its axes"),
        ("ReduceMean(p, last)", "ReduceMean(p, both)", "does not normalize the last axes"),
    ],
)
def test_layer_norm_whose_parts_do_not_fit_stays(bench, old, new, reason):
    """On a square both broadcast, to other numbers."""
    text = """
        input x: f32[5,5]
        const last: i64[1] = [-1]
        const both: i64[2] = [0, 1]
        const eps: f32[] = [0.0001]
    """ + CENTRE + '"p": p = Mul(c, c)\n' + STD + '"y": y = Div(c, r)\noutput y'  # fmt: skip
    assert bench.apply(recompose_layer_norm, text)[3] == 1
    bench.refuses(recompose_layer_norm, text.replace(old, new), reason)


def test_activation_that_adds_an_axis_stays(bench):
    text = 'input x: f32[4]\nconst k: f32[1,1] = [0]\n"y": y = Max(x, k)\noutput y'
    relu = next(p for p in recompose_activations if p.name == "recompose-relu")
    bench.refuses(relu, text, "broadcasts to a larger shape")


@pytest.mark.parametrize(
    "spelling",
    [
        '"m": m = Max(x, low)\n"y": y = Min(m, half)',
        '"m": m = Min(x, half)\n"y": y = Max(m, low)',
        '"m": m = Relu(x)\n"y": y = Min(m, low)',
    ],
)
def test_bounds_that_add_an_axis_stay(bench, spelling):
    text = "input x: f32[4]\nconst low: f32[1,1] = [-0.5]\nconst half: f32[] = [0.5]\n"
    text = text.replace("-0.5", "0.2") if "Relu" in spelling else text
    bench.refuses(_All(), text + spelling + "\noutput y", "broadcasts to a larger shape")


@pytest.mark.parametrize("high", [2**63 - 1, 2**53 + 1])
def test_bounds_of_integers_are_not_rounded(bench, high):
    text = f"input x: i64[4]\nconst l: i64[] = [-5]\nconst h: i64[] = [{high}]\n"
    spelling = '"m": m = Max(x, l)\n"y": y = Min(m, h)\noutput y'
    _, new, _, _ = bench.apply(_All(), text + spelling)
    assert [n.op for n in new.nodes] == ["Clip"]
    (found,) = bench.run(new, {"x": np.array([-9, 7, 2**53 + 1, 2**63 - 1])})
    assert found.tolist() == [-5, 7, 2**53 + 1, high]


@pytest.mark.parametrize("where", ["eps", "scale"])
def test_norm_whose_constants_add_an_axis_stays(bench, where):
    text = 'const high: f32[1,1,1,8] = rand\n"y": y = {}\noutput y'
    if where == "scale":
        norm = NORM + '"n": n = LayerNormalization(x, gamma)\n'
        for op in ("Mul(n, high)", "Add(high, n)"):
            bench.refuses(fuse_norm_affine, norm + text.format(op), "broadcasts to a larger shape")
        return
    norm = NORM.replace("eps: f32[]", "eps: f32[1,1,1,1]")
    for step, of, begin in ((recompose_layer_norm, "c", CENTRE), (recompose_rms_norm, "x", "")):
        before = norm + begin + f'"p": p = Mul({of}, {of})\n' + STD
        bench.refuses(step, before + text.format(f"Div({of}, r)"), "broadcasts to a larger shape")


def test_rms_norm(bench):
    bench.rewrites(
        recompose_rms_norm,
        NORM + '"p": p = Pow(x, two)\n' + STD + '"y": y = Div(x, r)\noutput y',
        NORM + '"y": y = RMSNormalization(x, gamma) {axis=-1, epsilon=0.0001}\noutput y',
    )


def test_scale_and_bias_join_the_norm(bench):
    bench.rewrites(
        fuse_norm_affine,
        NORM + '"n": n = LayerNormalization(x, gamma)\n"m": m = Mul(n, gamma)\n'
        '"y": y = Add(beta, m)\noutput y',
        NORM + '"y": y = LayerNormalization(x, gamma, beta)\noutput y',
    )


def test_norm_scale_of_another_shape_stays(bench):
    text = NORM + 'const k: f32[5,1] = rand\n"n": n = LayerNormalization(x, gamma)\n'
    bench.refuses(fuse_norm_affine, text + '"y": y = Mul(n, k)\noutput y', "not have the shape")


def test_l2_norm(bench):
    floor = 'const floor: f32[] = [1e-12]\n"l": l = ReduceL2(x, last)\n"f": f = Clip(l, floor)\n'
    bench.rewrites(
        recompose_l2_norm,
        NORM + floor + '"y": y = Div(x, f)\noutput y',
        NORM + '"y": y = LpNormalization(x) {axis=-1, p=2}\noutput y',
    )


def test_l2_norm_with_a_large_floor_stays(bench):
    floor = 'const floor: f32[] = [0.5]\n"l": l = ReduceL2(x, last)\n"f": f = Max(l, floor)\n'
    bench.refuses(recompose_l2_norm, NORM + floor + '"y": y = Div(x, f)\noutput y', "not tiny")


SHUFFLE = """
    input x: f32[1,{c},4,6]
    const split: i64[{n}] = {split}
    const join: i64[4] = {join}
    "s": s = Reshape(x, split)
    "t": t = Transpose(s) {{perm={perm}}}
    "y": y = Reshape(t, join)
    output y
"""


@pytest.mark.parametrize(
    "split, perm, mode",
    [
        ([1, 3, 2, 2, 4, 6], [0, 1, 4, 2, 5, 3], "CRD"),
        ([1, 2, 2, 3, 4, 6], [0, 3, 4, 1, 5, 2], "DCR"),
    ],
)
def test_pixel_shuffle(bench, split, perm, mode):
    bench.rewrites(
        recompose_shuffles,
        SHUFFLE.format(c=12, n=6, split=split, perm=perm, join=[1, 3, 8, 12]),
        "input x: f32[1,12,4,6]\n"
        f'"y": y = DepthToSpace(x) {{blocksize=2, mode="{mode}"}}\noutput y',
    )
