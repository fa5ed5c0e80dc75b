"""Graph + input shapes + backend → Plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lite_messages import tr

from ..ir import DType, Graph, Node, Shape, TypeInfo
from ..ops import specialise
from ..ops.expand import expand_missing, has_kernels, is_ours, needs_float32
from .accelerate import Accelerator, share
from .bands import mark_bands
from .beyond_half import beyond_half
from .lower import Lowering
from .memory import assign_offsets, reuse_in_place
from .model import Plan
from .samples import mark_samples
from .select import FALLBACK, kernels_for
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
    accelerators: Sequence[Accelerator] = (),
    accelerate: bool = False,
    specialised: bool = False,
) -> Plan:
    """Plans a graph for "cpu", "opencl" or "reference".

    `tuning` maps node names to kernels that were measured fastest, `overrides` node names to a
    backend or to a precision, `faults` node names to planted faults (tests and lessons), `refused`
    node names to the reason why the backend did not run them, which sends them to the next one.
    With `accelerate` the first of the `accelerators` takes the sub-graphs where that is profitable
    and `precision` and `refused` are about it; all of them take the nodes that `overrides` names
    them for. A `specialised` graph is what `specialise` made for this plan alone, which changes it.
    Raises ShapeError, UnsupportedOperatorError.
    """
    fixed = graph if specialised else specialise(graph, shapes)
    wide: list[str] = []  # layers that keep float32
    if backend != "reference":

        def runs(node: Node, types: list[TypeInfo | None]) -> bool:
            if not is_ours(node) and (accelerate or (backend == "cpu" and has_kernels(node))):
                return True  # as it is, or nothing is gained by writing it out
            return not accelerate and bool(kernels_for(node, types, backend, best=True)[0])

        if PRECISION[precision] is not DType.F32:
            known = {(n.name, n.op) for n in fixed.nodes}
            expand_missing(fixed, lambda node, types: not needs_float32(node) or runs(node, types))
            wide = [n.name for n in fixed.nodes if (n.name, n.op) not in known or needs_float32(n)]
        expand_missing(fixed, runs)
    overrides = dict(overrides or {})
    sharing = share(
        fixed, accelerators, free=accelerate, overrides=overrides, refused=refused or {}
    )
    here = {*PRECISION, *FALLBACK, *(a.name for a in accelerators)}
    for layer, word in overrides.items():
        if word not in here:
            sharing.left[layer] = tr("the backend {name} cannot be used here", name=word)
    asked, precision = precision, "fp32" if accelerate else precision
    numbers = {n: PRECISION[word] for n, word in overrides.items() if word in PRECISION}
    own = beyond_half(fixed) if PRECISION[precision] is DType.F16 else {}
    plan = Lowering(
        fixed,
        backend,
        number=PRECISION[precision],
        tuning=tuning,
        overrides={n: w for n, w in overrides.items() if w in FALLBACK},
        numbers={**own, **dict.fromkeys(wide, DType.F32), **numbers},
        asked=numbers,
        faults=faults,
        refused={} if accelerate else refused,
        sharing=sharing,
    ).run()
    plan.precision, plan.subgraphs = asked, sharing.estimates
    if backend == "cpu" and PRECISION[precision] is DType.BF16:
        store_shorts(plan)
    share_buffers(plan)
    if backend == "cpu":
        mark_samples(plan)
    mark_bands(plan)
    reuse_in_place(plan)
    assign_offsets(plan)
    return plan
