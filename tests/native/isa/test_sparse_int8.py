"""Integer kernels that skip zeros give the integers of those that multiply them."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.backends.cpu import native
from lite_engine.ir import Graph
from lite_engine.ops import get_op, infer_types
from lite_engine.ops._sparse import word_density
from lite_engine.profile import profile

from tests.native.tiny import load, one_step_plan, run_step
from tests.small_models import Builder

from ..cases import merged
from .oracle_int8 import int_conv_case, quant_case, requantise, scales
from .test_compute_arm import run_on_arm

pytestmark = pytest.mark.cpu
CONV = "i8_conv_sparse"
U8, I8 = np.uint8, np.int8
# x (N,H,W,C), output channels, options, x type, w type, y type
CASES = [
    ((1, 4, 4, 64), 32, {"kept": 0.1}, U8, I8, U8),
    ((2, 5, 7, 37), 41, {"kept": 0.1}, I8, U8, I8),
    ((1, 9, 9, 70), 17, {"kept": 0.2, "activation": "Relu"}, U8, I8, I8),
    ((1, 13, 11, 48), 66, {"kept": 0.1, "residual": U8}, I8, I8, U8),
    ((1, 8, 8, 40), 64, {"kept": 0.15, "residual": I8, "sum_zero": 7}, U8, U8, U8),
    ((1, 6, 6, 44), 24, {"kept": 0.2, "zeros": "some"}, U8, U8, U8),  # more than a byte centred
    ((1, 3, 5, 33), 5, {"kept": 0.0}, U8, I8, U8),  # nothing but zeros
    ((1, 1, 1, 130), 35, {"kept": 0.9}, I8, I8, I8),
]


def drawn(case: tuple) -> tuple:
    x_dims, out, options, *types = case
    return int_conv_case(CONV, x_dims, out, (1, 1), dict(options), *types)


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("case", CASES, ids=lambda c: "x".join(map(str, (*c[0], c[1]))))
def test_convolutions_of_every_instruction_set(case, isa):
    inputs, attrs, want = drawn(case)
    for threads in (1, 3):
        (got,) = run_step(
            "QLinearConv", CONV, inputs, [np.zeros_like(want)], attrs, constant=(3, 8),
            threads=threads, max_isa=isa,
        )  # fmt: skip
        np.testing.assert_array_equal(got, want)


@pytest.mark.arm
@pytest.mark.parametrize("isa", ["neon", "neondot"])
def test_convolutions_on_aarch64(tmp_path, isa):
    drawn_cases = [drawn(case) for case in CASES]
    plans = [
        one_step_plan("QLinearConv", CONV, inputs, [np.zeros_like(want)], attrs, range(len(inputs)))
        for inputs, attrs, want in drawn_cases
    ]
    results = run_on_arm(merged(plans), tmp_path, isa)
    for got, (_, _, want) in zip(results, drawn_cases):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("isa", native.isas())
@pytest.mark.parametrize("columns", [4, 16, 33])
def test_columns_that_share_their_zeros_are_computed_together(isa, columns):
    rng = np.random.default_rng(columns)
    a = rng.integers(0, 256, (50, 60)).astype(U8)
    kept = np.repeat(rng.random((60, -(-columns // 4))) < 0.15, 4, axis=1)[:, :columns]
    b = (rng.integers(-127, 128, (60, columns)) * kept).astype(I8)
    quant = quant_case(rng, 60, columns, U8, I8, U8, ("a", "b"))
    acc = (a.astype(np.int64) - quant["a_zero_point"]) @ b.astype(np.int64)
    want = requantise(acc, scales(quant, ("a", "b")), quant["y_zero_point"], U8)
    inputs, outputs = [a, None, None, b], [np.zeros_like(want)]
    plan = one_step_plan("QLinearMatMul", "i8_gemm_sparse", inputs, outputs, quant, (3,))
    variants = [step.variant for step in load(plan).steps()]
    assert "amx" in variants[0] or variants[0].endswith("x4")
    (got,) = run_step(
        "QLinearMatMul", "i8_gemm_sparse", inputs, outputs, quant, constant=(3,), threads=2,
        max_isa=isa,
    )  # fmt: skip
    np.testing.assert_array_equal(got, want)


def pointwise(kept: float, block: int, size: int = 9, channels: int = 64) -> Graph:
    """A quantized 1x1 convolution; this share of its blocks of inputs is not 0."""
    rng = np.random.default_rng(2)
    b = Builder((1, channels, size, size), "integers")
    scale, zero = b.graph.constant(np.float32(0.1)), b.graph.constant(U8(128))
    mask = np.repeat(rng.random((48, channels // block)) < kept, block, axis=1)
    w = (rng.integers(-127, 128, mask.shape) * mask).astype(I8).reshape(48, channels, 1, 1)
    parts = [b.add("QuantizeLinear", b.x, scale, zero), scale, zero]
    parts += [b.graph.constant(w), scale, b.graph.constant(I8(0)), scale, zero]
    return b.done(b.add("QLinearConv", *parts, name="c"))


@pytest.mark.parametrize(
    ("kept", "block", "size", "channels", "sparse"),
    [(0.1, 4, 9, 640, True), (0.01, 1, 9, 640, True), (0.1, 4, 2, 640, False),
     (0.9, 4, 9, 640, False), (0.7, 1, 9, 640, False), (0.25, 4, 9, 24, False)],
)  # fmt: skip
@pytest.mark.skipif("amx" in native.isas(), reason="tiles multiply zeros faster")
def test_layers_skip_zeros_where_that_pays(kept, block, size, channels, sparse):
    graph = pointwise(kept, block, size, channels)
    predictor = Predictor(graph, threads=1)
    found = profile(predictor, {"x": np.zeros((1, channels, size, size), np.float32)}, runs=1)
    (kernel,) = [row.kernel for row in found.layers if row.name == "c"]
    assert kernel.startswith(CONV if sparse else "i8_conv2d_gemm")


@pytest.mark.parametrize(
    ("kept", "block", "size", "why"),
    [(0.2, 4, 9, ""), (0.05, 1, 9, ""), (0.5, 1, 9, "words of 4"), (0.2, 4, 3, "16 rows")],
)
def test_a_sparse_form_is_for_words_of_zeros(kept, block, size, why):
    graph = pointwise(kept, block, size)
    infer_types(graph)
    node = graph.node("c")
    (ref,) = [k for k in get_op(node.op).kernels if k.name == CONV]
    answer = ref.when(node, [None if v is None else v.type for v in node.inputs])
    assert (answer is True) if not why else why in str(answer)


def test_the_form_by_name_gives_the_integers_of_the_reference():
    graph = pointwise(0.2, 4)
    feeds = {"x": np.random.default_rng(3).standard_normal((1, 64, 9, 9)).astype(np.float32)}
    name = graph.outputs[0].name
    sparse = Predictor(graph, tuning={"c": CONV})
    assert CONV in [step.kernel for step in sparse.plan().steps]
    want = Predictor(graph, "reference").run(feeds)[name]
    np.testing.assert_array_equal(sparse.run(feeds)[name], want)


def test_words_are_counted_with_an_odd_end():
    rows = np.zeros((2, 6), I8)
    rows[0, 1] = rows[1, 5] = 1
    assert word_density(rows) == 0.5
