"""Slices of one axis by every kind of number, against onnxruntime."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from lite_engine.importers import onnx as importer
from lite_engine.passes import optimize_graph
from lite_engine.plan import make_plan
from lite_engine.runtime.execute import Execution

onnx = pytest.importorskip("onnx", reason="pip install onnx")
ort = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

X = np.arange(5, dtype=np.float32)
#: Before the axis, at its ends, within, behind it.
NUMBERS = (-100, -10, -6, -5, -1, 0, 3, 4, 5, 10)


def _slices(numbers: list[tuple[int, int]], step: int) -> bytes:
    """A slice of x (5,), an output, for each (start, end)."""
    nodes, constants = [], []
    for i, (start, end) in enumerate(numbers):
        names = [f"{name}{i}" for name in ("start", "end", "axis", "step")]
        nodes.append(helper.make_node("Slice", ["x", *names], [f"y{i}"]))
        constants += [numpy_helper.from_array(np.array([n]), name)
                      for name, n in zip(names, (start, end, 0, step))]  # fmt: skip
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, X.shape)
    outputs = [helper.make_empty_tensor_value_info(f"y{i}") for i in range(len(numbers))]
    graph = helper.make_graph(nodes, "slices", [x], outputs, constants)
    opsets = [helper.make_opsetid("", 13)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


@pytest.mark.cpu
@pytest.mark.parametrize("step", [-2, -1, 1, 3])
@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_starts_and_ends(backend: str, step: int) -> None:
    """Backwards, a start before the axis is its first element, unlike in Python."""
    numbers = list(product(NUMBERS, NUMBERS))
    model = _slices(numbers, step)
    wanted = ort.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": X})
    graph = optimize_graph(importer.read_bytes(model))
    found = Execution(make_plan(graph, backend), threads=1).run([X])
    for (start, end), got, want in zip(numbers, found, wanted, strict=True):
        np.testing.assert_array_equal(got, want, f"{start}:{end}:{step}", strict=True)
