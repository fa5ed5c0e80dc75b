"""Layers whose outputs are indices: ArgMax, and the indices of TopK.

An index cannot be nearly right: class 19 is as far from class 20 as class 1 is. It is therefore
judged by the score that it selects. The margin between two indices is the difference of their
scores. A small margin may be decided either way when scores are rounded, a large one may not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..ir import Node, Value
from .alignment import Pair
from .comparison import LayerDifference
from .difference import difference
from .judge import CARRIED
from .matched import Arrays, Matched, reads, real, whole_run
from .rounding import SMALLEST, UNIT
from .side import quant_of, to_float


@dataclass(frozen=True)
class IndexOutput:
    """What a layer chooses from: its answers are indices of `scores` along `axis`."""

    scores: Value
    axis: int


def index_output_of(node: Node | None, name: str) -> IndexOutput | None:
    """How a layer makes its value `name` by choosing; None where it computes it."""
    if node is None or not node.inputs or node.inputs[0] is None:
        return None
    if node.op in ("ArgMax", "ArgMin"):
        return IndexOutput(node.inputs[0], node.attrs.get("axis", 0))
    if node.op == "TopK" and name == node.outputs[1].name:
        return IndexOutput(node.inputs[0], node.attrs.get("axis", -1))
    return None


def same_indices(
    scores: np.ndarray, axis: int, a: np.ndarray, b: np.ndarray, slack: np.ndarray | float
) -> bool:
    """Every choice b (indices along `axis`, which they may lack) has the score that choice a has,
    up to the `slack` of the two scores: an array like `scores`, or one number for all."""
    shape = [-1 if i == axis % scores.ndim else n for i, n in enumerate(scores.shape)]
    at_a, at_b = (np.asarray(x).astype(np.int64).reshape(shape) for x in (a, b))
    if np.any((at_b < 0) | (at_b >= scores.shape[axis])):
        return False
    each = np.broadcast_to(slack, scores.shape)
    (score_a, slack_a), (score_b, slack_b) = (
        (np.take_along_axis(scores, at, axis), np.take_along_axis(each, at, axis))
        for at in (at_a, at_b)
    )
    margin = np.abs(score_a - score_b)
    return bool(np.all((at_a == at_b) | (margin <= slack_a + slack_b)))


def is_index_output(on: Matched, value_b: str) -> bool:
    """B's layer answers with places among scores that A has too."""
    choice = index_output_of(on.pair_of[value_b].node_b, value_b)
    return choice is not None and choice.scores.name in on.known


def judged_alone(
    on: Matched, pair: Pair, row: LayerDifference, va: Arrays, given: Arrays, alone: np.ndarray
) -> LayerDifference:
    """The row of a layer of B that chooses among A's scores, `given` as B has them: a choice is
    right when its score and the right one's differ by no more than the two lose on the way to
    B."""
    s, t, axis = _scores(on, pair, va, given)
    x, y = real(on, pair, va[pair.name_a], alone)
    right = same_indices(s, axis, x, y, np.maximum(_lost(on, s), np.abs(t - s)))
    return _judged(row, x, y, right)


def judged_in_whole_runs(
    on: Matched, pair: Pair, row: LayerDifference, va: Arrays, vb: Arrays
) -> LayerDifference:
    """The row of indices of B's whole run, where its layer was not run alone: those are right that
    no larger margin parts from A's than errors like those of all scores explain."""
    s, t, axis = _scores(on, pair, va, vb)
    x, y = real(on, pair, va[pair.name_a], vb[pair.name_b])
    slack = np.maximum(_lost(on, s), _explained_margin(s, t) / 2)
    return _judged(row, x, y, same_indices(s, axis, x, y, slack))


def _judged(row: LayerDifference, x: np.ndarray, y: np.ndarray, right: bool) -> LayerDifference:
    error = difference(x, y).rel_l2 if right else 0.0
    return replace(row, within=right, explained=error, tolerance=error)


def _explained_margin(s: np.ndarray, t: np.ndarray) -> float:
    """What errors like those of all scores explain: of normal ones with their root mean square,
    none of 10⁹ moves a margin by CARRIED times as much."""
    return CARRIED * float(np.sqrt(np.mean(np.square(t - s))))


def right_in_whole_runs(on: Matched, values_b: Sequence[str], alone: Arrays, whole: Arrays) -> bool:
    """B's whole run chose these places as its layers alone do from its own scores, and none whose
    margin is larger than errors like those of all its scores explain."""
    pairs = [on.pair_of[name] for name in values_b]
    names = [n for p in pairs for n in (p.name_a, *reads(on, [p]).values())]
    va = whole_run(on, names) if names else {}
    for pair in pairs:
        s, t, axis = _scores(on, pair, va, whole)
        x, y = real(on, pair, va[pair.name_a], whole[pair.name_b])
        _, own = real(on, pair, va[pair.name_a], alone[pair.name_b])
        if not same_indices(t, axis, own, y, _lost(on, t)):
            return False
        if not same_indices(s, axis, x, y, _explained_margin(s, t) / 2):
            return False
    return True


def _scores(on: Matched, pair: Pair, va: Arrays, vb: Arrays) -> tuple[np.ndarray, np.ndarray, int]:
    """A's scores and B's as real numbers of one shape, and the axis along which B chooses."""
    choice = index_output_of(pair.node_b, pair.name_b)
    assert choice is not None
    name = choice.scores.name
    if name in on.pair_of:
        s, t = real(on, on.pair_of[name], va[on.known[name]], vb[name])
    else:
        s = t = to_float(vb[name], quant_of(choice.scores))
    return s.astype(np.float64), t.astype(np.float64), choice.axis


def _lost(on: Matched, scores: np.ndarray) -> np.ndarray:
    """What each number loses at most where the coarser side stores it."""
    return np.maximum(UNIT[on.coarser] * np.abs(scores), SMALLEST[on.coarser])


__all__ = [
    "index_output_of",
    "is_index_output",
    "judged_alone",
    "judged_in_whole_runs",
    "right_in_whole_runs",
    "same_indices",
]
