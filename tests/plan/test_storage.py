"""Values in bf16 between the steps that take them so."""

from __future__ import annotations

import numpy as np
from lite_engine import Predictor
from lite_engine.ir import DType
from lite_engine.plan import make_plan
from lite_engine.runtime import host_target

from tests.small_models import Builder, image


def graph(side: int = 64):
    """A stem, a depthwise layer, a join; one value that an operator in float32 reads too."""
    b = Builder((1, 3, side, side), "bf16")
    y = b.conv(b.x, 3, 32, 3, name="stem")
    left = b.conv(y, 32, 32, 3, group=32, activation="Relu", name="dw")
    right = b.conv(y, 32, 16, 1, name="pw")
    y = b.add("Concat", left, right, axis=1, name="join")
    y = b.add("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2], name="pool")
    y = b.conv(y, 48, 32, 1, name="last")
    return b.done(b.add("Mul", y, b.add("Sigmoid", y, name="gate"), name="gated"))


def test_values_that_every_step_takes_in_bf16_are_stored_so():
    plan = make_plan(graph(), "cpu", precision="bf16")
    kinds = {s.name: plan.tensors[s.outputs[0]].dtype for s in plan.steps}
    short = {name for name, kind in kinds.items() if kind is DType.BF16}
    # `last` is read by operators in float32; the network's input and output are as they were.
    assert short == {"stem", "dw", "pw", "join", "pool"}
    assert [s.kernel for s in plan.steps if s.name in ("dw", "pool", "gate")] == [
        "bf16_conv2d_depthwise", "bf16_pool", "f32_unary"]  # fmt: skip
    assert not any(t.short for t in make_plan(graph(), "cpu").tensors)


def test_a_step_counts_the_bytes_that_it_moves():
    plain, short = (make_plan(graph(), "cpu", precision=p) for p in ("fp32", "bf16"))
    for before, after in zip(plain.steps, short.steps, strict=True):
        halved = [short.tensors[i] for i in (*after.inputs, *after.outputs)]
        saved = sum(2 * int(np.prod(t.dims)) for t in halved if t.short)
        assert before.bytes - after.bytes == saved, after.name


def test_what_stays_in_floats():
    """A kernel that takes one type for all it touches, beside a value that must be a float; the
    network's outputs, one of them a view; values that fit the first-level cache."""
    b = Builder((1, 1, 128, 128))
    y = b.conv(b.x, 1, 4, 3, name="stem")
    y = b.add("MaxPool", y, kernel_shape=[1, 1], name="pool")
    y = b.add("Sigmoid", y)
    one, two = (b.conv(y, 4, 1, 1, name=name) for name in ("one", "two"))
    seen = b.add("Reshape", two, b.ints(1, 128, 128))
    plan = make_plan(b.done(one, seen), "cpu", precision="bf16")
    assert "bf16_conv2d_gemm" in {s.kernel for s in plan.steps}
    assert not any(t.short for t in plan.tensors)
    assert [s.kernel for s in plan.steps if s.name == "pool"] == ["f32_pool"]
    assert not any(t.short for t in make_plan(graph(16), "cpu", precision="bf16").tensors)


def test_taps_are_floats_and_close():
    model, names = graph(), ["stem", "dw", "join", "pool", "last"]
    feeds, host = image(model), host_target()
    exact, short = (
        Predictor(model, host, precision=p).run(feeds, taps=names) for p in ("fp32", "bf16")
    )
    for name in names:
        assert short[name].dtype == np.float32 and short[name].shape == exact[name].shape
        off = np.linalg.norm(short[name] - exact[name]) / np.linalg.norm(exact[name])
        assert off < 1e-2, name


def test_the_sum_over_a_transformers_layers_stays_in_floats():
    """What products read is in bf16; what is added, and what a normalisation reads, is not."""
    rng, rows, width = np.random.default_rng(1), 96, 96
    b = Builder((rows, width), "block")

    def product(x, n, m, name, **attrs):
        w = b.graph.constant((rng.standard_normal((n, m)) * n**-0.5).astype(np.float32))
        return b.add("Gemm", x, w, name=name, **attrs)

    def normal(x, name):
        ones = b.graph.constant(np.ones(width, np.float32))
        return b.add("LayerNormalization", x, ones, ones, name=name)

    x = product(b.x, width, width, "stem")
    first = normal(x, "first")
    heads = [
        b.add("Unsqueeze", product(first, width, width, n), b.ints(0), name=f"{n}3") for n in "qkv"
    ]
    y = b.add("Attention", *heads, q_num_heads=2, kv_num_heads=2, name="attention")
    y = product(b.add("Reshape", y, b.ints(rows, width)), width, width, "back")
    x = b.add("Add", x, y, name="sum")
    y = product(normal(x, "second"), width, 4 * width, "wide", activation="Gelu")
    x = b.add("Add", x, product(y, 4 * width, width, "narrow"), name="last")
    model = b.done(normal(x, "third"))
    plan = Predictor(model, host_target(), precision="bf16").plan()
    short = {s.name for s in plan.steps if plan.tensors[s.outputs[0]].dtype is DType.BF16}
    assert short == {"first", *"qkv", "attention", "second", "wide"}, short
    feeds = {"x": rng.standard_normal((rows, width)).astype(np.float32)}
    exact, found = (
        Predictor(model, host_target(), precision=p).run(feeds) for p in ("fp32", "bf16")
    )
    for name, y in exact.items():
        assert np.linalg.norm(found[name] - y) < 1e-2 * np.linalg.norm(y)
