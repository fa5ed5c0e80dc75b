"""Cases for every kernel: small graphs whose plans reach each (operator, kernel) pair that the
registry has for OpenCL. The tests run them, compile what they become on any device, and
`lite doctor --check opencl` runs them on the device that is there.

They come from the operators' own samples (`lite_engine.cases`); `examples.py` adds sizes around the
tiles of kernels that several operators share or that have many ways.
"""

from __future__ import annotations

from functools import lru_cache

from ....cases import Case
from ....cases import cases as samples_of
from ....ir import Graph
from ....ops import all_kernels
from ....ops._core import KernelRef
from .examples import examples, of_every_size
from .examples import large as large_floats
from .graphs import LAYER
from .integers import integers, large_integers

#: Of an operator without examples.
_MOST = 8


@lru_cache(maxsize=1)
def cases() -> dict[str, list[Graph]]:
    """Kernel → graphs of one layer each, called `LAYER`, that it computes."""
    found = {kernel: list(graphs) for kernel, graphs in (examples() | integers()).items()}
    for kernel, graph in of_every_size():
        found[kernel].append(graph)
    there = {(graph.node(LAYER).op, kernel) for kernel, gs in found.items() for graph in gs}
    for ref in all_kernels("opencl"):
        if (ref.op, ref.name) not in there:
            found.setdefault(ref.name, []).extend(_cases_of(ref))
    return found


def large() -> dict[str, list[Graph]]:
    """By kernel: layers that fill every tile, aligned and not."""
    return large_floats() | large_integers()


def _cases_of(kernel: KernelRef) -> list[Graph]:
    """Samples that the planner gives this kernel, of every element type."""
    made = [case for case in samples_of(kernel) if _suits(case)]
    step = -(-len(made) // (1 if kernel.code else _MOST))  # others test what operators share
    first: dict[object, Case] = {}
    for case in made:
        node = case.node
        first.setdefault(("read", case.graph.inputs[0].dtype), case)
        first.setdefault(("written", node.outputs[0].dtype), case)
    kept = {id(case) for case in (*first.values(), *made[:: step or 1])}
    return [case.graph for case in made if id(case) in kept]


def _suits(case: Case) -> bool:
    """Whether the planner takes its kernel before others, and there is something to compute."""
    values = [v for v in (*case.node.inputs, *case.node.outputs) if v is not None]
    filled = all(v.type.size for v in values)
    return case.is_first and case.precision == "fp32" and filled and bool(case.graph.inputs)


__all__ = ["LAYER", "cases", "large"]
