"""Cutting a plan into pieces that one backend runs in one go."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from .model import Plan, Step, changed


@dataclass
class Segment:
    """Consecutive steps of one backend, or of several that work together, as a Plan of their own.

    `plan.inputs` and `plan.outputs` are its crossing tensors; `outer[i]` is the index of its
    tensor i in
    the whole plan. Whoever writes a program of it assigns the offsets of its arena: other backends
    have their own memory.
    """

    backend: str
    plan: Plan
    outer: list[int]


def cut(plan: Plan, together: Collection[str] = ()) -> list[Segment]:
    """Segments in order; steps on backends that work `together` share one. A tensor that a later
    segment, another backend or the caller reads becomes an output."""
    runs = plan.segments(together)
    crossing = _crossing(plan, runs)
    names: dict[int, list[str]] = {}
    for name, index in plan.tensor_of.items():
        names.setdefault(index, []).append(name)
    return [_segment(plan, backend, steps, crossing, names) for backend, steps in runs]


def _crossing(plan: Plan, runs: list[tuple[str, list[Step]]]) -> set[int]:
    """Storage roots that live across a segment's border."""
    home: dict[int, int] = {}
    out = {plan.root(i).index for i in plan.outputs}
    for number, (_, steps) in enumerate(runs):
        for step in steps:
            for index in step.outputs:
                if index >= 0:
                    home[plan.root(index).index] = number
            for index in step.inputs:
                root = plan.root(index).index if index >= 0 else -1
                if root >= 0 and home.get(root, number) != number:
                    out.add(root)
    return out


def _segment(
    plan: Plan,
    backend: str,
    steps: list[Step],
    crossing: set[int],
    names: Mapping[int, Sequence[str]],
) -> Segment:
    used: dict[int, int] = {}
    written: set[int] = set()
    read: set[int] = set()
    for step in steps:
        for index in (*step.inputs, *step.outputs):
            while index is not None and index >= 0 and index not in used:
                used[index] = 0
                index = plan.tensors[index].alias_of  # type: ignore[assignment]
        written |= {plan.root(i).index for i in step.outputs if i >= 0}
        read |= {plan.root(i).index for i in step.inputs if i >= 0}
    outer = sorted(used)
    inner = {index: i for i, index in enumerate(outer)}
    part = Plan(plan.backend, precision=plan.precision)
    for index in outer:
        old = plan.tensors[index]
        root = plan.root(index)
        role = old.role
        if root.role != "weight":
            role = "arena"
            if root.index in crossing or root.role in ("input", "output"):
                role = "output" if root.index in written else "input"
        alias = None if old.alias_of is None else inner[old.alias_of]
        part.tensors.append(changed(old, index=inner[index], alias_of=alias, piece=None, role=role))
    for step in steps:
        part.steps.append(
            changed(
                step,
                index=len(part.steps),
                inputs=[inner[i] if i >= 0 else -1 for i in step.inputs],
                outputs=[inner[i] if i >= 0 else -1 for i in step.outputs],
            )
        )
    owners = [t for t in part.tensors if t.alias_of is None]
    part.inputs = [t.index for t in owners if t.role == "input"]
    part.outputs = [t.index for t in owners if t.role == "output"]
    part.tensor_of = {name: inner[i] for i in outer for name in names.get(i, ())}
    return Segment(backend, part, outer)
