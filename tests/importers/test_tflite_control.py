"""WHILE and IF of TFLite whose condition depends on data: LiteRT's answers, in floats and bytes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from lite_engine.errors import ModelFormatError
from lite_engine.importers import load
from lite_engine.passes import optimize_graph
from lite_engine.plan import make_plan
from lite_engine.runtime.execute import Execution
from lite_engine.runtime.support import model_info

from tests.importers.litert_answers import outputs_of
from tests.importers.tiny_tflite import TinyModel
from tests.importers.wire import Num, Table

SHAPE = (2, 3)
IF, WHILE, ADD, MUL, SUM, LESS, RELU = 118, 119, 0, 18, 74, 58, 19
BRANCHES = Table(_0=Num("i", 1), _1=Num("i", 2))
LIMIT = 40.0


def _sum(m: TinyModel, x: int) -> int:
    axes = m.tensor("axes", "int32", (2,), [0, 1])
    total = m.tensor("total", "float32", ())
    m.op(SUM, [x, axes], [total], Table(), kind=27)
    return total


def _below(m: TinyModel, x: int, limit: float) -> int:
    """Whether the sum of x is below a limit."""
    verdict = m.tensor("below", "bool", ())
    m.op(LESS, [_sum(m, x), m.tensor("limit", "float32", (), limit)], [verdict], Table(), kind=42)
    return verdict


def _scaled(m: TinyModel, x: int, factor: float, more: float) -> int:
    a, b = m.tensor("a", "float32", SHAPE), m.tensor("b", "float32", SHAPE)
    m.op(MUL, [x, m.tensor("factor", "float32", (), factor)], [a], Table(), kind=21)
    m.op(ADD, [a, m.tensor("more", "float32", (), more)], [b], Table(), kind=11)
    return b


def _state(m: TinyModel) -> tuple[int, int]:
    return m.tensor("x", "float32", SHAPE), m.tensor("n", "int32", ())


def growing() -> bytes:
    """while sum(x) < LIMIT: x, n = 1.5 · x + 0.25, n + 1"""
    m = TinyModel()
    x = m.tensor("x", "float32", SHAPE)
    start = m.tensor("start", "int32", (), 0)
    y, n = _state(m)
    m.op(WHILE, [x, start], [y, n], BRANCHES, kind=93)
    m.subgraph([x], [y, n])
    x, n = _state(m)
    m.subgraph([x, n], [_below(m, x, LIMIT)])
    x, n = _state(m)
    after = m.tensor("after", "int32", ())
    m.op(ADD, [n, m.tensor("one", "int32", (), 1)], [after], Table(), kind=11)
    m.subgraph([x, n], [_scaled(m, x, 1.5, 0.25), after])
    return m.file()


def choice() -> bytes:
    """relu(2 · x + 1 if sum(x) < 0 else x)"""
    m = TinyModel()
    x = m.tensor("x", "float32", SHAPE)
    picked, y = m.tensor("picked", "float32", SHAPE), m.tensor("y", "float32", SHAPE)
    m.op(IF, [_below(m, x, 0.0), x], [picked], BRANCHES, kind=92)
    m.op(RELU, [picked], [y])
    m.subgraph([x], [y])
    x = m.tensor("x", "float32", SHAPE)
    m.subgraph([x], [_scaled(m, x, 2.0, 1.0)])
    x = m.tensor("x", "float32", SHAPE)
    m.subgraph([x], [x])
    return m.file()


def in_bytes() -> bytes:
    """while b: q, b = 2 · q, false on integers whose scale the loop keeps"""
    m = TinyModel()

    def q(name: str) -> int:
        return m.tensor(name, "int8", SHAPE, scale=0.5, zero=3)

    x, go = q("x"), m.tensor("go", "bool", ())
    y, end = q("y"), m.tensor("end", "bool", ())
    m.op(WHILE, [x, go], [y, end], BRANCHES, kind=93)
    m.subgraph([x, go], [y])
    x, go = q("x"), m.tensor("go", "bool", ())
    m.subgraph([x, go], [go])
    x, go = q("x"), m.tensor("go", "bool", ())
    twice = q("twice")
    m.op(ADD, [x, x], [twice], Table(), kind=11)
    m.subgraph([x, go], [twice, m.tensor("stop", "bool", (), False)])
    return m.file()


def _run(tmp_path, content: bytes, feeds: list[np.ndarray]) -> list[np.ndarray]:
    (tmp_path / "model.tflite").write_bytes(content)
    graph = optimize_graph(load(tmp_path / "model.tflite"))
    return Execution(make_plan(graph, "cpu"), threads=1).run(feeds)


FLOATS = np.array([[0.5, -1.25, 3.0], [0.75, 0.0, 0.125]], np.float32)
BYTES = np.array([[-90, 20, 127], [3, 0, -128]], np.int8)


@pytest.mark.parametrize(
    ("make", "feeds"),
    [
        (growing, [FLOATS]),
        (growing, [FLOATS + 20]),
        (choice, [FLOATS]),
        (choice, [FLOATS - 1]),
        (in_bytes, [BYTES, np.array(True)]),
        (in_bytes, [BYTES, np.array(False)]),
    ],
)
def test_litert_answers_the_same(
    tmp_path, make: Callable[[], bytes], feeds: list[np.ndarray]
) -> None:
    pytest.importorskip("ai_edge_litert", reason="pip install ai-edge-litert")
    content = make()
    found, wanted = _run(tmp_path, content, feeds), outputs_of(content, feeds)
    assert len(found) == len(wanted)
    for y, want in zip(found, wanted):
        np.testing.assert_array_equal(y, want)


def test_steps_are_those_of_the_rule(tmp_path) -> None:
    x, steps = FLOATS.copy(), 0
    while x.sum() < LIMIT:
        x, steps = x * np.float32(1.5) + np.float32(0.25), steps + 1
    found, n = _run(tmp_path, growing(), [FLOATS])
    np.testing.assert_allclose(found, x, rtol=1e-6)
    assert int(n) == steps > 3


def test_info_names_what_runs_in_python(tmp_path) -> None:
    for make, op in ((growing, "Loop"), (choice, "If")):
        (tmp_path / "model.tflite").write_bytes(make())
        graph = load(tmp_path / "model.tflite")
        assert op in {n.op for n in graph.nodes}
        rows = {s.op: s for s in model_info(graph, "model.tflite", ("x86",)).support}
        assert rows[op].backend == "reference"
        assert "NumPy" in rows[op].fix and "cannot run it" in rows[op].fix


def test_branches_of_different_length(tmp_path) -> None:
    m = TinyModel()
    x, y = m.tensor("x", "float32", SHAPE), m.tensor("y", "float32", SHAPE)
    m.op(IF, [_below(m, x, 0.0), x], [y], BRANCHES, kind=92)
    m.subgraph([x], [y])
    for outputs in (1, 2):
        x = m.tensor("x", "float32", SHAPE)
        m.subgraph([x], [x] * outputs)
    (tmp_path / "model.tflite").write_bytes(m.file())
    with pytest.raises(ModelFormatError, match="its branches have 1 and 2 outputs"):
        load(tmp_path / "model.tflite")
