"""Older operator forms keep their meaning: onnxruntime runs the old form, we the new one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lite_engine.backends.reference import run_graph
from lite_engine.errors import UnsupportedOperatorError
from lite_engine.exporters.onnx import write_bytes
from lite_engine.importers import onnx as importer
from lite_engine.ir import Graph, verify

onnx = pytest.importorskip("onnx", reason="pip install onnx")
ort = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
from onnx import helper  # noqa: E402

RNG = np.random.default_rng(3)


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


X = f32(2, 3, 4, 5)
ROIS = np.float32([[0, 0, 4, 3], [1, 1, 4.5, 2]])
REGIONS = {"output_height": 2, "output_width": 3, "spatial_scale": 0.8}
GRID = RNG.uniform(-1.2, 1.2, (2, 3, 2, 2)).astype(np.float32)
#: opset, operator, inputs, number of outputs, attributes, operators after import
CASES = {
    "clip-6": (7, "Clip", [X], 1, {"min": -0.5, "max": 0.7}, ["Clip"]),
    "slice-1": (
        9, "Slice", [X], 1, {"axes": [1, 3], "starts": [0, -4], "ends": [2, 99]}, ["Slice"],
    ),
    "slice-1-no-axes": (9, "Slice", [X], 1, {"starts": [1, 1], "ends": [2, 3]}, ["Slice"]),
    "pad-2": (10, "Pad", [X], 1, {"pads": [0, 0, 1, 2, 0, 0, 3, 0], "value": 1.5}, ["Pad"]),
    "pad-2-reflect": (
        10, "Pad", [X], 1, {"pads": [0, 0, 1, 2, 0, 0, 1, 0], "mode": "reflect"}, ["Pad"],
    ),
    "squeeze-1": (12, "Squeeze", [f32(2, 1, 3, 1)], 1, {"axes": [1, 3]}, ["Squeeze"]),
    "unsqueeze-1": (12, "Unsqueeze", [X], 1, {"axes": [0, 3]}, ["Unsqueeze"]),
    "reduce-sum-1": (12, "ReduceSum", [X], 1, {"axes": [1, -1], "keepdims": 0}, ["ReduceSum"]),
    "reduce-max-1": (11, "ReduceMax", [X], 1, {"axes": [2]}, ["ReduceMax"]),
    "split-2": (12, "Split", [X], 2, {"axis": 3, "split": [2, 3]}, ["Split"]),
    "split-2-even": (12, "Split", [X], 2, {"axis": 2}, ["Split"]),
    "top-k-1": (9, "TopK", [X], 2, {"axis": 3, "k": 2}, ["TopK"]),
    "softmax-11": (11, "Softmax", [X], 1, {"axis": 1}, ["Shape", "Flatten", "Softmax", "Reshape"]),
    "softmax-11-last": (11, "Softmax", [X], 1, {"axis": 3}, ["Softmax"]),
    "softmax-11-1x1": (11, "Softmax", [f32(2, 7, 1, 1)], 1, {}, ["Softmax"]),
    "log-softmax-11": (
        11, "LogSoftmax", [X], 1, {"axis": 2}, ["Shape", "Flatten", "LogSoftmax", "Reshape"],
    ),
    "upsample-7": (7, "Upsample", [X], 1, {"scales": [1.0, 1.0, 2.0, 3.0]}, ["Resize"]),
    "upsample-7-linear": (
        7, "Upsample", [X], 1, {"scales": [1.0, 1.0, 2.0, 2.0], "mode": "linear"}, ["Resize"],
    ),
    "upsample-9": (9, "Upsample", [X, np.float32([1, 1, 2, 2])], 1, {}, ["Resize"]),
    "resize-10": (10, "Resize", [X, np.float32([1, 1, 0.5, 2])], 1, {}, ["Resize"]),
    "resize-10-linear": (
        10, "Resize", [X, np.float32([1, 1, 2, 0.6])], 1, {"mode": "linear"}, ["Resize"],
    ),
    "batch-norm-7": (
        7, "BatchNormalization", [X, f32(3), f32(3), f32(3), np.abs(f32(3))], 1, {},
        ["BatchNormalization"],
    ),
    "dropout-7": (7, "Dropout", [X], 1, {"ratio": 0.4}, ["Dropout"]),
    "dropout-10": (10, "Dropout", [X], 1, {"ratio": 0.4}, ["Dropout"]),
    "scatter-9": (
        10, "Scatter", [X, np.zeros((1, 3, 4, 5), np.int64), f32(1, 3, 4, 5)], 1, {"axis": 0},
        ["ScatterElements"],
    ),
    "cast-6": (7, "Cast", [X], 1, {"to": 7}, ["Cast"]),
    "hardmax-11": (
        11, "Hardmax", [X], 1, {"axis": 2}, ["Shape", "Flatten", "Hardmax", "Reshape"],
    ),
    "dft-17": (17, "DFT", [f32(1, 8, 6, 1)], 1, {"axis": 2, "onesided": 1}, ["DFT"]),
    "roi-align-10": (10, "RoiAlign", [X, ROIS, np.arange(2)], 1, REGIONS, ["RoiAlign"]),
    "roi-align-16": (16, "RoiAlign", [X, ROIS, np.arange(2)], 1, REGIONS, ["RoiAlign"]),
    "grid-sample-16": (16, "GridSample", [X, GRID], 1, {}, ["GridSample"]),
    "grid-sample-16-cubic": (
        16, "GridSample", [X, GRID], 1, {"mode": "bicubic", "align_corners": 1}, ["GridSample"],
    ),
    "group-norm-18": (
        18, "GroupNormalization", [f32(2, 6, 3), f32(3), f32(3)], 1, {"num_groups": 3},
        ["Gather", "Gather", "GroupNormalization"],
    ),
}  # fmt: skip


def model(
    opset: int, op: str, inputs: list[np.ndarray], outputs: int, attrs: dict[str, Any]
) -> bytes:
    names = [f"i{k}" for k in range(len(inputs))]
    node = helper.make_node(op, names, [f"o{k}" for k in range(outputs)], **attrs)
    code = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        [node],
        op,
        [helper.make_tensor_value_info(n, code(a.dtype), a.shape) for n, a in zip(names, inputs)],
        [helper.make_empty_tensor_value_info(f"o{k}") for k in range(outputs)],
    )
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=7).SerializeToString()


@pytest.mark.parametrize("name", CASES)
def test_means_the_same(name: str) -> None:
    opset, op, inputs, outputs, attrs, becomes = CASES[name]
    data = model(opset, op, inputs, outputs, attrs)
    graph = importer.read_bytes(data)
    verify(graph)
    assert [n.op for n in graph.nodes] == becomes
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(data, options, ["CPUExecutionProvider"])
    theirs = session.run(None, {f"i{k}": a for k, a in enumerate(inputs)})
    written = ort.InferenceSession(write_bytes(graph), options, ["CPUExecutionProvider"])
    again = written.run(None, {f"i{k}": a for k, a in enumerate(inputs)})
    for made in (run_graph(graph, inputs), again):
        for got, wanted in zip(made, theirs, strict=False):
            assert got.dtype == wanted.dtype and got.shape == wanted.shape
            np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def read(opset: int, op: str, inputs: list[np.ndarray], **attrs: Any) -> Graph:
    return importer.read_bytes(model(opset, op, inputs, 1, attrs))


def test_axis_of_old_broadcasting() -> None:
    bias = f32(3)
    (y,) = run_graph(read(6, "Add", [X, bias], broadcast=1, axis=1), [X, bias])
    np.testing.assert_array_equal(y, X + bias[:, None, None])


def test_slope_per_channel() -> None:
    slope = f32(3)
    (y,) = run_graph(read(6, "PRelu", [X, slope]), [X, slope])
    np.testing.assert_array_equal(y, np.where(X < 0, X * slope[:, None, None], X))


def test_training_form_says_what_to_do() -> None:
    inputs = [X, f32(3), f32(3), f32(3), np.abs(f32(3))]
    with pytest.raises(UnsupportedOperatorError, match="opset 9"):
        read(8, "BatchNormalization", inputs, spatial=0)


def test_scans_over_batches(rng) -> None:
    """Scan-8: run as onnxruntime does, backwards too, but no lengths, and no ONNX file of it."""
    info, f32 = helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    nodes = [helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Exp", ["t"], ["y"])]
    ends = [info("t", f32, [4]), info("y", f32, [4])]
    body = helper.make_graph(nodes, "b", [info("s", f32, [4]), info("x", f32, [4])], ends)
    arrays = {"s": rng.standard_normal((2, 4)), "x": rng.standard_normal((2, 3, 4))}
    feeds = {name: a.astype(np.float32) for name, a in arrays.items()}
    for lengths in ("", "n"):
        scan = helper.make_node("Scan", [lengths, "s", "x"], ["t", "y"], name="scan", body=body,
                                num_scan_inputs=1, directions=[1])  # fmt: skip
        inputs = [info(n, f32, a.shape) for n, a in feeds.items()]
        inputs += [info("n", onnx.TensorProto.INT64, [2])] if lengths else []
        graph = helper.make_graph([scan], "g", inputs, [info(n, f32, None) for n in "ty"])
        opsets = [helper.make_opsetid("", 8)]
        data = helper.make_model(graph, opset_imports=opsets, ir_version=7).SerializeToString()
        if lengths:
            with pytest.raises(UnsupportedOperatorError, match="scan: Scan-8 with lengths"):
                importer.read_bytes(data)
            continue
        read_back = importer.read_bytes(data)
        theirs = ort.InferenceSession(data).run(None, feeds)
        for got, wanted in zip(run_graph(read_back, list(feeds.values())), theirs, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-5)
        with pytest.raises(UnsupportedOperatorError, match="scan: ONNX has no Scan over batches"):
            write_bytes(read_back)


def test_foreign_operator_keeps_its_domain() -> None:
    node = helper.make_node("Magic", ["x"], ["y"], domain="my.own", power=3)
    info = [helper.make_tensor_value_info(n, 1, [2]) for n in "xy"]
    graph = helper.make_graph([node], "g", info[:1], info[1:])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("my.own", 1)]
    data = helper.make_model(graph, opset_imports=opsets).SerializeToString()
    (node,) = importer.read_bytes(data).nodes
    assert node.op == "my.own::Magic"
    assert node.attrs == {"power": 3}
    assert node.output.shape == (2,)
