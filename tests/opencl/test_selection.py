"""Truths on the device: the masks of language models are made there."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.backends.opencl.cases import cases
from lite_engine.ir import DType, Graph, Value
from lite_engine.plan import make_plan
from lite_engine.runtime.execute import Execution

from tests.opencl.tiny import check

pytestmark = [pytest.mark.opencl, pytest.mark.usefixtures("unoptimized")]

KERNELS = ("where", "judge", "gather_nd")


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_case_with_group_sizes_of_gpus(kernel: str) -> None:
    for graph in cases()[kernel]:
        plan = check(graph, tiles=True).plan
        assert kernel in {s.kernel for s in plan.steps}


def test_numbers_of_half_size() -> None:
    for graph in cases()["where"][:4]:
        check(graph, precision="fp16")


def mask(rows: int, columns: int) -> Graph:
    """As PyTorch exports BERT's: the columns that a mask of integers names, with a lowest number
    where a row or a column is left out."""
    graph = Graph("mask")
    given = Value("given", DType.I64, (1, columns))
    graph.inputs = [given]
    places = np.stack([np.zeros(columns, np.int64), np.arange(columns)], 1)
    named = graph.add("Cast", [given], {"to": DType.BOOL}).output
    spread = graph.constant(places.reshape(1, 1, 1, columns, 2))
    named = graph.add("GatherND", [named, spread]).output
    kept = graph.constant((np.arange(rows) % 3 != 1).reshape(1, 1, rows, 1))
    both = graph.add("And", [kept, named]).output
    numbers = [graph.constant(np.array(n, np.float32)) for n in (0, -6e4)]
    graph.outputs = [graph.add("Where", [both, *numbers], name="chosen").output]
    return graph


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("rows, columns", [(5, 7), (3, 16), (1, 1)])
def test_a_mask_is_made_on_the_device(precision: str, rows: int, columns: int) -> None:
    plan = make_plan(mask(rows, columns), "opencl", precision=precision)
    assert {s.backend for s in plan.steps} == {"opencl"}
    given = (np.arange(columns)[None] % 4 != 2).astype(np.int64) * 3
    (found,) = Execution(plan, threads=1).run([given])
    kept = (np.arange(rows) % 3 != 1)[:, None] & (given[0] != 0)
    exact = np.float16(-6e4) if precision == "fp16" else np.float32(-6e4)
    np.testing.assert_array_equal(found[0, 0], np.where(kept, 0, np.float32(exact)))


def test_places_outside_hold_zeros() -> None:
    """Computed indices, which nothing checks beforehand."""
    graph = Graph("outside")
    x, at = Value("x", DType.F32, (3, 4)), Value("at", DType.I32, (5, 2))
    graph.inputs = [x, at]
    graph.outputs = [graph.add("GatherND", [x, at]).output]
    numbers = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
    places = np.array([[0, 0], [-1, -1], [3, 0], [0, -5], [2, 1]], np.int32)
    (found,) = Predictor(graph, "opencl").run({"x": numbers, "at": places}).values()
    np.testing.assert_array_equal(found, [1, 12, 0, 0, 10])
