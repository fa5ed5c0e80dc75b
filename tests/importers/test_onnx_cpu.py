"""The ONNX backend cases on the CPU backend: each case whose operator has a native kernel agrees.

Axes, shapes and the like, which the cases give as inputs, become constants here, as they are in
models: only then is there something to plan.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("onnx", reason="pip install onnx")
from lite_engine.errors import LiteError
from lite_engine.importers import onnx as importer
from lite_engine.ir import Graph
from lite_engine.ops import find_op
from lite_engine.runtime import Predictor

from tests.importers import onnx_cases

#: Cases that float kernels answer within another tolerance than the recorded one.
LISTED = {line.split(": ", 1)[0] for line in onnx_cases.unsupported()}


def freeze(graph: Graph, feeds: dict[str, np.ndarray]) -> None:
    """Inputs that kernels want as attributes, and quantisation parameters, become constants."""
    for value in list(graph.inputs):
        wanted = all(
            (op := find_op(n.op)) is not None
            and op.input_name(n.inputs.index(value)) in (*op.attr_inputs, *_WEIGHTS)
            for n in value.readers
        )
        if value.readers and wanted and value.name in feeds:
            value.const = feeds.pop(value.name)
            value.shape = value.const.shape
            graph.inputs.remove(value)


_WEIGHTS = ("w", "scale", "zero_point", "mean", "var")


@pytest.mark.cpu
@pytest.mark.slow
@pytest.mark.parametrize("kind", onnx_cases.KINDS)
def test_cases(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    broken, native, total = [], 0, 0
    for case in onnx_cases.cases(kind):
        if case.name in LISTED or onnx_cases.scope(case):
            continue
        total += 1
        try:
            native += run(case)
        except (LiteError, AssertionError, KeyError, TypeError, ValueError) as error:
            lines = " ".join(s.strip() for s in str(error).splitlines()[:8])
            broken.append(f"{case.name}: {type(error).__name__}: {lines}")
    with capsys.disabled():
        print(f"\nONNX {kind} cases on the CPU: {native} of {total} run native kernels")
    assert not broken, "\n".join(broken)


def run(case: object) -> bool:
    """Compares one case; True when a native kernel computed something of it."""
    graph = importer.read_bytes(onnx_cases.model_bytes(case))
    inputs, wanted = next(onnx_cases.data_sets(case))
    feeds = {v.name: onnx_cases.plain(a) for v, a in zip(graph.inputs, inputs, strict=False)}
    freeze(graph, feeds)
    predictor = Predictor(graph, "x86", threads=1)
    outputs = predictor.run(feeds)
    got = [np.asarray(outputs[v.name]) for v in graph.outputs]
    onnx_cases.compare(case, got, wanted, [str(v.dtype) for v in graph.outputs])
    plan = predictor.plan({name: array.shape for name, array in feeds.items()})
    return any(step.backend == "cpu" for step in plan.steps)
