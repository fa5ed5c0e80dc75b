"""Weights with many zeros: which layers the planner gives to sparse kernels, and their numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.backends.cpu import native
from lite_engine.ir import Graph
from lite_engine.plan import make_plan

from tests.native.tiny import run_step
from tests.small_models import pointwise

RNG = np.random.default_rng(7)


def weights(o: int, c: int, zeros: float) -> np.ndarray:
    w = RNG.standard_normal((o, c, 1, 1)).astype(np.float32)
    return w * (RNG.random(w.shape) >= zeros)


def kernel_of(graph: Graph) -> str:
    return next(s.kernel for s in make_plan(graph, "cpu").steps if s.op == "Conv")


@pytest.mark.parametrize(
    ("zeros", "size", "attrs", "sparse"),
    [
        (0.9, 9, "", True),
        (0.75, 9, "", True),
        (0.5, 9, "", False),
        (0.9, 3, "", False),  # 9 pixels: too few to fill vectors
        (0.9, 9, "strides=[2, 2]", False),
        (0.9, 9, "pads=[1, 1, 1, 1]", False),
    ],
)
def test_the_planner_takes_them_where_they_pay(zeros, size, attrs, sparse):
    kernel = kernel_of(pointwise(weights(64, 48, zeros), size, attrs))
    assert (kernel == "f32_conv_sparse") == sparse


def test_the_reason_names_the_zeros():
    steps = make_plan(pointwise(weights(64, 48, 0.9)), "cpu").steps
    assert "most weights are 0" in next(s.why for s in steps if s.op == "Conv")


@pytest.mark.cpu
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("pixels", "c", "o"), [(4, 31, 33), (9, 64, 17), (15, 40, 70)])
def test_outputs_are_those_of_numpy(pixels, c, o, threads):
    w = weights(o, c, 0.8)
    w[0], w[-1, :3] = 0, 1  # a row without weights, and an odd count
    graph = pointwise(w, pixels, 'activation="Relu"')
    x = RNG.standard_normal((1, c, pixels, pixels)).astype(np.float32)
    want = np.maximum(np.einsum("oc,nchw->nohw", w[:, :, 0, 0].astype(np.float64), x), 0)
    got = Predictor(graph, threads=threads).run({"x": x})["y"]
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.cpu
@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("m", [1, 7, 16, 50, 130])
@pytest.mark.parametrize("transposed", [0, 1])
def test_products_of_every_instruction_set(isa, m, transposed):
    a = RNG.standard_normal((m, 37)).astype(np.float32)
    b = (RNG.standard_normal((37, 41)) * (RNG.random((37, 41)) < 0.2)).astype(np.float32)
    c = RNG.standard_normal(41).astype(np.float32)
    want = 0.5 * (a.astype(np.float64) @ b) + 2 * c
    (got,) = run_step(
        "Gemm", "f32_gemm_sparse", [a, np.ascontiguousarray(b.T) if transposed else b, c],
        [np.full(want.shape, np.nan, np.float32)],
        {"alpha": 0.5, "beta": 2.0, "transB": transposed}, constant=(1, 2), threads=2, max_isa=isa,
    )  # fmt: skip
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.cpu
def test_what_the_kernel_does_not_take_is_an_error():
    x, w = np.zeros((1, 6, 6, 32), np.float32), weights(40, 32, 0.9)
    y = np.zeros((1, 3, 3, 40), np.float32)
    with pytest.raises(Exception, match="1x1 convolutions of stride 1"):
        run_step("Conv", "f32_conv_sparse", [x, w], [y], {"strides": [2, 2]}, constant=(1,))


def test_info_shows_the_share_of_zeros(tmp_path, capsys):
    from lite_engine import optimize
    from lite_workbench.cli import main

    w = weights(64, 48, 0.9)
    path = optimize(pointwise(w), targets=["x86"]).save(tmp_path / "m.lite")
    assert main(["info", str(path), "--json", "-"]) == 0
    (layer,) = json.loads(capsys.readouterr().out)["layers"]
    assert layer["zeros"] == pytest.approx(float((w == 0).mean()), abs=1e-3)
    assert main(["info", str(path), "--layers"]) == 0
    assert "zeros" in capsys.readouterr().out
