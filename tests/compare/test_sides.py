"""Comparing what is not alike: another framework, quantised and float, fused and unfused."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.backends.cpu.native import cpu_features
from lite_engine.compare import Side, compare
from lite_engine.compare.originals import open_original
from lite_engine.errors import UsageError
from lite_engine.model_file import Model
from lite_engine.quantize import Options, quantize
from lite_engine.quantize.groups import Groups
from lite_engine.quantize.weight_only import quantize_weights
from lite_engine.quantize.weights_int4 import quantize_weights_int4
from lite_engine.runtime import host_target

from tests.small_models import Builder, attention, classifier, image

pytestmark = pytest.mark.cpu


def native(model) -> Side:
    return Side(Predictor(model, host_target(), threads=1))


def quantised(graph) -> Model:
    samples = [image(graph)] + [
        {"x": np.random.default_rng(i).standard_normal((1, 3, 20, 20)).astype(np.float32)}
        for i in range(7)
    ]
    return optimize(quantize(graph, samples, Options(method="minmax")).graph)


def test_quantised_against_its_float_parent() -> None:
    parent = optimize(classifier())
    result = compare(native(parent), native(quantised(parent.graph)), image(parent.graph))
    assert {"stem", "dw", "wide"} <= {s for x in result.layers for s in x.sources}
    assert result.agrees, result.verdict
    assert any(1e-4 < x.rel_l2 < 0.2 for x in result.layers)  # real numbers, not integers
    assert all(x.isolated is not None for x in result.layers)
    measured = [x for x in result.layers if x.explained]
    assert measured and "has the largest error of its own" in result.verdict
    for x in measured:  # the prediction is of the size of what is found, not a wide limit
        assert 0.3 * x.explained < x.isolated["rel_l2"] < 3 * x.explained


@pytest.mark.parametrize("kind", ["swap_channels", "forget_bias", "drop_last_column"])
def test_a_fault_in_a_quantised_layer_is_no_rounding(kind) -> None:
    parent = optimize(classifier())
    model = quantised(parent.graph)
    name = next(n.name for n in model.graph.nodes if "wide" in n.sources)
    b = Side(Predictor(model, host_target(), threads=1, faults={name: kind}), "int8")
    result = compare(native(parent), b, image(parent.graph))
    assert not result.agrees and "is rounding)" in result.verdict
    assert [x.sources for x in result.layers if not x.within] == [["wide"]]


def test_weights_alone_in_8_bits_are_explained() -> None:
    parent = optimize(classifier())
    model = optimize(quantize_weights(parent.graph))
    result = compare(native(parent), native(model), image(parent.graph))
    assert result.agrees and any(x.explained for x in result.layers), result.verdict


@pytest.mark.parametrize("groups", [Groups(16), Groups(64, symmetric=False)])
def test_weights_alone_in_4_bits_are_explained(groups) -> None:
    parent = optimize(classifier())
    packed = quantize_weights_int4(parent.graph, groups).graph
    result = compare(native(parent), native(optimize(packed)), image(parent.graph))
    assert result.agrees and any(x.explained for x in result.layers), result.verdict
    assert result.answer is not None and result.answer.sqnr_db > 10
    product = next(n for n in packed.nodes if n.op == "MatMulNBits")
    scales = product.inputs[2]
    broken = scales.const.copy()
    broken[3] *= -1
    product.set_input(2, packed.constant(broken))
    result = compare(native(parent), native(optimize(packed)), image(parent.graph))
    assert not result.agrees
    assert set(product.sources) <= set((result.first_divergence or {})["sources"]), result.verdict


def test_packed_weights_behind_a_sum_are_explained() -> None:
    """The float model adds within the convolution, the packed one behind it."""
    b = Builder((1, 8, 12, 12), "sum")
    y = b.conv(b.x, 8, 32, 3, name="first", activation="Relu")
    z = b.conv(b.conv(y, 32, 32, 1, name="inner", activation="Relu"), 32, 32, 1, name="outer")
    graph = b.done(b.add("Add", y, z, name="sum"))
    parent = optimize(graph)
    packed = optimize(quantize_weights_int4(parent.graph, Groups(32)).graph)
    for a, b in ((parent, packed), (packed, parent)):
        result = compare(native(a), native(b), image(graph))
        assert result.agrees, result.verdict
        assert [x.sources[-1] for x in result.layers] == ["first", "inner", "sum"]


def test_a_narrow_range_clips_and_is_named() -> None:
    """Calibrated on small numbers: the kernels are right, the outputs are not the parent's."""
    parent = optimize(classifier())
    feeds = image(parent.graph)
    small = [{"x": feeds["x"] * i * 1e-2} for i in (1, 2, 3, 4)]
    model = optimize(quantize(parent.graph, small, Options(method="minmax")).graph)
    result = compare(native(parent), native(model), {"x": feeds["x"] * 1e2})
    assert result.first_divergence is None and not result.agrees
    assert "no layer fails on its own" in result.verdict
    assert "has the largest error of its own" in result.verdict


def test_cancelling_sums_in_few_bits_are_explained() -> None:
    """y = Σ x·w with Σ w ≈ 0 and x ≈ 1: bf16 keeps little of the result, and that is not wrong."""
    if "avx512bf16" not in cpu_features():
        pytest.skip("bf16 products are float32 on this CPU; needs AVX512-BF16")
    builder = Builder((4, 256), "cancelling")
    w = np.random.default_rng(1).standard_normal((256, 32)).astype(np.float32)
    w -= w.mean(axis=0)
    zeros = builder.graph.constant(np.zeros(32, np.float32))
    graph = builder.done(
        builder.add("Gemm", builder.x, builder.graph.constant(w), zeros, name="sum")
    )
    noise = np.random.default_rng(2).standard_normal((4, 256)).astype(np.float32)
    a, b = (Side(Predictor(optimize(graph), "reference", precision="fp32")),
            Side(Predictor(optimize(graph), host_target(), precision="bf16"), "bf16"))  # fmt: skip
    result = compare(a, b, {"x": 1 + noise / 100})
    row = result.layers[0]
    assert row.isolated["rel_l2"] > 8 * 2.0**-8 and row.explained > 8 * 2.0**-8
    assert row.within and result.first_divergence is None


def test_fused_against_unfused() -> None:
    graph = classifier()
    fused, plain = optimize(classifier()), Model(graph)
    for a, b in ((fused, plain), (plain, fused)):
        result = compare(native(a), native(b), image(graph))
        assert result.agrees, result.verdict
        assert len(result.layers) >= 8 and all(x.isolated for x in result.layers)


def test_nothing_in_common() -> None:
    with pytest.raises(UsageError, match="no layer in common"):
        compare(native(optimize(classifier())), native(optimize(attention())),
                image(classifier()))  # fmt: skip


@pytest.mark.parametrize("fault", [None, "forget_bias"])
def test_one_network_under_other_names(fault) -> None:
    """Two formats of it: no name is shared, the weights are but for their rounding."""
    a, b = optimize(classifier()), optimize(classifier())
    graph = b.graph
    made = [v for n in graph.nodes for v in n.outputs]
    for i, value in enumerate([*graph.inputs, *made]):
        value.name = f"v{i}"
    for i, node in enumerate(graph.nodes):
        node.name, node.sources = f"n{i}", [f"s{i}"]
        for value in node.inputs:
            if value is not None and value.const is not None and value.const.dtype == np.float32:
                value.const = value.const * np.float32(1 + 1e-6)
    wide = next(f"n{i}" for i, n in enumerate(a.graph.nodes) if n.name == "wide")
    faulty = Predictor(b, host_target(), threads=1, faults={wide: fault} if fault else None)
    result = compare(native(a), Side(faulty), image(a.graph))
    pairs = {x.name: x.sources_candidate for x in result.layers}
    assert {"stem", "pw", "wide", "fc"} <= set(pairs)
    order = [n.name for n in a.graph.nodes]
    assert all(found == [f"s{order.index(name)}"] for name, found in pairs.items())
    assert result.agrees == (fault is None), result.verdict
    assert list(result.outputs) == ["prob"]
    if fault:
        assert result.first_divergence["name"] == "wide"


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=lambda d: d.__name__)
def test_the_original_framework(dtype, tmp_path) -> None:
    onnx = pytest.importorskip("onnx", reason="pip install onnx")
    pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
    from onnx import helper, numpy_helper

    rng = np.random.default_rng(0)
    weights = numpy_helper.from_array(rng.standard_normal((4, 3, 3, 3)).astype(dtype), "w")
    nodes = [helper.make_node("Conv", ["x", "w"], ["c"], name="conv", pads=[1] * 4),
             helper.make_node("Relu", ["c"], ["y"], name="relu")]  # fmt: skip
    port = lambda name, c: helper.make_tensor_value_info(  # noqa: E731
        name, weights.data_type, [1, c, 8, 8]
    )
    graph = helper.make_graph(nodes, "g", [port("x", 3)], [port("y", 4)], [weights])
    path = tmp_path / "m.onnx"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.save(model, str(path))
    feeds = {"x": rng.standard_normal((1, 3, 8, 8)).astype(dtype)}
    from lite_engine import load

    result = compare(open_original(path), native(optimize(load(path))), feeds)
    assert result.agrees, result.verdict
    assert [x.value_baseline for x in result.layers] == ["y"]
    raw = native(Model(load(path)))
    assert [x.value_baseline for x in compare(open_original(path), raw, feeds).layers] == ["c", "y"]


def test_a_format_without_a_framework() -> None:
    with pytest.raises(UsageError, match="no original framework"):
        open_original("model.caffemodel")
