"""fp16 plans of numbers that do not fit a half."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.ir import DType, Graph, Value
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


def outputs(graph: Graph, feeds: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """(float32 by NumPy, fp16 by OpenCL)"""
    (want,) = Predictor(graph, "reference").run(feeds).values()
    (got,) = Predictor(graph, "opencl", precision="fp16").run(feeds).values()
    return want, got


@pytest.mark.parametrize(
    ("op", "attrs"),
    [
        ("Reshape", {}), ("Slice", {}), ("Concat", {"axis": 1}), ("Gather", {"axis": 1}),
        ("Relu", {}), ("Neg", {}), ("MaxPool", {"kernel_shape": [2, 2]}),
    ],
)  # fmt: skip
def test_wide_numbers_stay_in_float32_up_to_the_scale(op: str, attrs: dict) -> None:
    b = Builder((1, 4, 2, 2), "wide")
    b.x.dtype = DType.I32
    y = b.add("Cast", b.x, to=DType.F32)
    others = {"Reshape": [b.ints(1, 16)], "Slice": [b.ints(0, 0), b.ints(1, 3)], "Concat": [y],
              "Gather": [b.ints(3, 1)]}  # fmt: skip
    y = b.add(op, y, *others.get(op, []), **attrs)
    graph = b.done(b.add("Mul", y, b.scalar(1e-6)))
    want, got = outputs(graph, {"x": (np.arange(16) * 10**6).reshape(1, 4, 2, 2).astype(np.int32)})
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("dtype", [DType.I64, DType.F32])
@pytest.mark.parametrize("product", ["Mul", "MatMul"])
def test_angles_of_positions_are_exact(product: str, dtype: DType) -> None:
    """A rotary embedding: integers, or the time of a diffusion model, in a half off by up to 1."""
    b = Builder((1, 8, 1), "angles")
    b.x.dtype = dtype
    frequencies = b.graph.constant((1e4 ** -(np.arange(32) / 32)).astype(np.float32)[None, None])
    y = b.x if dtype is DType.F32 else b.add("Cast", b.x, to=DType.F32)
    y = b.add("Transpose", b.add(product, y, frequencies), perm=[0, 2, 1])
    graph = b.done(b.add("Cos", b.add("Concat", y, y, axis=-1)))
    positions = np.arange(3993, 4001).reshape(1, 8, 1).astype(dtype.np)
    want, got = outputs(graph, {"x": positions})
    np.testing.assert_allclose(got, want, atol=1e-3)


@pytest.mark.parametrize(("op", "factor"), [("Mul", 1e-3), ("Div", 1e3)])
def test_large_constants_scale(op: str, factor: float) -> None:
    b = Builder((2, 4), "scaled")
    graph = b.done(b.add(op, b.x, b.graph.constant(np.full(1, 1e6, np.float32))))
    x = np.array([[1, 2, -1, 0], [0.5, 0.25, 3, 4]], np.float32) * factor
    want, got = outputs(graph, {"x": x})
    np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("kind", [DType.I64, DType.F32, None])
def test_a_row_that_a_mask_hides_whole_is_no_nan(kind: DType | None) -> None:
    """-1e9 times what is hidden, or (None) given as it is: still finite where it becomes a half."""
    b = Builder((2, 8), "hidden")
    mask = Value("mask", kind or DType.F32, (2, 8))
    b.graph.inputs.append(mask)
    y = b.add("Cast", mask, to=DType.F32) if kind is DType.I64 else mask
    if kind is not None:
        y = b.add("Mul", b.add("Sub", b.scalar(1), y), b.scalar(-1e9))
    graph = b.done(b.add("Softmax", b.add("Add", b.x, y), axis=-1))
    seen = np.array([[1] * 4 + [0] * 4, [0] * 8])
    given = seen.astype(kind.np) if kind else ((1 - seen) * -1e9).astype(np.float32)
    want, got = outputs(graph, {"x": X[0, :2, :1].repeat(2, -1)[:, 0, :8], "mask": given})
    np.testing.assert_allclose(got, want, atol=2e-3)


def linear_attention(spelling: str) -> tuple[Graph, set[str]]:
    """Sums over 4096 keys of about 25, and queries of as many: up to 1e7, their quotients 1; and
    the layers that need more than halves."""
    b = Builder((1, 2, 4096, 8), "linear")
    queries = b.add("Relu", b.x, name="queries")
    keys = b.add("Transpose", b.add("Abs", b.x, name="keys"), perm=[0, 1, 3, 2], name="turned")
    values = b.add("Tanh", b.add("Neg", b.x), name="values")
    if spelling == "a column of ones":  # Cai et al., EfficientViT, 2023
        pads = np.array([0, 0, 0, 0, 0, 0, 0, 1])
        values = b.add("Pad", values, b.graph.constant(pads), b.scalar(1), name="ones")
        sums = b.add("MatMul", queries, b.add("MatMul", keys, values, name="inner"), name="outer")
        node = b.graph.add("Split", [sums, b.ints(8, 1)], {"axis": 3}, outputs=2, name="parts")
        above, below = node.outputs
        below = b.add("Add", below, b.scalar(1e-5), name="above 0")
        y = b.add("Div", above, below, name="quotient")
        return b.done(b.add("Neg", y)), {"inner", "outer", "parts", "above 0", "quotient"}
    above = b.add("MatMul", queries, b.add("MatMul", keys, values, name="inner"), name="outer")
    total = b.add("ReduceSum", keys, b.ints(-1), keepdims=1, name="total")
    below = b.add("MatMul", queries, total, name="beside")
    below = b.add("Add", below, b.scalar(1e-5), name="above 0")
    layers = {"inner", "outer", "total", "beside", "above 0", "quotient"}
    if spelling == "a quotient":
        return b.done(b.add("Neg", b.add("Div", above, below, name="quotient"))), layers
    inverse = b.add("Reciprocal", below, name="inverse")
    y = b.add("Mul", above, inverse, name="quotient")
    return b.done(b.add("Neg", y)), {*layers, "inverse"}


@pytest.mark.parametrize("spelling", ["a column of ones", "a quotient", "a reciprocal"])
def test_attention_without_a_softmax_stays_finite(spelling: str) -> None:
    graph, layers = linear_attention(spelling)
    infer_types(graph, strict=True)
    assert beyond_half(graph).keys() == layers
    x = np.random.default_rng(3).uniform(10, 40, (1, 2, 4096, 8)).astype(np.float32)
    x = x.astype(np.float16).astype(np.float32)
    want, got = outputs(graph, {"x": x})
    assert np.isfinite(got).all()
    np.testing.assert_allclose(got, want, rtol=2e-3)  # two roundings to halves


def test_a_sum_beside_a_product_of_other_rows_is_a_half() -> None:
    """As normalised attention weights are: no sum grows with both."""
    b = Builder((1, 2, 16, 8), "other rows")
    keys = b.add("Transpose", b.add("Abs", b.x), perm=[0, 1, 3, 2])
    above = b.add("MatMul", b.add("Relu", b.x), keys)
    below = b.add("ReduceSum", b.add("Exp", b.x), b.ints(-1), keepdims=1)
    graph = b.done(b.add("Div", above, below))
    infer_types(graph, strict=True)
    assert not beyond_half(graph)
