"""What is written gives the source's numbers in onnxruntime, and reads back as the same graph."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, load, optimize, write_onnx
from lite_engine.errors import UsageError
from lite_engine.exporters.onnx import write_bytes
from lite_engine.importers.onnx import read_bytes
from lite_engine.ir import DType, Graph, Value
from lite_engine.ops import infer_types, run_node
from lite_engine.runtime import host_target
from lite_engine.runtime.inputs import random_feeds

zoo = pytest.importorskip("benchmarks.zoo", reason="the zoo is in the source tree only")
onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

QUICK = ("mobilenet_v3_small", "shufflenet_v2", "text_encoder", "ocr_recogniser")
#: Real models, with the shape of the first input where the file leaves it open.
REAL = {
    "onnx/mnist_8.onnx": None,
    "tflite/vww_96_float.tflite": None,
    "tflite/vww_96_int8.tflite": None,
    "tflite/person_detect_int8.tflite": None,
    "tflite/mobilenet_v1_0.25_224_quant.tflite": None,
    "tf/mobilenet_v1_0.25_224_frozen_graph.pb": None,
    "caffe/mtcnn/det2.caffemodel": None,
    "lprnet_plate_ocr/DERIVED_lprnet.onnx": None,
    "ultraface_rfb320/version-RFB-320_without_postprocessing.tflite": None,
    "ppocr_v2_cls/inference.pdmodel": (1, 3, 48, 192),
    "paddle/shufflenet_v2_imagenet_fluid": (1, 3, 224, 224),
    "nb/mask_detector_model.nb": (1, 3, 128, 128),
}


def run(data: bytes | str, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    # Beyond that level it multiplies bytes, whose sums saturate on x86 without VNNI.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    return ort.InferenceSession(data, options, providers=["CPUExecutionProvider"]).run(None, feeds)


def error(got: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """The largest relative L2 error of the outputs."""
    assert [a.shape for a in got] == [a.shape for a in wanted]
    pairs = [(a.astype(np.float64), b.astype(np.float64)) for a, b in zip(got, wanted)]
    return max(float(np.linalg.norm(a - b) / max(np.linalg.norm(b), 1e-30)) for a, b in pairs)


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.sweep) for n in zoo.NAMES]
)
def test_zoo(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(zoo.build(name).SerializeToString())
    graph = load(path)
    feeds = random_feeds(graph)
    wanted = run(str(path), feeds)
    for each in (graph, optimize(path).graph):
        written = write_bytes(each)
        onnx.checker.check_model(onnx.load_from_string(written), full_check=True)
        assert error(run(written, feeds), wanted) <= 1e-5


@pytest.mark.models
@pytest.mark.cpu
@pytest.mark.parametrize("name", REAL)
def test_real_models(name: str, models_dir: Path) -> None:
    graph = load(models_dir / name)
    if shape := REAL[name]:
        graph = load(models_dir / name, shapes={graph.inputs[0].name: shape})
    feeds = random_feeds(graph)
    model = optimize(graph)
    wanted = list(Predictor(model, host_target()).run(feeds).values())
    for each in (graph, model.graph):
        assert error(run(write_bytes(each), feeds), wanted) <= 1e-5


@pytest.mark.parametrize("opset", [11, 13, 15, 18, 21])
def test_an_opset_that_is_given(opset: int, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(zoo.build("text_encoder").SerializeToString())
    written = write_bytes(load(path), opset=opset)
    model = onnx.load_from_string(written)
    onnx.checker.check_model(model, full_check=True)
    assert {o.domain: o.version for o in model.opset_import} == {"": opset}
    feeds = random_feeds(load(path))
    assert error(run(written, feeds), run(str(path), feeds)) <= 1e-5


TRAVELS = {"labels": ["a", "b"], "preprocess": {"scale": 2}, "adapter": {"kind": "top"}}


def small() -> Graph:
    graph = Graph("small", metadata=dict(TRAVELS))
    graph.inputs = [Value("x", DType.F32, ("n", 4))]
    w = graph.constant(np.arange(2048, dtype=np.float32).reshape(4, 512), "w")
    node = graph.add("MatMul", [graph.inputs[0], w], outputs=["y"], name="mm")
    graph.outputs = [node.output]
    infer_types(graph)
    return graph


def test_names_shapes_and_metadata_come_back(tmp_path: Path) -> None:
    back = load(write_onnx(small(), tmp_path / "m.onnx"))
    assert back.inputs[0].name == "x" and back.inputs[0].shape == ("n", 4)
    assert back.outputs[0].name == "y" and back.outputs[0].shape == ("n", 512)
    assert [(n.op, n.name) for n in back.nodes] == [("MatMul", "mm")]
    assert {key: back.metadata[key] for key in TRAVELS} == TRAVELS


def test_weights_beside_the_model(tmp_path: Path) -> None:
    path = write_onnx(small(), tmp_path / "m.onnx", external=True)
    assert path.stat().st_size < 1000 and (tmp_path / "m.onnx.data").stat().st_size == 8192
    x = np.ones((1, 4), np.float32)
    wanted = run(write_bytes(small()), {"x": x})[0]
    np.testing.assert_array_equal(run(str(path), {"x": x})[0], wanted)
    np.testing.assert_array_equal(load(path).find("w").const, small().find("w").const)


def large() -> Graph:
    """2.2 GiB of weights that no memory holds until somebody reads them."""
    graph = Graph("large")
    graph.inputs = [Value("x", DType.F32, (1, 1))]
    y = graph.inputs[0]
    for i in range(3):
        w = Value(f"w{i}", const=np.zeros((1, 200_000_000), np.float32))
        y = graph.add("Add", [y, w], name=f"add{i}").output
    graph.outputs = [y]
    return graph


def test_a_message_holds_no_2_gib(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="protobuf"):
        write_bytes(large())
    with pytest.raises(UsageError, match="2 GiB"):
        write_onnx(large(), tmp_path / "m.onnx", external=False)
    assert not list(tmp_path.iterdir())


@pytest.mark.hours
def test_more_than_2_gib_of_weights_lie_beside_the_model(tmp_path: Path) -> None:
    path = write_onnx(large(), tmp_path / "m.onnx")
    assert path.stat().st_size < 1000
    page = 4096  # each weight begins at one, so that it can be mapped
    to_page = -800_000_000 % page
    assert (tmp_path / "m.onnx.data").stat().st_size == 3 * 800_000_000 + 2 * to_page
    assert load(path).find("w2").const.shape == (1, 200_000_000)


def test_two_values_of_one_name_stay_apart() -> None:
    graph = small()
    twin = graph.add("Relu", [graph.outputs[0]], outputs=[Value("x")], name="mm")
    graph.outputs = [twin.output]
    infer_types(graph)
    model = onnx.load_from_string(write_bytes(graph))
    onnx.checker.check_model(model, full_check=True)
    assert len({n.name for n in model.graph.node}) == 2


def test_what_onnx_lacks_is_read_back_from_its_domain(rng) -> None:
    graph = Graph("own")
    graph.inputs = [Value("x", DType.F32, (1, 2, 7, 7))]
    node = graph.add("AdaptivePool", graph.inputs, {"output_size": [3, 3]}, name="pool")
    graph.outputs = [node.output]
    written = write_bytes(graph)
    assert onnx.load_from_string(written).graph.node[0].domain == "lite_engine"
    x = rng.standard_normal((1, 2, 7, 7)).astype(np.float32)
    back = read_bytes(written).nodes[0]
    np.testing.assert_array_equal(run_node(back, [x])[0], run_node(node, [x])[0])


@pytest.mark.parametrize(("dtype", "opset"), [(DType.U4, 21), (DType.I4, 21), (DType.I2, 25)])
def test_numbers_of_a_few_bits_share_bytes(dtype: DType, opset: int) -> None:
    low, high = (0, 16) if dtype is DType.U4 else (-8, 8) if dtype is DType.I4 else (-2, 2)
    q = np.arange(low, high)[: high - low - 1].astype(dtype.np)  # an odd number of them
    graph = Graph("bits")
    graph.inputs = [Value("x", DType.F32, (1,))]
    w = Value("w", dtype, const=q)
    real = graph.add("DequantizeLinear", [w, graph.constant(np.float32(0.5))], name="dq")
    graph.outputs = [graph.add("Add", [graph.inputs[0], real.output]).output]
    infer_types(graph)
    written = write_bytes(graph)
    proto = onnx.load_from_string(written)
    assert proto.opset_import[0].version == opset
    stored = next(t for t in proto.graph.initializer if t.name == "w")
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(stored).astype(np.int64), q)
    np.testing.assert_array_equal(read_bytes(written).find("w").const, q)


def test_an_opset_without_the_operator_is_refused() -> None:
    graph = Graph("new")
    graph.inputs = [Value("x", DType.F32, (2, 3))]
    graph.outputs = [graph.add("CumProd", [graph.inputs[0], graph.constant(1)]).output]
    with pytest.raises(UsageError, match="CumProd needs opset 26, not 13"):
        write_bytes(graph, opset=13)
    with pytest.raises(UsageError, match="between 11 and 28"):
        write_bytes(graph, opset=9)
    assert onnx.load_from_string(write_bytes(graph)).opset_import[0].version == 26
