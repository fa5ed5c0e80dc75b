"""`.nb` files that we write: layout, kernels, precision; what readers make of them, and
the real Paddle-Lite (`real_paddle_lite`)."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pytest
from lite_engine.errors import UnsupportedOperatorError, UsageError
from lite_engine.importers import load
from lite_engine.importers.naive_buffer.container import read_nb
from lite_engine.ir import DType, Graph, Value
from lite_engine.model_file.naive_buffer import flatbuffer as fb
from lite_engine.model_file.naive_buffer import write_nb
from lite_engine.ops import infer_types

from tests.importers import real_paddle_lite
from tests.importers.golden_runs import relative_error, run_graph
from tests.importers.paddle_files import small_network

MODELS = Path(os.environ.get("LITE_TEST_MODELS", ""))
KERNEL = "__@kernel_type_attr@__"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return load(small_network().save(tmp_path))


def program(path: Path):
    return read_nb(memoryview(path.read_bytes()))


def kernels(path: Path) -> list[str]:
    return [op.attrs[KERNEL] for op in program(path).blocks[0].ops]


def test_flatbuffers_read_back() -> None:
    from lite_engine.importers._flatbuffers import root

    data = fb.encode(
        fb.Table({0: "näme", 1: fb.Scalar("q", -5), 3: fb.Numbers("q", [1, 2]), 4: ["a", "b"],
                  5: [fb.Table({0: fb.Scalar("?", True)})], 6: fb.Raw(b"xyz"), 7: None})
    )  # fmt: skip
    table = root(memoryview(data))
    assert table.text(0) == "näme" and table.number(1, "q") == -5 and not table.has(2)
    assert table.array(3, "i8").tolist() == [1, 2] and table.texts(4) == ["a", "b"]
    assert table.tables(5)[0].number(0, "?") and bytes(table.bytes(6)) == b"xyz"
    assert not table.has(7)


def test_round_trip(graph: Graph, tmp_path: Path) -> None:
    path = write_nb(graph, tmp_path / "m.nb", targets=["x86"])
    x = np.random.default_rng(0).normal(size=(1, 3, 8, 8)).astype(np.float32)
    (wanted,) = run_graph(graph, {"x": x}).values()
    (found,) = run_graph(load(path), {"x": x}).values()
    assert relative_error(found, wanted) < 1e-5
    assert not list(tmp_path.glob(".m.nb*"))


WINDOWS = {
    "conv": ("Conv", {"pads": [0, 1, 2, 3], "strides": [2, 1]}),
    "deconv": ("ConvTranspose", {"pads": [0, 1, 1, 0], "strides": [2, 2]}),
    "maximum": ("MaxPool", {"pads": [0, 1, 1, 2], "strides": [1, 2]}),
    "counted": ("AveragePool", {"pads": [1, 0, 1, 2], "count_include_pad": 1}),
    "not counted": ("AveragePool", {"pads": [1, 0, 1, 2]}),
    "rounded up": ("AveragePool", {"strides": [2, 2], "ceil_mode": 1}),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows_round_trip(name: str, tmp_path: Path) -> None:
    """Padding of each side by itself, and what an average divides by."""
    op, attrs = WINDOWS[name]
    graph = Graph("g", [Value("x", DType.F32, (1, 4, 8, 9))])
    inputs, attrs = [graph.inputs[0]], {**attrs, "kernel_shape": [3, 3]}
    rng = np.random.default_rng(1)
    if "Conv" in op:
        inputs.append(graph.constant(rng.normal(size=(4, 4, 3, 3)).astype(np.float32)))
    graph.outputs = [graph.add(op, inputs, attrs, name="y").output]
    infer_types(graph)
    x = {"x": rng.normal(size=(1, 4, 8, 9)).astype(np.float32)}
    (wanted,) = run_graph(graph, x).values()
    (found,) = run_graph(load(write_nb(graph, tmp_path / "m.nb")), x).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "op",
    ["Square", "Rsqrt", "Log1p", "Expm1", "Log2", "Log10", "LogSigmoid", "Swish", "TanhShrink"],
)
def test_composed_functions_round_trip(op: str, tmp_path: Path) -> None:
    """Paddle-Lite has no operator of that name, or none that every version has."""
    graph = Graph("g", [Value("x", DType.F32, (2, 9))])
    graph.outputs = [graph.add(op, [graph.inputs[0]], {}, name="y").output]
    infer_types(graph)
    x = {"x": np.linspace(0.5, 4, 18, dtype=np.float32).reshape(2, 9)}
    (wanted,) = run_graph(graph, x).values()
    (found,) = run_graph(load(write_nb(graph, tmp_path / "m.nb")), x).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize("op", ["SquaredDifference", "NotEqual"])
def test_composed_functions_of_two_round_trip(op: str, tmp_path: Path) -> None:
    shapes = {"a": (1, 9), "b": (2, 9)}
    graph = Graph("g", [Value(n, DType.F32, s) for n, s in shapes.items()])
    graph.outputs = [graph.add(op, list(graph.inputs), {}, name="y").output]
    infer_types(graph)
    x = {n: np.arange(np.prod(s), dtype=np.float32).reshape(s) for n, s in shapes.items()}
    (wanted,) = run_graph(graph, x).values()
    (found,) = run_graph(load(write_nb(graph, tmp_path / "m.nb")), x).values()
    np.testing.assert_array_equal(found, wanted)


def test_same_graph_same_bytes(graph: Graph, tmp_path: Path) -> None:
    one = write_nb(graph, tmp_path / "a.nb", targets=["arm"]).read_bytes()
    assert one == write_nb(graph, tmp_path / "b.nb", targets=["arm"]).read_bytes()


def test_header_and_order(graph: Graph, tmp_path: Path) -> None:
    path = write_nb(graph, tmp_path / "m.nb")
    meta, version = struct.unpack_from("<H16s", path.read_bytes())
    assert meta == 2 and version == b"v2.13-rc" + b"\0" * 8
    for op in program(path).blocks[0].ops:
        for names in (list(op.attrs), list(op.inputs), list(op.outputs)):
            assert names == sorted(names, key=str.encode)


def test_kernels_of_targets(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "m.nb"
    x86 = kernels(write_nb(graph, path, targets=["x86", "arm"]))
    assert "conv2d/def/2/1/1" in x86 and "softmax/def/2/1/1" in x86
    assert "conv2d/def/4/1/1" in kernels(write_nb(graph, path, targets=["arm"]))
    image = kernels(write_nb(graph, path, targets=["opencl", "arm"]))
    assert image[:4] == [
        "feed/def/1/4/2", "io_copy/host_to_device/5/4/2", "layout/NCHW_to_ImageDefault/5/4/4",
        "conv2d/image2d/5/5/4",
    ]  # fmt: skip
    assert image[-3:] == [
        "layout/ImageFolder_to_NCHW/5/4/1", "io_copy/device_to_host/5/4/2", "fetch/def/1/4/2",
    ]  # fmt: skip


def test_half_precision_on_arm(graph: Graph, tmp_path: Path) -> None:
    path = write_nb(graph, tmp_path / "m.nb", targets=["arm"], fp16=True)
    assert "conv2d/def/4/5/1" in kernels(path) and "calib/fp32_to_fp16/4/5/1" in kernels(path)
    conv = next(o for o in program(path).blocks[0].ops if o.type == "conv2d")
    assert conv.attrs[f"{conv.inputs['Filter'][0]}_fp16"] == "fp16"


@pytest.mark.parametrize("bits, dtype, limit", [(8, DType.I8, 0.05), (16, DType.I16, 2e-4)])
def test_weight_only(graph: Graph, tmp_path: Path, bits: int, dtype: DType, limit: float) -> None:
    path = write_nb(graph, tmp_path / "m.nb", weight_bits=bits)
    read = load(path)
    weights = [n.inputs[0] for n in read.nodes if n.op == "DequantizeLinear"]
    assert len(weights) == 2 and all(w.dtype is dtype for w in weights)
    x = np.random.default_rng(0).normal(size=(1, 3, 8, 8)).astype(np.float32)
    (wanted,) = run_graph(graph, {"x": x}).values()
    (found,) = run_graph(read, {"x": x}).values()
    assert relative_error(found, wanted) < limit


def test_meta_version_1(graph: Graph, tmp_path: Path) -> None:
    """The older container: the same topology, all weights in one FlatBuffer."""
    path = write_nb(graph, tmp_path / "m.nb")
    data = path.read_bytes()
    (size,) = struct.unpack_from("<Q", data, 18)
    read = program(path)
    tables = [
        fb.Table({1: name, 2: fb.Scalar("B", 1), 3: fb.Table({
            2: fb.Numbers("q", a.shape), 3: fb.Scalar("i", 5), 4: fb.Raw(a.tobytes())})})
        for name, a in sorted(read.params.items())
    ]  # fmt: skip
    combined = fb.encode(fb.Table({0: tables}))
    path.write_bytes(struct.pack("<H", 1) + data[2 : 26 + size] + combined)
    again = load(path)
    assert again.metadata["paddle_lite"]["meta_version"] == 1
    x = np.ones((1, 3, 8, 8), np.float32)
    (wanted,) = run_graph(graph, {"x": x}).values()
    (found,) = run_graph(again, {"x": x}).values()
    assert relative_error(found, wanted) < 1e-5


def test_stored_integers_are_written_again(graph: Graph, tmp_path: Path) -> None:
    small = load(write_nb(graph, tmp_path / "q.nb", weight_bits=8))
    path = write_nb(small, tmp_path / "f.nb", weight_bits=8)
    one, two = (program(p).params for p in (tmp_path / "q.nb", path))
    kept = [a for a in one.values() if a.dtype == np.int8]
    assert kept and all(any(np.array_equal(a, b) for b in two.values()) for a in kept)


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    graph = Graph("g")
    x = Value("x", DType.F32, (1, 4, 4))
    graph.inputs = [x]
    graph.outputs = [graph.add("Det", [x], name="the_determinant").output]
    infer_types(graph)
    with pytest.raises(UnsupportedOperatorError, match="Det"):
        write_nb(graph, tmp_path / "m.nb")
    assert not list(tmp_path.iterdir())


def test_usage(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="choose from arm, x86, opencl"):
        write_nb(graph, tmp_path / "m.nb", targets=["npu"])
    with pytest.raises(UsageError, match="8 or 16 bits, got 4"):
        write_nb(graph, tmp_path / "m.nb", weight_bits=4)


# ---- in the real Paddle-Lite


def check(folder: Path, graph: Graph, shapes: dict[str, tuple[int, ...]], **options) -> None:
    """Paddle-Lite's output of the written file against our reference of the same file."""
    limit = options.pop("limit", 1e-4)
    path = write_nb(graph, folder / "m.nb", targets=["x86"], **options)
    rng = np.random.default_rng(0)
    feeds = {n: rng.normal(size=s).astype(np.float32) for n, s in shapes.items()}
    wanted = run_graph(load(path, shapes=shapes) if options else graph, feeds)
    for found, y in zip(real_paddle_lite.run(folder, path, feeds), wanted.values(), strict=True):
        assert relative_error(found.reshape(y.shape), y) <= limit


@pytest.mark.parametrize("bits", [None, 8, 16])
def test_paddle_lite_runs_it(graph: Graph, tmp_path: Path, bits: int | None) -> None:
    options = {"weight_bits": bits} if bits else {}
    check(tmp_path, graph, {"x": (1, 3, 8, 8)}, **options)


@pytest.mark.models
@pytest.mark.parametrize("name, shape", [
    ("ppocr_v2_cls/inference.pdmodel", (1, 3, 48, 192)),
    ("ppocr_v3_det_ch/inference.pdmodel", (1, 3, 160, 160)),
    ("paddle/shufflenet_v2_imagenet_fluid", (1, 3, 224, 224)),
    ("ppocr_v2_cls/model.onnx", (1, 3, 48, 192)),
    ("ppocr_v3_det_ch/model.onnx", (1, 3, 640, 640)),
    ("ultraface_rfb320/version-RFB-320.onnx", (1, 3, 240, 320)),
    ("lprnet_plate_ocr/DERIVED_lprnet.onnx", (1, 3, 24, 94)),
    ("nb_made/tiny_paddle/model.pdmodel", (1, 3, 32, 32)),
    ("onnx/DERIVED_mobilenet_v1_0.25_224_tf2onnx.onnx", (1, 3, 224, 224)),
    ("onnx/mnist_8.onnx", (1, 1, 28, 28)),
])  # fmt: skip
def test_paddle_lite_runs_models(tmp_path: Path, name: str, shape: tuple[int, ...]) -> None:
    graph = load(MODELS / name)
    feeds = {graph.inputs[0].name: shape}
    check(tmp_path, load(MODELS / name, shapes=feeds), feeds)


@pytest.mark.slow
@pytest.mark.parametrize("name", [
    "mobilenet_v1", "mobilenet_v2", "mobilenet_v3_small", "resnet18", "resnet50", "squeezenet",
    "shufflenet_v2", "yolov3_tiny", "unet", "ocr_detector", "ocr_recogniser", "efficientnet_b0",
    "ghostnet",
])  # fmt: skip
def test_paddle_lite_runs_the_zoo(tmp_path: Path, name: str) -> None:
    zoo = pytest.importorskip("benchmarks.zoo", reason="the zoo is in the source tree only")
    real_paddle_lite.needed()
    (tmp_path / "m.onnx").write_bytes(zoo.build(name).SerializeToString())
    graph = load(tmp_path / "m.onnx")
    check(tmp_path, graph, {v.name: v.shape for v in graph.inputs})
