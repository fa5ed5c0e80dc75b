"""Outputs that are apart though every layer is right by itself: where one layer makes a large
difference of a small one, it is that layer's nature and no fault.

A layer is ill-conditioned at its inputs when its result changes relatively more than they do. An
arg-max at a tie, a detection that changes its place among the best, a sigmoid at −24 (the relative
change is |z|·(1−σ(z)) times the argument's; Higham 2002, §1.6) are; a convolution rarely is. An
output is excused when on every way back from it such a layer reads values that are within the
limit of outputs, and when side B's layers on those ways, run alone on B's own values, give what B's
whole run gave: a fault that only whole runs have (memory used twice) is not excused. Errors that
grow little by little are not either: then the precision is too low for the model.

What an arg-max answers has no relative error that could grow. Of scores within the limit it is
excused whatever its error, because B's answer is the exact one for B's scores (a small backward
error; Higham 2002, §1.5), if it has no margin that the scores' errors do not explain (choices.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .choices import chooses, right_in_whole_runs
from .difference import difference
from .judge import CARRIED, output_limit, within

#: Layers that are looked at for a fault of whole runs: the first one over its limit, unless its
#: error is just what its inputs carry.
SUSPECTS = 8

if TYPE_CHECKING:
    from .comparison import Comparison, LayerDifference
    from .work import Work


def magnified(outputs: Sequence[str], result: Comparison, work: Work) -> dict[str, str]:
    """Output → the layer that magnifies, for those `outputs` that it excuses."""
    limit = output_limit(result, work.a, work.b)
    found = {}
    for name in outputs:
        last = next((r for r in result.layers if name in (r.value_a, r.value_b)), None)
        if last is None:
            continue
        way = _WayBack(result, work, limit)
        if way.excused(last.value_b) and way.magnifiers and way.whole_run_is_right():
            found[name] = way.magnifiers[0].name
    return found


class _WayBack:
    """From an output to the values that are within the limit."""

    def __init__(self, result: Comparison, work: Work, limit: float) -> None:
        self.work, self.limit = work, limit
        self.rows = {r.value_b: r for r in result.layers}
        self.over: list[LayerDifference] = []
        self.magnifiers: list[LayerDifference] = []
        self._known: dict[str, bool] = {}

    def excused(self, value: str) -> bool:
        """Within the limit, or made by right layers of values that are excused, by one that
        magnifies them or from one that is over the limit already."""
        if value not in self._known:
            self._known[value] = self._excused(value)
        return self._known[value]

    def _excused(self, value: str) -> bool:
        if value in self.work.feeds_b:
            return True
        if value not in self.rows:
            return False
        row = self.rows[value]
        if self._inside(row):
            return True
        if row.nan_a or row.nan_b:
            return False
        self.over.append(row)
        reads = self.work.reads(row.value_b)
        if not all(self.excused(name) for name in reads):
            return False
        given = [self.rows[name] for name in reads if name in self.rows]
        inside = all(self._inside(x) for x in given)
        if (inside and chooses(self.work, row.value_b)) or _magnifies(row, given):
            self.magnifiers.append(row)
            return True
        return not inside

    def _inside(self, row: LayerDifference) -> bool:
        return within(row, self.limit, CARRIED * row.floor)

    def whole_run_is_right(self) -> bool:
        """B's layers alone, on what B's whole run gave them, make what it made."""
        alone, whole = self.work.again([r.value_b for r in self.over])
        if any(r.value_b not in alone for r in self.over):
            return False
        choices = [r.value_b for r in self.over if chooses(self.work, r.value_b)]
        return right_in_whole_runs(self.work, choices, alone, whole) and all(
            within(difference(whole[r.value_b], alone[r.value_b]), r.tolerance, r.floor)
            for r in self.over
            if r.value_b not in choices
        )


def wrong_in_whole_runs(result: Comparison, work: Work) -> LayerDifference | None:
    """The first layer over its limit that makes other numbers in B's whole run than alone, of the
    same inputs: something in that run overwrites or misplaces them. None where it makes the same,
    and errors only add up."""
    over = [r for r in result.layers if not within(r, CARRIED * r.tolerance, CARRIED * r.floor)]
    suspects = [r for r in over if not chooses(work, r.value_b)][:SUSPECTS]
    alone, whole = work.again([r.value_b for r in suspects]) if suspects else ({}, {})
    for row in suspects:
        if row.value_b in alone:
            d = difference(whole[row.value_b], alone[row.value_b])
            if not within(d, row.tolerance, row.floor):
                return row
    return None


def _magnifies(row: LayerDifference, given: Sequence[LayerDifference]) -> bool:
    """More than rounding adds up to in a whole model (CARRIED), in norm or at the worst place."""
    norm = max((x.rel_l2 for x in given), default=0.0)
    peak = max((_peak(x) for x in given), default=0.0)
    return norm > 0 and (row.rel_l2 > CARRIED * norm or _peak(row) > CARRIED * peak)


def _peak(row: LayerDifference) -> float:
    largest = max(abs(x) for x in row.range_a)
    return row.max_abs / largest if largest else 0.0


__all__ = ["magnified", "wrong_in_whole_runs"]
