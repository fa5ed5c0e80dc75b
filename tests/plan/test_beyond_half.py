"""fp16 plans of numbers that do not fit a half."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.ir import DType, Graph
from lite_engine.ops import infer_types
from lite_engine.plan import make_plan
from lite_engine.plan.beyond_half import beyond_half

from tests.small_models import Builder

pytestmark = pytest.mark.opencl
X = np.random.default_rng(0).standard_normal((1, 64, 6, 6)).astype(np.float32)


def dynamic() -> Graph:
    """What onnxruntime's quantize_dynamic makes of a convolution: sums of up to 255·127·576, and a
    product of two scales for them."""
    b = Builder((1, 64, 6, 6), "dynamic")
    rng = np.random.default_rng(1)
    w = b.graph.constant(rng.integers(-127, 128, (32, 64, 3, 3), dtype=np.int8))
    x, scale, zero = b.graph.add("DynamicQuantizeLinear", [b.x], outputs=3, name="bytes").outputs
    sums = b.add("ConvInteger", x, w, zero, name="sums", pads=[1, 1, 1, 1])
    scales = b.add("Mul", scale, b.scalar(3e-5), name="scales")
    y = b.add("Mul", b.add("Cast", sums, name="cast", to=DType.F32), scales, name="scaled")
    y = b.add("Add", y, b.graph.constant(np.ones((1, 32, 1, 1), np.float32)), name="bias")
    return b.done(b.add("Relu", y, name="relu"))


def test_sums_of_products_of_bytes_stay_in_float32() -> None:
    graph = dynamic()
    infer_types(graph, strict=True)
    assert beyond_half(graph).keys() == {"cast", "scales", "scaled"}
    plan = make_plan(graph, "opencl", precision="fp16")
    kinds = {plan.tensors[s.outputs[0]].name: plan.tensors[s.outputs[0]].dtype for s in plan.steps}
    assert kinds["cast"] is DType.F32 and kinds["bias"] is DType.F16
    (want,) = Predictor(graph, "reference").run({"x": X}).values()
    (got,) = Predictor(graph, "opencl", precision="fp16").run({"x": X}).values()
    # The input is rounded to a half before its bytes are made: single steps differ.
    assert np.linalg.norm(got - want) < 5e-3 * np.linalg.norm(want)


def test_constants_beyond_a_half_stay_finite() -> None:
    """A mask of -1e9 hides, but is not -inf; an infinity stays one."""
    b = Builder((1, 1, 4, 8), "masked")
    mask = np.zeros((1, 1, 4, 8), np.float32)
    mask[..., 4:] = -1e9
    mask[0, 0, 3] = -1e9  # a row that sees nothing
    y = b.add("Add", b.x, b.graph.constant(mask), name="hidden")
    graph = b.done(b.add("Softmax", y, axis=-1, name="soft"))
    x = X[:1, :1, :4].copy()
    x = np.concatenate([x, x[..., :2]], -1)
    (want,) = Predictor(graph, "reference").run({"x": x}).values()
    (got,) = Predictor(graph, "opencl", precision="fp16").run({"x": x}).values()
    np.testing.assert_allclose(got[0, 0, :3], want[0, 0, :3], atol=2e-3)
    assert np.isfinite(got).all()
    mask[0, 0, 0, 7] = -np.inf
    plan = make_plan(graph, "opencl", precision="fp16")
    (held,) = (t.data for t in plan.tensors if t.data is not None and t.data.size == 32)
    assert np.isinf(held).sum() == 1 and held.dtype == np.float16
