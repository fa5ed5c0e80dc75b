"""Rows of a few layers: one run of each side, one of the candidate's layers alone, and what
rounding explains of the differences."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .alignment import Pair
from .comparison import LayerDifference, State
from .difference import channel_map, difference, histogram, other_shape
from .index_outputs import is_index_output, judged_alone, judged_in_whole_runs
from .judge import CARRIED, floor_of, other_integers, tolerance_of, within
from .matched import Arrays, Matched, given_by_a, reads, real, run_alone, whole_run
from .own_values import follows, on_values_of_a
from .rounding import LIKE, explained, one_sided
from .side import Side


@dataclass(frozen=True)
class Window:
    """What was found up to here.

    rows       the rows of the last window
    a, b       the values of its whole runs
    flipped    B's indices that rounding explains, and the values computed from them
    failed     a layer has failed
    """

    rows: tuple[LayerDifference, ...] = ()
    a: Arrays = field(default_factory=dict)
    b: Arrays = field(default_factory=dict)
    flipped: frozenset[str] = frozenset()
    failed: bool = False


NOTHING = Window()


def compare_window(on: Matched, pairs: Sequence[Pair], first: int, before: Window) -> Window:
    """The rows of these values, the first of which is number `first`; `before` is the window before
    them."""
    judged = on.tolerance is None and isinstance(on.b, Side)
    indices = [p for p in pairs if judged and is_index_output(on, p.name_b)]
    inputs = reads(on, pairs if on.isolated else indices)
    va = whole_run(on, [p.name_a for p in pairs] + list(inputs.values()))
    scores = [] if on.isolated else list(inputs)
    vb = whole_run(on, [p.name_b for p in pairs] + scores, of_b=True)
    given = given_by_a(on, inputs, va) if on.isolated else {}
    alone = run_alone(on, pairs, given) if on.isolated else {}
    rows = [_row(on, first + i, p, va, vb, alone.get(p.name_b)) for i, p in enumerate(pairs)]
    flipped = before.flipped
    if on.tolerance is None:
        rows = _excused(on, pairs, rows, va, {**vb, **alone})
        for i, pair in enumerate(pairs):
            if pair not in indices:
                continue
            if pair.name_b in alone:
                rows[i] = judged_alone(on, pair, rows[i], va, given, alone[pair.name_b])
            elif not on.isolated:
                rows[i] = judged_in_whole_runs(on, pair, rows[i], va, vb)
                flipped |= {pair.name_b} if rows[i].within and rows[i].rel_l2 else set()
        flipped = _read_from(on, pairs, rows, flipped)
        rows = _followers_alone(on, pairs, rows, va, vb, flipped)
    for i, pair in enumerate(pairs):
        row = rows[i]
        if on.isolated and not row.within and row.isolated is None and follows(on, pair, row):
            own = on_values_of_a(on, pair, va)
            if own is None:
                own = difference(va[pair.name_a], va[pair.name_a])
            right = within(own, row.tolerance, row.floor)
            rows[i] = replace(row, isolated=dict(vars(own)), within=right)
    wrong = next((row.index for row in rows if not (row.within or before.failed)), None)
    for i, (pair, row) in enumerate(zip(pairs, rows, strict=True)):
        state, detailed = _state(row), row.index == wrong or row.name in on.detail
        if detailed or state != row.state:  # mostly not
            detail = _detail(on, pair, va, vb, alone) if detailed else None
            rows[i] = replace(row, state=state, detail=detail)
    return Window(tuple(rows), va, vb, flipped, before.failed or wrong is not None)


def _row(
    on: Matched, index: int, pair: Pair, va: Arrays, vb: Arrays, alone: np.ndarray | None
) -> LayerDifference:
    x, y = real(on, pair, va[pair.name_a], vb[pair.name_b])
    whole = difference(x, y) if x.shape == y.shape else other_shape(x, y)
    limit, floor = on.tolerance, 0.0
    if limit is None:
        limit = tolerance_of(pair, (on.a.precision, on.b.precision), x)
        floor = floor_of(pair.node, on.coarser, whole.range_baseline)
    own = None
    if alone is not None:
        z = real(on, pair, va[pair.name_a], alone)[1]
        own = difference(x, z) if x.shape == z.shape else other_shape(x, z)
    inside = within(whole, CARRIED * limit, CARRIED * floor)
    sources = list(pair.node.sources)
    others = list(pair.node_b.sources) if pair.node_b else []
    return LayerDifference(
        index, pair.node.name, pair.node.op, sources, limit, **vars(whole),
        isolated=None if own is None else dict(vars(own)),
        within=inside if own is None else within(own, limit, floor),
        quantized=one_sided(pair) or other_integers(pair), floor=floor,
        kernel_candidate=on.kernels.get(pair.node_b.name, "") if pair.node_b else "",
        value_baseline=pair.name_a, value_candidate=pair.name_b,
        sources_candidate=[] if others == sources else others,
    )  # fmt: skip


def _excused(
    on: Matched, pairs: Sequence[Pair], rows: Sequence[LayerDifference], va: Arrays, theirs: Arrays
) -> list[LayerDifference]:
    """Layers over tolerance are right when rounding explains their error. `theirs` are B's values,
    of the layers alone where they were run alone."""
    suspects = [
        p for p, row in zip(pairs, rows, strict=True)
        if not row.within and _alike(real(on, p, va[p.name_a], theirs[p.name_b]))
    ]  # fmt: skip
    found = explained(suspects, on.pairs, on.a, on.b, (on.feeds, on.feeds_b))
    on.tally.runs += 2 if found else 0
    judged = []
    for pair, row in zip(pairs, rows, strict=True):
        rounding = found.get(pair.name_a)
        if rounding is not None:
            x, y = real(on, pair, va[pair.name_a], theirs[pair.name_b])
            times = 1 if row.isolated else CARRIED
            if row.isolated and rounding.exact is not None:
                x = rounding.exact
            limit = max(row.tolerance, LIKE * rounding.rel_l2)
            inside = difference(rounding.clip(x), rounding.clip(y))
            limits = (limit, row.floor, LIKE * rounding.max_abs)
            row = replace(
                row, within=within(inside, *(times * z for z in limits)),
                explained=rounding.explained, tolerance=math.hypot(limit, rounding.clipping),
            )  # fmt: skip
        judged.append(row)
    return judged


def _alike(both: tuple[np.ndarray, np.ndarray]) -> bool:
    return both[0].shape == both[1].shape


def _read_from(
    on: Matched, pairs: Sequence[Pair], rows: Sequence[LayerDifference], flipped: frozenset[str]
) -> frozenset[str]:
    """`flipped`, and the values computed from them."""
    if not flipped:
        return flipped
    for pair, row in zip(pairs, rows, strict=True):
        if row.rel_l2 and not flipped.isdisjoint(reads(on, [pair])):
            flipped |= {pair.name_b}
    return flipped


def _followers_alone(
    on: Matched, pairs: Sequence[Pair], rows: list[LayerDifference], va: Arrays, vb: Arrays,
    flipped: frozenset[str],
) -> list[LayerDifference]:  # fmt: skip
    """Whole runs say nothing of layers computed from indices that differ: those over tolerance run
    alone."""
    over = [p for p, row in zip(pairs, rows, strict=True)
            if not row.within and p.name_b in flipped]  # fmt: skip
    if not over:
        return rows
    inputs = reads(on, over)
    given = given_by_a(on, inputs, whole_run(on, list(inputs.values())))
    alone = run_alone(on, over, given)
    return [
        _row(on, row.index, pair, va, vb, alone.get(pair.name_b)) if pair in over else row
        for pair, row in zip(pairs, rows, strict=True)
    ]


def _state(row: LayerDifference) -> State:
    if row.isolated is None:
        return "within" if row.within else "differing"
    if not row.within:
        return "failing"
    whole = within(row, CARRIED * row.tolerance, CARRIED * row.floor)
    return "within" if whole else "propagated"


def _detail(
    on: Matched, pair: Pair, va: Arrays, vb: Arrays, alone: Mapping[str, np.ndarray]
) -> dict[str, Any] | None:
    """Histogram and channel map; of the layer alone where it was run alone. None for values of
    different shapes."""
    kind = "isolated" if pair.name_b in alone else "accumulated"
    theirs = alone if pair.name_b in alone else vb
    x, y = real(on, pair, va[pair.name_a], theirs[pair.name_b])
    if x.shape != y.shape:
        return None
    return {"kind": kind, "shape": list(x.shape), "histogram": histogram(x, y),
            **channel_map(x, y)}  # fmt: skip


__all__ = ["NOTHING", "Window", "compare_window"]
