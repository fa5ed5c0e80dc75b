"""Outputs that differ although no layer fails on its own: an ill-conditioned layer amplifies a
small difference.

A layer is ill-conditioned at its inputs when its result changes relatively more than they do:
an arg-max at a tie, a detection that changes its rank, a sigmoid at −24 (the relative change is
|z|·(1−σ(z)) times that of the argument; Higham 2002, §1.6). A convolution rarely is.

An output is excused when two conditions hold. On every path back from it, such a layer reads values
within the limit of outputs. And the candidate's layers on those paths, run alone on the candidate's
own values, give what its whole run gave: an error that only whole runs have (memory that is used
twice) is not excused. Errors that grow layer by layer are not excused either: the precision is then
too low for the model.

The indices that an arg-max returns have no relative error. With scores within the limit they are
excused whatever they are, because the candidate's answer is exact for its own scores (a small
backward error; Higham 2002, §1.5), unless the margin is larger than the errors of the scores
explain (index_outputs.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from .comparison import LayerDifference
from .difference import difference
from .index_outputs import is_index_output, right_in_whole_runs
from .judge import CARRIED, ROUNDINGS, within
from .matched import Matched, again, reads
from .outputs import output_limit
from .rounding import UNIT

#: Layers that are looked at for a fault of whole runs: the first one over its limit, unless its
#: error is just what its inputs carry.
SUSPECTS = 8


def ill_conditioned(
    on: Matched, outputs: Sequence[str], rows: Sequence[LayerDifference]
) -> dict[str, str]:
    """Output → the ill-conditioned layer that excuses it, for those of `outputs` that have one."""
    limit = output_limit(rows, on.a, on.b)
    found = {}
    for name in outputs:
        last = next((r for r in rows if name in (r.value_baseline, r.value_candidate)), None)
        if last is None:
            continue
        way = _WayBack(on, rows, limit)
        if way.excused(last.value_candidate) and way.ill_conditioned and way.whole_run_is_right():
            found[name] = way.ill_conditioned[0].name
    return found


class _WayBack:
    """From an output to the values that are within the limit."""

    def __init__(self, on: Matched, rows: Sequence[LayerDifference], limit: float) -> None:
        self.on, self.limit = on, limit
        self.rows = {r.value_candidate: r for r in rows}
        self.over: list[LayerDifference] = []
        self.ill_conditioned: list[LayerDifference] = []
        self._known: dict[str, bool] = {}

    def excused(self, value: str) -> bool:
        """Within the limit, or made by right layers of values that are excused, by one that
        amplifies them, or from one that is over the limit already."""
        if value not in self._known:
            self._known[value] = self._excused(value)
        return self._known[value]

    def _excused(self, value: str) -> bool:
        if value in self.on.feeds_b:
            return True
        if value not in self.rows:
            return False
        row = self.rows[value]
        if self._inside(row):
            return True
        if row.nan_baseline or row.nan_candidate:
            return False
        self.over.append(row)
        inputs = reads(self.on, [self.on.pair_of[row.value_candidate]])
        if not all(self.excused(name) for name in inputs):
            return False
        given = [self.rows[name] for name in inputs if name in self.rows]
        inside = all(self._inside(x) for x in given)
        if (inside and is_index_output(self.on, row.value_candidate)) or _is_ill_conditioned(
            row, given
        ):
            self.ill_conditioned.append(row)
            return True
        return not inside

    def _inside(self, row: LayerDifference) -> bool:
        return within(row, self.limit, CARRIED * row.floor)

    def whole_run_is_right(self) -> bool:
        """B's layers alone, on what B's whole run gave them, make what it made."""
        alone, whole = again(self.on, [r.value_candidate for r in self.over])
        if any(r.value_candidate not in alone for r in self.over):
            return False
        choices = [
            r.value_candidate for r in self.over if is_index_output(self.on, r.value_candidate)
        ]
        return right_in_whole_runs(self.on, choices, alone, whole) and all(
            within(
                difference(whole[r.value_candidate], alone[r.value_candidate]), r.tolerance, r.floor
            )
            for r in self.over
            if r.value_candidate not in choices
        )


def wrong_in_whole_runs(on: Matched, rows: Sequence[LayerDifference]) -> LayerDifference | None:
    """The first layer over its limit that makes other numbers in B's whole run than alone, of the
    same inputs: something in that run overwrites or misplaces them. None where it makes the same,
    and errors only add up."""
    over = [r for r in rows if not within(r, CARRIED * r.tolerance, CARRIED * r.floor)]
    suspects = [r for r in over if not is_index_output(on, r.value_candidate)][:SUSPECTS]
    alone, whole = again(on, [r.value_candidate for r in suspects]) if suspects else ({}, {})
    # The run may store in fewer bits what a layer alone takes and gives in float32: no fault, even
    # where a lower limit was asked for.
    stored = ROUNDINGS * UNIT[on.b.precision]
    for row in suspects:
        if row.value_candidate in alone:
            d = difference(whole[row.value_candidate], alone[row.value_candidate])
            if not within(d, max(row.tolerance, stored), row.floor):
                return row
    return None


def _is_ill_conditioned(row: LayerDifference, given: Sequence[LayerDifference]) -> bool:
    """Amplifies by more than rounding does in a whole model (CARRIED), in norm or in the peak."""
    norm = max((x.rel_l2 for x in given), default=0.0)
    peak = max((_peak(x) for x in given), default=0.0)
    return norm > 0 and (row.rel_l2 > CARRIED * norm or _peak(row) > CARRIED * peak)


def _peak(row: LayerDifference) -> float:
    largest = max(abs(x) for x in row.range_baseline)
    return row.max_abs / largest if largest else 0.0


__all__ = ["ill_conditioned", "wrong_in_whole_runs"]
