"""What the TFLite importer says of rounding is no attribute of ONNX."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.exporters.onnx import write_onnx
from lite_engine.importers import load
from lite_engine.passes import optimize_graph

from tests.importers.tflite_rounding import CASES, recorded

onnxruntime = pytest.importorskip("onnxruntime")


NAMES = [
    "ADD int8 map 0.0173", "SUB uint8 8 0.25", "MUL int8 map 0.1", "QUANTIZE float32",
    "CONV_2D int16", "CONV_2D RELU6 int16", "FULLY_CONNECTED int16", "ADD int16", "MUL int16",
    "AVERAGE_POOL_2D int16", "MEAN int16", "SUM int16",
]  # fmt: skip


@pytest.mark.parametrize("optimized", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_onnxruntime_runs_the_file_within_a_step(tmp_path, name, optimized):
    content, arrays = CASES[name]()
    (tmp_path / "m.tflite").write_bytes(content)
    graph = load(tmp_path / "m.tflite")
    write_onnx(optimize_graph(graph) if optimized else graph, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {i.name: x for i, x in zip(session.get_inputs(), arrays)})
    steps = found.astype(int).ravel() - recorded()[name].view(found.dtype).astype(int)
    assert np.abs(steps).max() <= 1
