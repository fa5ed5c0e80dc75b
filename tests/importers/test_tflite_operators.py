"""TFLite operators where ONNX's of the same name differ: LiteRT's answers, to the bit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from lite_engine.importers import load
from lite_engine.passes import optimize_graph
from lite_engine.plan import make_plan
from lite_engine.runtime.execute import Execution

from tests.importers.litert_answers import outputs_of
from tests.importers.tiny_tflite import TinyModel
from tests.importers.wire import Num, Table

INF, NAN = float("inf"), float("nan")
RAMP = np.arange(1, 25, dtype=np.float32).reshape(3, 4, 2)
PAIR = np.array([[1, 2], [3, 4]], np.float32)
REAL = np.array([54.7, 1e10, -7.5, -7.5, -54.7, 6, 7], np.float32)
BY_REAL = np.array([0.1, 3, INF, 2, 0.1, -4, -INF], np.float32)
WHOLE = np.array([-7, 7, -1, -(2**31), 2**31 - 1, 6], np.int32)
THREE, MINUS_THREE = np.full(6, 3, np.int32), np.full(6, -3, np.int32)


@dataclass(frozen=True)
class Case:
    """One operator: its number, what is fed to it, its constants, and LiteRT's answer."""

    code: int
    feeds: list[np.ndarray]
    wanted: Any
    constants: tuple[np.ndarray, ...] = ()
    kind: int = 1
    options: Table | None = None

    def model(self) -> bytes:
        m, wanted = TinyModel(), self.answer
        inputs = [m.tensor(f"x{i}", x.dtype.name, x.shape) for i, x in enumerate(self.feeds)]
        constants = [m.tensor(f"c{i}", c.dtype.name, c.shape, c)
                     for i, c in enumerate(self.constants)]  # fmt: skip
        y = m.tensor("y", wanted.dtype.name, wanted.shape)
        m.op(self.code, inputs + constants, [y], self.options, kind=self.kind)
        return m.bytes(inputs, [y])

    @property
    def answer(self) -> np.ndarray:
        """In the type of the values that are chosen or computed."""
        of = {ONE_HOT: self.constants[-1:], GATHER: self.feeds}.get(self.code, self.feeds[-1:])
        return np.asarray(self.wanted, of[0].dtype)


SELECT, SELECT_V2, GATHER, ONE_HOT, ZEROS_LIKE, FLOOR_DIV, FLOOR_MOD = 64, 123, 36, 85, 93, 90, 95
STRIDED_SLICE = 45


def _cut(start: int, end: int, step: int, wanted: list[float]) -> Case:
    constants = tuple(np.array([n], np.int32) for n in (start, end, step))
    return Case(STRIDED_SLICE, [np.arange(5, dtype=np.float32)], wanted, constants, 32, Table())


CASES = {
    "rows": Case(SELECT, [np.array([True, False]), PAIR, -PAIR], [[1, 2], [-3, -4]]),
    "columns": Case(SELECT_V2, [np.array([True, False]), PAIR, -PAIR], [[1, -2], [3, -4]]),
    "zeros": Case(ZEROS_LIKE, [np.array([1, NAN, INF, -2], np.float32)], [0, 0, 0, 0]),
    "negative index": Case(
        ONE_HOT, [np.array([-1, 0, 2, 5], np.int32)],
        [[-1, -1, -1], [2, -1, -1], [-1, -1, 2], [-1, -1, -1]],
        (np.array(3, np.int32), np.array(2, np.float32), np.array(-1, np.float32)), 61,
        Table(_0=Num("i", -1)),
    ),
    "an index of each batch": Case(
        GATHER, [RAMP, np.array([1, 3, 0], np.int32)], [[3, 4], [15, 16], [17, 18]],
        kind=23, options=Table(_0=Num("i", 1), _1=Num("i", 1)),
    ),
    "float quotient": Case(
        FLOOR_DIV, [REAL, BY_REAL], [546, 3333333333, -0.0, -4, -547, -2, -0.0],
    ),
    "float remainder": Case(
        FLOOR_MOD, [REAL, BY_REAL],
        [np.float32(0.09999995), 1, INF, 0.5, np.float32(5.2154064e-08), -2, -INF],
    ),
    "quotient": Case(FLOOR_DIV, [WHOLE, THREE], [-3, 2, -1, -715827883, 715827882, 2]),
    "quotient by less": Case(FLOOR_DIV, [WHOLE, MINUS_THREE],
                             [2, -3, 0, 715827882, -715827883, -2]),
    "from before the axis": _cut(-10, -100, -1, []),
    "from just before the axis": _cut(-6, -100, -1, []),
    "from its first element": _cut(-5, -100, -1, [0]),
    "from behind the axis": _cut(10, -100, -2, [4, 2, 0]),
    "forward from before the axis": _cut(-10, 2, 1, [0, 1]),
    "remainder": Case(FLOOR_MOD, [WHOLE, THREE], [2, 1, 2, 1, 1, 0]),
    "remainder by less": Case(FLOOR_MOD, [WHOLE, MINUS_THREE], [-1, -2, -1, -2, -2, 0]),
}  # fmt: skip


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("name", CASES)
def test_answers(tmp_path, name: str, backend: str) -> None:
    case = CASES[name]
    (tmp_path / "model.tflite").write_bytes(case.model())
    graph = optimize_graph(load(tmp_path / "model.tflite"))
    (found,) = Execution(make_plan(graph, backend), threads=1).run(case.feeds)
    np.testing.assert_array_equal(found, case.answer, strict=True)


def _dense(rows: tuple[int, ...], quantized: bool, bias: bool) -> tuple[bytes, np.ndarray]:
    """A fully connected layer that keeps its input's axes."""
    rng, m = np.random.default_rng(3), TinyModel()
    weights = rng.integers(-100, 100, (3, 4))
    if quantized:
        x = m.tensor("x", "int8", (*rows, 4), scale=0.05, zero=-3)
        w = m.tensor("w", "int8", (3, 4), weights, scale=0.01)
        b = m.tensor("b", "int32", (3,), [100, -50, 20], scale=0.0005)
        y = m.tensor("y", "int8", (*rows, 3), scale=0.05, zero=2)
        data = rng.integers(-128, 128, (*rows, 4)).astype(np.int8)
    else:
        x, y = (m.tensor(n, "float32", (*rows, size)) for n, size in (("x", 4), ("y", 3)))
        w = m.tensor("w", "float32", (3, 4), weights * 0.01)
        b = m.tensor("b", "float32", (3,), [1, 2, 3])
        data = rng.standard_normal((*rows, 4)).astype(np.float32)
    m.op(9, [x, w, b if bias else -1], [y], Table(_2=Num("?", 1)), kind=8)
    return m.bytes([x], [y]), data


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize("rows", [(), (2,), (2, 3)])
def test_fully_connected_keeps_axes(
    tmp_path, rows: tuple[int, ...], quantized: bool, bias: bool
) -> None:
    pytest.importorskip("ai_edge_litert", reason="pip install ai-edge-litert")
    content, x = _dense(rows, quantized, bias)
    (wanted,) = outputs_of(content, [x])
    (tmp_path / "model.tflite").write_bytes(content)
    graph = optimize_graph(load(tmp_path / "model.tflite"))
    (found,) = Execution(make_plan(graph, "cpu"), threads=1).run([x])
    assert found.shape == wanted.shape == (*rows, 3)
    np.testing.assert_allclose(found, wanted, rtol=0 if quantized else 1e-5)


@pytest.mark.parametrize("name", CASES)
def test_litert_answers_the_same(name: str) -> None:
    pytest.importorskip("ai_edge_litert", reason="pip install ai-edge-litert")
    case = CASES[name]
    (found,) = outputs_of(case.model(), case.feeds)
    np.testing.assert_array_equal(found, case.answer, strict=True)
