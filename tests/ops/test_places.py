"""Indices out of range: constant ones are refused, computed ones read zeros and write nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.errors import ShapeError
from lite_engine.ir import DType, Graph, Value
from lite_engine.ops import infer_types
from lite_engine.runtime.choice import host_target

X = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
UPDATES = np.array([[10, 20]], np.float32)
# operator, attributes, indices, whether it takes updates, what comes out
CASES: list[tuple[str, dict[str, Any], Any, bool, Any]] = [
    ("Gather", {"axis": 1}, [0, 3, -1, -4], False, [[1, 0, 3, 0], [4, 0, 6, 0]]),
    ("Gather", {"axis": 0}, [2, 1], False, [[0, 0, 0], [4, 5, 6]]),
    ("GatherElements", {"axis": 1}, [[3, -3]], False, [[0, 1]]),
    ("GatherND", {}, [[0, 3], [1, 2], [-3, 0]], False, [0, 6, 0]),
    ("GatherND", {}, [[2], [1]], False, [[0, 0, 0], [4, 5, 6]]),
    ("ScatterElements", {"axis": 1}, [[3, -1]], True, [[1, 2, 20], [4, 5, 6]]),
    ("ScatterND", {}, [[[0, 3], [1, -3]]], True, [[1, 2, 3], [20, 5, 6]]),
]


def _graph(kind: str, attrs: dict[str, Any], indices: Any, updates: bool, constant: bool) -> Graph:
    graph, places = Graph("g"), np.array(indices, np.int64)
    x = Value("x", DType.F32, X.shape)
    i = Value("i", DType.I64, places.shape, **({"const": places} if constant else {}))
    graph.inputs = [x] if constant else [x, i]
    more = [Value("u", const=UPDATES)] if updates else []
    graph.outputs = [graph.add(kind, [x, i, *more], attrs, name="it").output]
    return graph


@pytest.mark.parametrize(
    "backend", ["reference", "cpu", pytest.param("opencl", marks=pytest.mark.opencl)]
)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
def test_computed_indices(case: tuple[str, dict[str, Any], Any, bool, Any], backend: str) -> None:
    kind, attrs, indices, updates, wanted = case
    graph = _graph(kind, attrs, indices, updates, constant=False)
    infer_types(graph)
    backend = host_target() if backend == "cpu" else backend
    run = Predictor(graph, backend).run({"x": X, "i": np.array(indices, np.int64)})
    (y,) = run.values()
    assert y.dtype == np.float32
    assert y.tolist() == wanted


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
def test_constant_indices(case: tuple[str, dict[str, Any], Any, bool, Any]) -> None:
    kind, attrs, indices, updates, _ = case
    graph = _graph(kind, attrs, indices, updates, constant=True)
    with pytest.raises(ShapeError, match=r"^it \(.*index -?\d is outside an axis of \d elements"):
        infer_types(graph, strict=True)


@pytest.mark.parametrize("kind", ["Add", "Mul", "Mod", "Max", "Sum"])
def test_operands_of_different_types(kind: str) -> None:
    graph = Graph("g")
    graph.inputs = [Value("a", DType.I8, (2,)), Value("b", DType.F64, (2,))]
    graph.outputs = [graph.add(kind, list(graph.inputs), {}, name="it").output]
    with pytest.raises(
        ShapeError, match="operands have different types, i8 and f64; cast one of them"
    ):
        infer_types(graph, strict=True)
