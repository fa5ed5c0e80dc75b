"""Cases for every kernel: small graphs whose plans reach each (operator, kernel) pair that the
registry has for OpenCL. The tests run them, compile what they become on any device, and
`lite doctor --check opencl` runs them on the device that is there.

Layers that need attributes or constants are written down (`examples.py`); an operator that needs
none, like a function of one number, is in the registry, and its case is made from its entry.
"""

from __future__ import annotations

from functools import lru_cache

from ....ir import DType, Graph
from ....ops import all_kernels, get_op
from ....ops._core import KernelRef
from .examples import examples, of_every_size
from .examples import large as large_floats
from .graphs import LAYER, cast, pair, single
from .integers import integers, large_integers

#: Where nothing asks for another: rows of whole vectors.
_SHAPE = (5, 32)


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


def _cases_of(ref: KernelRef) -> list[Graph]:
    """An operator on nothing but its required inputs, two at most; Cast to every type it knows."""
    op = get_op(ref.op)
    if ref.op == "Cast":
        return [cast(dtype) for dtype in DType if dtype in ref.dtypes]
    needed = [name for name in op.inputs if not name.endswith("?")]
    if len(needed) > 1 or op.is_variadic:
        return [pair(ref.op, _SHAPE, _SHAPE)]
    return [single(ref.op, _SHAPE)]


__all__ = ["LAYER", "cases", "large"]
