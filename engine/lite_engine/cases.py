"""Calls of a kernel: nodes for which the planner may choose it, with their inputs and results."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .errors import ShapeError
from .ir import DType, Graph, Node, Value, format_shape
from .ops import KernelRef, Sample, get_op, infer_outputs, run_node, samples
from .ops._samples import Bf16
from .plan import PRECISION, kernels_for

#: So many element types of a kernel get every sample, of the others one in so many.
_WHOLE, _PART = 3, 4


@dataclass
class Case:
    """One node that a kernel can run. `inputs` are the arrays of its inputs that are not constant,
    `wanted` what the reference gives."""

    kernel: KernelRef
    precision: str
    graph: Graph
    inputs: list[np.ndarray]
    wanted: list[np.ndarray]
    #: whether the planner takes this kernel when nothing else is asked for
    is_first: bool = True

    @property
    def node(self) -> Node:
        return self.graph.nodes[0]

    def __str__(self) -> str:
        """`x f32[1×3×5×7], w const f32[8×3×3×3], pads=[1, 1, 1, 1]`"""
        op = get_op(self.node.op)
        given = [
            f"{op.input_name(i)} {'const ' if v.is_const else ''}{v.dtype}[{format_shape(v.shape)}]"
            for i, v in enumerate(self.node.inputs)
            if v is not None
        ]
        given += [f"{k}={v}" for k, v in self.node.attrs.items() if not isinstance(v, list)]
        lists = [(k, v) for k, v in self.node.attrs.items() if isinstance(v, list)]
        given += [f"{k}={v if len(v) < 9 else f'{len(v)} numbers'}" for k, v in lists]
        return f"{self.precision} {', '.join(given)}"


def kernels_of(op: str, backend: str) -> list[KernelRef]:
    return [k for k in get_op(op).kernels if k.backend == backend]


def cases(kernel: KernelRef, every: int = 1) -> Iterator[Case]:
    """Samples of the operator that the kernel takes: of each of its element types, in fp16 and bf16
    where it has them, with constant and with computed inputs. With `every` one of so many, and each
    element type begins with another one; the first case of every element type is there."""
    for number, (dtype, precision) in enumerate(_numbers(kernel)):
        step = every if number < _WHOLE else max(every, _PART)
        made = _of_type(kernel, dtype, precision)
        first = next(made, None)
        if first is not None:
            yield first
            yield from itertools.islice(made, number % step, None, step)


def _of_type(kernel: KernelRef, dtype: DType, precision: str) -> Iterator[Case]:
    for sample in samples(get_op(kernel.op), dtype):
        for constant in _constants(kernel.op, sample):
            case = _case(kernel, sample, constant, precision)
            if case is not None:
                yield case


def _numbers(kernel: KernelRef) -> Iterator[tuple[DType, str]]:
    """Element types of the first input and the precisions to plan them in."""
    names = {dtype: name for name, dtype in reversed(PRECISION.items())}
    if kernel.precision is not None:
        own = DType.BF16 if kernel.dtypes == {DType.BF16} else DType.F32
        yield own, names[kernel.precision]
        return
    for dtype in DType:
        if dtype in kernel.dtypes and not (kernel.backend == "opencl" and dtype is DType.F16):
            yield dtype, "fp32"
    if kernel.backend == "opencl" and {DType.F32, DType.F16} <= kernel.dtypes:
        yield DType.F32, "fp16"


def _constants(op: str, sample: Sample) -> Iterator[tuple[int, ...]]:
    if sample.constant is not None:
        yield sample.constant
        return
    many = range(1, len(sample.inputs))
    attributes = get_op(op).attr_inputs
    wanted = tuple(i for i in many if get_op(op).input_name(i) in attributes)
    yield from dict.fromkeys((tuple(many), wanted))


def _case(
    kernel: KernelRef, sample: Sample, constant: Sequence[int], precision: str
) -> Case | None:
    """None where the operator does not take such types, or the kernel not such a node."""
    graph, inputs = Graph("case"), []
    values: list[Value | None] = []
    for i, array in enumerate(sample.inputs):
        if array is None:
            values.append(None)
            continue
        given = _shortened(array) if precision == "fp16" else array
        dtype = DType.BF16 if isinstance(given, Bf16) else DType.of(given)
        given = np.asarray(given)
        value = Value(f"x{i}", dtype, given.shape, const=given if i in constant else None)
        values.append(value)
        if i not in constant:
            graph.inputs.append(value)
            inputs.append(given)
    node = graph.add(kernel.op, values, dict(sample.attrs), name="layer", outputs=sample.outputs)
    graph.outputs = list(node.outputs)
    try:
        infer_outputs(node, strict=True)
        arrays = [None if a is None else np.asarray(a) for a in _arrays(node, graph, inputs)]
        wanted = run_node(node, arrays)
    except ShapeError:
        return None
    types = [None if v is None else v.type for v in node.inputs]
    storage = DType.F16 if precision == "fp16" else DType.F32
    usable, _ = kernels_for(node, types, kernel.backend, storage, PRECISION[precision])
    if kernel not in usable or not all(v.type.is_static for v in node.outputs):
        return None
    return Case(kernel, precision, graph, inputs, wanted, kernel is usable[0])


def _arrays(node: Node, graph: Graph, inputs: Sequence[np.ndarray]) -> Iterator[np.ndarray | None]:
    given = {id(v): a for v, a in zip(graph.inputs, inputs)}
    for value in node.inputs:
        yield None if value is None else value.const if value.is_const else given[id(value)]


def _shortened(array: np.ndarray) -> np.ndarray:
    """float32 numbers that fp16 holds."""
    if array.dtype != np.float32:
        return array
    with np.errstate(over="ignore"):
        return array.astype(np.float16).astype(np.float32)
