"""Steps that take turns over the samples of a batch: those of which `samples` is not 0.

`program.py` writes their tensors as those of one sample; the native runtime repeats the steps
(`native/src/runtime/turns.h`). `samples.py` chooses them.
"""

from __future__ import annotations

from dataclasses import dataclass

from .model import Plan, Step


@dataclass(frozen=True)
class Turns:
    """The steps of a plan that take turns: [first, end). `kept` are the owners of storage that only
    these steps touch, and that has the samples first however it is viewed."""

    first: int
    end: int
    samples: int
    kept: frozenset[int]

    def __contains__(self, step: Step) -> bool:
        return self.first <= step.index < self.end


NO_TURNS = Turns(0, 0, 1, frozenset())


def turns_of(plan: Plan) -> Turns:
    """The marked steps; an empty range where none are."""
    marked = [s.index for s in plan.steps if s.samples]
    if not marked:
        return NO_TURNS
    first, end = marked[0], marked[-1] + 1
    inside: set[int] = set()
    outside = {plan.root(i).index for i in plan.outputs}
    for step in plan.steps:
        touched = {plan.root(i).index for i in (*step.inputs, *step.outputs) if i >= 0}
        (inside if first <= step.index < end else outside).update(touched)
    samples = plan.steps[first].samples
    outside |= {
        plan.root(t.index).index for t in plan.tensors
        if t.alias_of is not None and t.dims[:1] != (samples,)
    }  # fmt: skip
    kept = {i for i in inside - outside if plan.tensors[i].role == "arena"}
    return Turns(first, end, samples, frozenset(kept))
