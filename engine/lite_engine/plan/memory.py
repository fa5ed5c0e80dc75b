"""Arena offsets by lifetime: greedy by size, best fit, 64-byte aligned, in place where allowed.

Source: Pisarchyk & Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020
(greedy by size).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from .model import ALIGNMENT, Plan, PlanTensor
from .turns import NO_TURNS, Turns, turns_of

#: Of all tensors together: offsets and ends stay within 64 bits.
MOST_BYTES = 1 << 62


@dataclass
class Span:
    """Bytes [offset, offset+size) that a tensor holds from step `first` to step `last`."""

    tensor: int
    size: int
    first: int
    last: int
    offset: int = 0


def lifetimes(plan: Plan, turns: Turns | None = None) -> dict[int, Span]:
    """Storage owners in the arena → first and last step that touch them, with the plan's turns or
    others.

    The last step of a band writes while the others still read. What they hand on is in the arena
    only when they run one after the other. Steps that take turns over samples use the values
    around them from the first sample to the last, and what only they touch is one sample's.
    """
    turns = turns_of(plan) if turns is None else turns
    last_of_band = {s.band: s.index for s in plan.steps if s.band}
    inside = _inside_bands(plan)
    spans: dict[int, Span] = {}
    for step in plan.steps:
        for index in (*step.outputs, *step.inputs):
            if index < 0:
                continue
            root = plan.root(index)
            if root.role != "arena":
                continue
            span = spans.get(root.index)
            if span is None:
                held = root.nbytes // turns.samples if root.index in turns.kept else root.nbytes
                size = -(-max(held, 1) // ALIGNMENT) * ALIGNMENT
                span = spans[root.index] = Span(root.index, size, step.index, step.index)
            band = 0 if root.index in inside else step.band
            span.last = max(span.last, last_of_band.get(band, step.index))
            if step in turns and root.index not in turns.kept:
                span.first, span.last = min(span.first, turns.first), max(span.last, turns.end - 1)
    for index in plan.outputs:
        if plan.root(index).index in spans:
            spans[plan.root(index).index].last = len(plan.steps)
    return spans


def reuse_in_place(plan: Plan) -> None:
    """An output takes its first input's storage when that dies there and the kernel allows it.

    Only within one segment: storage that crosses a border belongs to both sides. So does what steps
    that take turns over samples do not keep to themselves.
    """
    turns = turns_of(plan)
    touched = _touching_segments(plan)
    last_use: dict[int, int] = {}
    for step in plan.steps:
        for index in step.inputs:
            if index >= 0:
                last_use[plan.root(index).index] = step.index
    kept = {plan.root(i).index for i in plan.outputs}
    for step in plan.steps:
        if not step.in_place or not step.inputs or step.inputs[0] < 0:
            continue
        given, out = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
        source = plan.root(given.index)
        if source.role != "arena" or out.role != "arena" or out.alias_of is not None:
            continue
        if len(touched[source.index] | touched[out.index]) > 1:
            continue
        if step in turns and not {source.index, out.index} <= turns.kept:
            continue
        dies = last_use[source.index] == step.index and source.index not in kept
        others = [plan.root(i).index for i in step.inputs[1:] if i >= 0]
        if (
            dies
            and out.index not in kept
            and _same_storage(source, out)
            and math.prod(given.shape) == math.prod(out.shape)  # not a part that broadcasts
            and (source.index not in others)
        ):
            out.alias_of = source.index
            last_use[source.index] = max(step.index, last_use.get(out.index, 0))


def _touching_segments(plan: Plan) -> dict[int, set[int]]:
    """Storage root → numbers of the segments that read or write it."""
    out: dict[int, set[int]] = {}
    for number, (_, steps) in enumerate(plan.segments()):
        for step in steps:
            for index in (*step.inputs, *step.outputs):
                if index >= 0:
                    out.setdefault(plan.root(index).index, set()).add(number)
    return out


def _same_storage(a: PlanTensor, b: PlanTensor) -> bool:
    return (
        a.nbytes == b.nbytes and a.dtype.itemsize == b.dtype.itemsize and not any(a.halo + b.halo)
    )


def assign_offsets(plan: Plan) -> None:
    """Writes `offset` of every arena tensor and `plan.arena_bytes`, and with turns also `whole` and
    `plan.whole_bytes`. Raises ShapeError for tensors that no arena holds."""
    turns = turns_of(plan)
    if turns.end:
        spans = list(lifetimes(plan, NO_TURNS).values())
        plan.whole_bytes = _place(plan, spans)
        for span in spans:
            plan.tensors[span.tensor].whole = span.offset
    spans = list(lifetimes(plan, turns).values())
    if sum(span.size for span in spans) > MOST_BYTES:
        raise ShapeError(
            tr("a size or an attribute of this model is too large for a native program")
        )
    end = _place(plan, [s for s in spans if s.tensor not in turns.kept])
    plan.kept_at = -(-end // ALIGNMENT) * ALIGNMENT
    kept = [s for s in spans if s.tensor in turns.kept]
    plan.arena_bytes = plan.kept_at + _place(plan, kept) if kept else end
    for span in spans:
        start = plan.kept_at if span.tensor in turns.kept else 0
        plan.tensors[span.tensor].offset = start + span.offset
    for tensor in plan.tensors:
        if tensor.alias_of is not None:
            tensor.offset = _alias_offset(plan, tensor)
            if tensor.role != "output":  # a model output may be a view of anything
                tensor.role = plan.root(tensor.index).role


def _place(plan: Plan, spans: list[Span]) -> int:
    """Writes the offsets of spans; where the last one ends."""
    placed = _Placed(len(spans))
    inside = _inside_bands(plan)
    for span in sorted(spans, key=lambda s: (s.tensor in inside, -s.size, s.first, s.tensor)):
        span.offset = placed.best_fit(span)
        placed.add(span)
    return max((s.offset + s.size for s in spans), default=0)


def _inside_bands(plan: Plan) -> set[int]:
    """What a band's steps hand on to each other. A run that taps none of it writes windows of some
    rows instead, so that these bytes of the arena stay untouched; behind all others they share
    no huge page with them, and take no memory."""
    return {
        step.outputs[0]
        for step, after in zip(plan.steps, plan.steps[1:])
        if step.band and step.band == after.band
    }


def _alias_offset(plan: Plan, tensor: PlanTensor) -> int:
    """Position of an alias in the arena: its owner's, plus the way to it."""
    at = 0
    while tensor.alias_of is not None:
        at += tensor.alias_offset
        tensor = plan.tensors[tensor.alias_of]
    return at + tensor.offset


class _Placed:
    """Spans that have their bytes, as columns in the order of their offsets: a plan of ten
    thousand tensors looks at all of them for each, so no step of that is Python's."""

    _FIRST, _LAST, _OFFSET, _END = range(4)

    def __init__(self, capacity: int) -> None:
        self._table = np.empty((4, capacity), np.int64)
        self._count = 0

    def add(self, span: Span) -> None:
        rows, n = self._table, self._count
        at = int(rows[self._OFFSET, :n].searchsorted(span.offset, side="right"))
        rows[:, at + 1 : n + 1] = rows[:, at:n]
        rows[:, at] = span.first, span.last, span.offset, span.offset + span.size
        self._count += 1

    def best_fit(self, span: Span) -> int:
        """Offset of the smallest gap between those alive with it that holds the span, the end of
        the last of them when none does."""
        rows = self._table[:, : self._count]
        alive = ((rows[self._FIRST] <= span.last) & (rows[self._LAST] >= span.first)).nonzero()[0]
        if not alive.size:
            return 0
        ends = np.maximum.accumulate(rows[self._END].take(alive))
        gaps = rows[self._OFFSET].take(alive)
        gaps[1:] -= ends[:-1]
        holding = (gaps >= span.size).nonzero()[0]
        if not holding.size:
            return int(ends[-1])
        best = holding[gaps[holding].argmin()]
        return int(ends[best - 1]) if best else 0
