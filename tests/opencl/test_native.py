"""The native executor and pyopencl run the same launches: their results are equal bit by bit."""

from __future__ import annotations

import pytest
from lite_engine import settings
from lite_engine.backends.cpu.native import NativeProgram
from lite_engine.backends.opencl.cases import cases
from lite_engine.backends.opencl.cases.examples import examples
from lite_engine.backends.opencl.native_plan import encode_opencl
from lite_engine.backends.opencl.registry import Target
from lite_engine.ir import Graph
from lite_engine.plan import make_plan
from lite_engine.plan.program import WeightTable
from lite_engine.runtime.execute import Execution
from lite_engine.runtime.inputs import random_feeds

from tests.opencl import tiny

pytestmark = [pytest.mark.opencl, pytest.mark.cpu]


def native_program(graph: Graph, precision: str, target: Target, **options: object) -> tuple:
    """(the plan, its program on this machine's device)."""
    plan = make_plan(graph, "opencl", precision=precision)
    table = WeightTable()
    data = encode_opencl(plan, target, table)
    cache = settings.cache_dir()
    return plan, NativeProgram(data, table.blobs, threads=2, cache_dir=cache, **options)


def check(graph: Graph, precision: str = "fp32") -> None:
    plan, program = native_program(graph, precision, tiny.device().target)
    feeds = list(random_feeds(graph).values())
    wanted = Execution(plan, threads=2).run(feeds)
    given = [plan.tensors[i].to_physical(a) for i, a in zip(plan.inputs, feeds, strict=True)]
    for _ in range(2):  # the second run finds what the first left in the buffers
        found = program.run(given)
        for index, x, y in zip(plan.outputs, found, wanted, strict=True):
            physical = plan.tensors[index].to_physical(y)
            assert x.tobytes() == physical.tobytes(), (graph.name, plan.tensors[index].name)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize(
    "kernel", ["conv2d", "copy_concat", "deconv2d", "lstm", "matmul", "resize"]
)
def test_kernels(kernel: str, precision: str) -> None:
    for graph in examples()[kernel][:2]:
        check(graph, precision)


@pytest.mark.sweep
@pytest.mark.parametrize("kernel", cases())
def test_all_kernels(kernel: str) -> None:
    """Cases of one kernel differ in their options above all, which the executor hands through."""
    graphs = cases()[kernel]
    check(graphs[len(graphs) // 2], "fp16")


@pytest.mark.hours
@pytest.mark.parametrize("kernel", cases())
def test_all_cases(kernel: str) -> None:
    for graph in cases()[kernel]:
        for precision in ("fp32", "fp16"):
            check(graph, precision)
