"""Shape inference with nothing known but ranks says nothing that the run contradicts."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx", reason="pip install onnx")
from lite_engine.backends.reference import run_graph
from lite_engine.errors import LiteError
from lite_engine.importers import onnx as importer
from lite_engine.ops import infer_types

from tests.importers import onnx_cases

LISTED = {line.split(": ", 1)[0] for line in onnx_cases.unsupported()}


def test_symbols_agree_with_runs() -> None:
    wrong, blind = [], set()
    for case in onnx_cases.cases("node"):
        if case.name in LISTED or onnx_cases.scope(case) or case.name.endswith("_expanded"):
            continue
        graph = importer.read_bytes(onnx_cases.model_bytes(case))
        inputs, _ = next(onnx_cases.data_sets(case))
        for value in graph.inputs:
            if value.shape is not None:
                value.shape = tuple(f"{value.name}_{i}" for i in range(len(value.shape)))
        for node in graph.nodes:
            for value in node.outputs:
                value.dtype = value.shape = None
        try:
            infer_types(graph, strict=True)
        except LiteError:
            if not any(True for n in graph.nodes for _ in n.subgraphs()):
                blind.add(graph.nodes[-1].op)
            continue
        taps: dict = {}
        run_graph(graph, [onnx_cases.plain(a) for a in inputs[: len(graph.inputs)]], taps=taps)
        try:
            onnx_cases.check_types(graph, taps)
        except AssertionError as error:
            wrong.append(f"{case.name}: {error}")
    assert not wrong, "\n".join(wrong)
    assert not blind, f"infer nothing at all from symbolic shapes: {sorted(blind)}"
