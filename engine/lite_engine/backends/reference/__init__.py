"""The NumPy backend: every operator's reference, the oracle of tests and of `lite compare`."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import ShapeError
from ...ir import Graph, Node, Value, captured, format_shape
from ...ops import get_op
from ...plan import Plan, Segment, Step
from ...plan.faults import apply_fault
from .. import Backend, Executable, StepTime, Usability


class ReferenceBackend(Backend):
    """Runs steps with the operators' own references on the host."""

    name = "reference"

    def usability(self) -> Usability:
        return Usability(True, tr("NumPy is always available"))

    def compile(self, segment: Segment, *, threads: int) -> ReferenceExecutable:
        return ReferenceExecutable(segment)


class ReferenceExecutable(Executable):
    """Interprets a segment step by step. `threads` do not apply: NumPy decides."""

    def __init__(self, segment: Segment) -> None:
        self.plan = segment.plan
        self._wanted: set[int] = set()
        self._taps: dict[int, np.ndarray] = {}
        self._times: list[StepTime] = []

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        arrays: dict[int, np.ndarray] = {}
        for index, array in zip(self.plan.inputs, inputs, strict=True):
            arrays[index] = array
        self._times, begin = [], time.perf_counter_ns()
        for step in self.plan.steps:
            start = time.perf_counter_ns()
            results = run_step(self.plan, step, arrays)
            end = time.perf_counter_ns()
            for index, result in zip(step.outputs, results, strict=False):
                if index >= 0:
                    arrays[index] = result
                    if index in self._wanted:
                        self._taps[index] = result
            self._times.append(StepTime(start - begin, end - begin, f"numpy_{step.op}"))
        return [read_tensor(self.plan, i, arrays) for i in self.plan.outputs]

    def times(self) -> list[StepTime]:
        return self._times

    def tap(self, tensors: Sequence[int]) -> None:
        self._wanted, self._taps = set(tensors), {}

    def tapped(self, tensor: int) -> np.ndarray:
        return self._taps[tensor]

    def memory(self) -> dict[str, int]:
        return {}


def run_step(plan: Plan, step: Step, arrays: Mapping[int, np.ndarray]) -> list[np.ndarray]:
    """A step's outputs, logical (those of a Relayout physical), from the plan's tensors by number,
    in physical order.

    Raises ShapeError when a result does not fit its tensor.
    """
    tensors = [None if i < 0 else plan.tensors[i] for i in step.inputs]
    given = [None if t is None else read_tensor(plan, t.index, arrays) for t in tensors]
    if step.op == "Relayout":
        assert given[0] is not None
        return [np.ascontiguousarray(given[0].transpose(step.attrs["perm"]))]
    if step.op == "Cast" and step.node is None:
        assert given[0] is not None
        return [given[0].astype(plan.tensors[step.outputs[0]].dtype.np)]
    if step.op == "Fault":
        assert given[0] is not None
        return [apply_fault(step.attrs["kind"], given[0], step.attrs["bias"])]
    assert step.node is not None
    logical = [
        a if t is None or a is None or not t.shape_known else t.to_logical(a)
        for t, a in zip(tensors, given)
    ]
    # what subgraphs capture follows the node's own inputs
    count = len(step.node.inputs)
    logical += [None] * (count - len(logical))
    for i, value in enumerate(step.node.inputs):
        if logical[i] is None and value is not None:
            logical[i] = value.const  # an input that other backends have as an attribute
    outer = {id(v): a for v, a in zip(captured(step.node), logical[count:]) if a is not None}
    own = zip(step.node.inputs, logical)
    outer |= {id(v): a for v, a in own if v is not None and a is not None}
    if any(a is not None and not a.size for a in logical):
        made = [plan.tensors[i] for i in step.outputs if i >= 0]
        nothing = all(t.shape_known and not t.size for t in made)
        if nothing and len(made) == len(step.outputs):  # formulas divide by sizes
            return [t.to_logical(np.empty(t.dims, t.dtype.np)) for t in made]
    results = evaluate(step.node, logical[:count], outer)
    for index, result in zip(step.outputs, results, strict=False):
        tensor = plan.tensors[index]
        if index >= 0 and tensor.shape_known and result.size != tensor.size:
            raise ShapeError(
                tr(
                    "{step} ({op}) gives {shape}, expected {size} elements: its inputs do not fit",
                    step=step.name,
                    op=step.op,
                    shape=format_shape(result.shape),
                    size=tensor.size,
                )
            )
    return [np.ascontiguousarray(r) if r.ndim else r for r in results]


def read_tensor(plan: Plan, index: int, arrays: Mapping[int, np.ndarray]) -> np.ndarray:
    """An array in physical order; aliases reinterpret their root's bytes."""
    tensor = plan.tensors[index]
    if index in arrays:
        return arrays[index]
    if tensor.data is not None:
        return tensor.data
    assert tensor.alias_of is not None
    return read_tensor(plan, tensor.alias_of, arrays).reshape(tensor.dims)


def evaluate(
    node: Node, inputs: Sequence[np.ndarray | None], outer: Mapping[int, np.ndarray]
) -> list[np.ndarray]:
    """One node on logical arrays. `outer` holds values that subgraphs capture, by id()."""
    op = get_op(node.op, node.name)
    if not any(True for _ in node.subgraphs()):
        return op.run(node, inputs)
    from ...ops.control_flow import run_control_flow

    def run_subgraph(graph: Graph, feeds: Sequence[np.ndarray]) -> list[np.ndarray]:
        return run_graph(graph, feeds, outer)

    return run_control_flow(node, inputs, run_subgraph)


def run_graph(
    graph: Graph,
    feeds: Sequence[np.ndarray],
    outer: Mapping[int, np.ndarray] | None = None,
    taps: dict[str, np.ndarray] | None = None,
) -> list[np.ndarray]:
    """A graph on arrays in the order of its inputs, without a plan; `taps` receives every value."""
    known: dict[int, np.ndarray] = dict(outer or {})
    known.update({id(v): np.asarray(a) for v, a in zip(graph.inputs, feeds, strict=True)})

    def read(value: Value | None) -> np.ndarray | None:
        if value is None:
            return None
        return value.const if value.const is not None else known[id(value)]

    for node in graph.nodes:
        results = evaluate(node, [read(v) for v in node.inputs], known)
        for value, result in zip(node.outputs, results, strict=False):
            known[id(value)] = result
            if taps is not None:
                taps[value.name] = result
    return [np.asarray(read(v)) for v in graph.outputs]
