"""The ONNX backend cases on the CPU backend: each case whose operator has a native kernel agrees.

Axes, shapes and the like, which the cases give as inputs, become constants here, as they are in
models: only then is there something to plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="pip install onnx")
from lite_engine.errors import LiteError
from lite_engine.importers import onnx as importer
from lite_engine.ir import Graph
from lite_engine.ops import find_op
from lite_engine.runtime import Predictor

from tests.importers import onnx_cases

#: Cases that the references do not pass either.
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


#: Each emulated run starts a process: this many cases of one operator are enough there.
ARM_CASES_PER_OPERATOR = 3


@pytest.mark.cpu
@pytest.mark.slow
@pytest.mark.parametrize("kind", onnx_cases.KINDS)
def test_x86(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = list(_wanted(kind))
    native, broken = _run_all(wanted, "x86")
    with capsys.disabled():
        print(f"\nONNX {kind} cases on x86: {native} of {len(wanted)} run native kernels")
    assert not broken, "\n".join(broken)


@pytest.mark.arm
@pytest.mark.slow
def test_arm(capsys: pytest.CaptureFixture[str]) -> None:
    chosen, seen = [], Counter()
    for case in _wanted("node"):
        op = _native_operator(case)
        seen[op] += 1
        if op and seen[op] <= ARM_CASES_PER_OPERATOR:
            chosen.append(case)
    _, broken = _run_all(chosen, "arm")
    with capsys.disabled():
        print(
            f"\nONNX cases on arm: {len(chosen) - len(broken)} of {len(chosen)} pass,"
            f" of {len([op for op in seen if op])} operators"
        )
    assert not broken, "\n".join(broken)


def _wanted(kind: str) -> Iterator[Any]:
    for case in onnx_cases.cases(kind):
        if case.name not in LISTED and not onnx_cases.scope(case):
            yield case


def _native_operator(case: Any) -> str:
    """The operator of a one-node case that some native kernel takes, else empty."""
    graph = importer.read_bytes(onnx_cases.model_bytes(case))
    op = find_op(graph.nodes[0].op) if len(graph.nodes) == 1 else None
    return op.name if op is not None and any(k.backend == "cpu" for k in op.kernels) else ""


def _run_all(cases: list[Any], backend: str) -> tuple[int, list[str]]:
    """How many ran native kernels, and what went wrong."""
    native, broken = 0, []
    for case in cases:
        try:
            native += run(case, backend)
        except (LiteError, AssertionError, KeyError, TypeError, ValueError) as error:
            lines = " ".join(s.strip() for s in str(error).splitlines()[:8])
            broken.append(f"{case.name}: {type(error).__name__}: {lines}")
    return native, broken


def run(case: Any, backend: str) -> bool:
    """Compares one case; True when a native kernel computed something of it."""
    graph = importer.read_bytes(onnx_cases.model_bytes(case))
    inputs, wanted = next(onnx_cases.data_sets(case))
    feeds = {v.name: onnx_cases.plain(a) for v, a in zip(graph.inputs, inputs, strict=False)}
    freeze(graph, feeds)
    predictor = Predictor(graph, backend, threads=1)
    outputs = predictor.run(feeds)
    got = [np.asarray(outputs[v.name]) for v in graph.outputs]
    onnx_cases.compare(case, got, wanted, [str(v.dtype) for v in graph.outputs])
    plan = predictor.plan({name: array.shape for name, array in feeds.items()})
    return any(step.backend == "cpu" for step in plan.steps)
