"""Bands: neighbouring steps that pass over an image together, some rows at a time.

What a large layer writes has left the second-level cache when the next layer reads it from the
start. In a band both take turns over a few rows, and what lies between them stays in that cache.
The steps of a band carry one number in the attribute `band`; the native runtime chooses the rows
(`native/src/runtime/bands.h`), and runs the steps one after the other where something between them
is tapped.
"""

from __future__ import annotations

from ..ops import find_op
from .model import Plan, PlanTensor, Step

#: Smaller tensors stay in the second-level cache of most cores anyway.
_LARGE_BYTES = 768 << 10
#: Every pass reads the weights of its steps again.
_WEIGHT_BYTES = 640 << 10


def mark_bands(plan: Plan) -> None:
    """Sets `band` on steps that should take turns. Runs before storage is assigned."""
    users: dict[int, int] = {}
    for index in (i for step in plan.steps for i in step.inputs if i >= 0):
        users[index] = users.get(index, 0) + 1
    shared = {plan.root(i).index for i in plan.outputs}
    shared |= {t.alias_of for t in plan.tensors if t.alias_of is not None}
    number, band = 0, [] if not plan.steps else [plan.steps[0]]
    for step in plan.steps[1:]:
        tensor = plan.tensors[band[-1].outputs[0]]
        passed_on = (
            step.inputs[:1] == [tensor.index]
            and users[tensor.index] == 1
            and tensor.index not in shared
        )
        if passed_on and _worth(band[-1], tensor, step, plan):
            band.append(step)
            number += len(band) == 2
            for member in band:
                member.band = number
        else:
            band = [step]


def _worth(writer: Step, between: PlanTensor, reader: Step, plan: Plan) -> bool:
    return (
        _by_rows(writer, plan)
        and _by_rows(reader, plan)
        and between.role == "arena"
        and between.alias_of is None
        and between.nbytes // max(writer.samples, 1) >= _LARGE_BYTES
    )


def _by_rows(step: Step, plan: Plan) -> bool:
    dims = plan.tensors[step.outputs[0]].dims
    return (
        step.backend == "cpu"
        and _computes_rows(step)
        and len(dims) == 4
        and dims[0] == max(step.samples, 1)
        and _weight_bytes(plan, step) <= _WEIGHT_BYTES
    )


def _computes_rows(step: Step) -> bool:
    op = find_op(step.op)
    return op is not None and any(k.by_rows and k.name == step.kernel for k in op.kernels)


def _weight_bytes(plan: Plan, step: Step) -> int:
    grown = 1
    if "3x3" in step.kernel:  # F(4,3)'s weights, at stride 2 F(2,3)'s
        grown = 4 if list(step.attrs.get("strides") or [1, 1]) == [1, 1] else 2
    return grown * sum(
        plan.tensors[i].nbytes for i in step.inputs if i >= 0 and plan.tensors[i].role == "weight"
    )
