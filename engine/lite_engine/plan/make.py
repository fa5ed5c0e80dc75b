"""Graph + input shapes + backend → Plan."""

from __future__ import annotations

from collections.abc import Mapping

from ..ir import DType, Graph, Shape
from ..ops import specialise
from .bands import mark_bands
from .lower import Lowering
from .memory import assign_offsets, reuse_in_place
from .model import Plan
from .storage import store_shorts
from .views import share_buffers

#: What a precision means: float32 values are computed in it; in fp16 they are stored in it too, in
#: bf16 where the steps around a value allow it (storage.py).
PRECISION = {"fp32": DType.F32, "fp16": DType.F16, "bf16": DType.BF16, "int8": DType.F32}


def make_plan(
    graph: Graph,
    backend: str,
    shapes: Mapping[str, Shape] | None = None,
    *,
    precision: str = "fp32",
    tuning: Mapping[str, str] | None = None,
    overrides: Mapping[str, str] | None = None,
    faults: Mapping[str, str] | None = None,
    refused: Mapping[str, str] | None = None,
) -> Plan:
    """Plans a graph for "cpu", "opencl" or "reference".

    `tuning` maps node names to kernels that were measured fastest, `overrides` node names to a
    backend or to a precision, `faults` node names to planted faults (tests and lessons), `refused`
    node names to the reason why the backend did not run them, which sends them to the next one.
    Raises ShapeError, UnsupportedOperatorError.
    """
    fixed = specialise(graph, shapes)
    by_hand = dict(overrides or {})
    plan = Lowering(
        fixed,
        backend,
        number=PRECISION[precision],
        tuning=tuning,
        overrides={n: word for n, word in by_hand.items() if word not in PRECISION},
        numbers={n: PRECISION[word] for n, word in by_hand.items() if word in PRECISION},
        faults=faults,
        refused=refused,
    ).run()
    if backend == "cpu" and PRECISION[precision] is DType.BF16:
        store_shorts(plan)
    share_buffers(plan)
    mark_bands(plan)
    reuse_in_place(plan)
    assign_offsets(plan)
    return plan
