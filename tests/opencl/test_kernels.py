"""Every OpenCL kernel of the registry against the NumPy reference, at sizes around its tiles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from lite_engine.backends.opencl.cases import cases
from lite_engine.backends.opencl.cases.examples import examples
from lite_engine.backends.opencl.cases.graphs import ints, single, some
from lite_engine.backends.opencl.cases.integers import integers
from lite_engine.backends.opencl.options import function_options
from lite_engine.backends.opencl.profile import BUILD_OPTIONS
from lite_engine.backends.opencl.programs import KERNELS
from lite_engine.backends.opencl.registry import BUILDERS
from lite_engine.ir import DType, Graph
from lite_engine.ops import all_kernels
from lite_engine.ops.activation import unary_params
from lite_engine.plan import make_plan
from lite_engine.runtime.execute import Execution

from tests.native.tiny import reference
from tests.opencl.tiny import check, device

pytestmark = [pytest.mark.opencl, pytest.mark.usefixtures("unoptimized")]

#: A function of one number is tested with all others in one program, below.
EXAMPLES = {
    **examples(),
    **integers(),
    **{
        kernel: cases()[kernel]
        for kernel in ("cast", "gather_elements", "gather_nd", "grid_sample", "matmul_nbits")
    },
}

#: Kernels whose sums go over the same numbers as the definition's: NaN comes out where it has it.
NAN_IN_PLACE = ("unary", "binary", "pool", "reduce", "arg", "softmax", "conv2d_depthwise", "rnn")


def chosen() -> Iterator[Any]:
    """Large heads of attention apart: simulated, they take a quarter of the time of all."""
    for kernel, graphs in EXAMPLES.items():
        large = [g for g in graphs if kernel == "attention" and g.inputs[0].type.dims[-1] > 60]
        yield pytest.param(kernel, [g for g in graphs if g not in large], id=kernel)
        if large:
            yield pytest.param(kernel, large, id=f"{kernel}-large")


@pytest.mark.parametrize("kernel, graphs", list(chosen()))
def test_kernel(kernel: str, graphs: list[Graph]) -> None:
    for graph in graphs:
        plan = check(graph, special=kernel in NAN_IN_PLACE).plan
        assert kernel in {s.kernel for s in plan.steps}, (kernel, [s.kernel for s in plan.steps])


HALVES = [k for k in all_kernels("opencl") if DType.F16 in k.dtypes]


@pytest.mark.parametrize("kernel", sorted({k.name for k in HALVES} - {"cast"}))
def test_kernel_with_half_storage(kernel: str) -> None:
    for graph in EXAMPLES[kernel][:2]:
        check(graph, precision="fp16")


@pytest.mark.parametrize("tiles", [False, True])
def test_rows_of_halves_begin_anywhere(tiles: bool) -> None:
    """Rows of 41 numbers: a driver may not read vectors of them as if they were aligned."""
    shape, scale = (5, 41), some(41)
    for graph in (
        single("Softmax", shape),
        single("ReduceMax", shape, ints(1)),
        single("LayerNormalization", shape, scale, scale),
        single("Add", (3, *shape), some(*shape)),
    ):
        check(graph, tiles=tiles, precision="fp16")


def test_every_kernel_of_the_registry_has_a_case() -> None:
    """Each operator with each of its kernels; the kernel is the one that the plan takes."""
    found = {
        (step.op, step.kernel)
        for kernel, graphs in cases().items()
        for graph in graphs
        for step in make_plan(graph, "opencl").steps
        if step.kernel == kernel and step.backend == "opencl"
    }
    assert {(k.op, k.name) for k in all_kernels("opencl")} <= found
    assert {k.name for k in all_kernels("opencl")} | set(BUILDERS) == set(cases())


@pytest.mark.parametrize("op, exact", [("Expm1", np.expm1), ("Log1p", np.log1p)])
def test_functions_near_zero(op: str, exact: Any) -> None:
    """e^x − 1 and ln(1 + x), where the steps one by one are 7 % off."""
    x = np.geomspace(1e-6, 1e-3, 99, dtype=np.float32)
    execution = Execution(make_plan(single(op, x.shape), "opencl"), threads=1)
    (y,) = execution.run([x])
    np.testing.assert_allclose(y, exact(x.astype(np.float64)), rtol=5e-7)  # 4 ulp (OpenCL 7.4)


@pytest.mark.parametrize("width", [1, 8])
def test_functions_of_nan_and_infinities(width: int) -> None:
    """Every function of one number, in one program, of numbers and of vectors."""
    numbers = [0, -0.0, np.inf, -np.inf, np.nan, 88, -88, 0.4, -0.4, 3, -3, 7, -7, 2, -1, 1]
    x = np.array(numbers, np.float32)
    names = [k.op for k in all_kernels("opencl") if k.name == "unary"]
    body = ""
    for row, name in enumerate(names):
        options = function_options(name, unary_params(name, {}))
        absent = "\n#ifndef ACT_A\n#define ACT_A 0.0f\n#endif"  # as common.h says
        body += f"\n#undef ACT\n#undef ACT_A\n#undef ACT_B\n{options}{absent}\nROW({row})"
    row = "for (int i = 0; i < 16; i += V) { FV v = LDV(x, i); STV(y, 16 * (k) + i, ACT(v)); }"
    source = f"#define V {width}\n" + (KERNELS / "common.h").read_text()
    source += f"#define ROW(k) {row}\n"
    source += f"kernel void functions(global const float *x, global float *y) {{{body}\n}}"
    own = device()
    program = own.cl.Program(own.context, source).build(list(BUILD_OPTIONS))
    got = np.empty((len(names), x.size), np.float32)
    y = own.buffer(got.nbytes)
    program.functions(own.queue, (1,), None, own.buffer(x.nbytes, x), y)
    own.cl.enqueue_copy(own.queue, got, y)
    for name, found in zip(names, got):
        with np.errstate(all="ignore"):
            (wanted,) = reference(name, [x], {})
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-6, err_msg=name)


MORE_GROUPS = (
    "pool", "copy_concat", "softmax", "lp_norm", "unary", "resize", "instance_norm", "lstm",
    "gru", "rnn",
)  # fmt: skip


@pytest.mark.parametrize(
    "kernel",
    [
        "reduce", "binary", "copy_relayout", "layer_norm", "conv2d_depthwise", "matmul",
        *(pytest.param(name, marks=pytest.mark.hours) for name in MORE_GROUPS),
    ],
)  # fmt: skip
def test_group_sizes_of_gpus(kernel: str) -> None:
    for graph in EXAMPLES[kernel]:
        check(graph, tiles=True)
