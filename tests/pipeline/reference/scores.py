"""Outputs that are about scores: a line of letters, the best of several classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Item = dict[str, Any]
#: how dictionaries name the class that stands for no letter
_BLANKS = ("-", "_", "<blank>", "blank", "[blank]", "")
#: fewer labels than this are not taken for a dictionary that lacks its blank
_DICTIONARY = 10


def find_line(arrays: Sequence[np.ndarray], labels: Sequence[str]) -> list[Item] | None:
    """The letters of (T,C) or (C,T) CTC scores, the only output; None for other outputs."""
    if len(arrays) != 1 or arrays[0].dtype.kind not in "fiu":
        return None
    squeezed = np.squeeze(arrays[0])
    if not labels or squeezed.ndim != 2:
        return None
    alphabet = _alphabet(squeezed.shape, labels)
    if alphabet is None:
        return None
    return _line(squeezed if alphabet[2] else squeezed.T, *alphabet[:2])


def find_top(
    arrays: Sequence[np.ndarray], labels: Sequence[str], count: int
) -> tuple[list[Item], int] | None:
    """(the best classes of the only output, a vector of scores; how many classes there are)."""
    if len(arrays) != 1 or arrays[0].dtype.kind not in "fiu":
        return None
    scores = np.squeeze(arrays[0])
    if scores.ndim != 1 or scores.size < 2:
        return None
    return _top(scores, labels if len(labels) >= scores.size else (), count), scores.size


def _alphabet(shape: tuple[int, ...], labels: Sequence[str]) -> tuple[list[str], int, bool] | None:
    """(a label per class, the blank's index, whether classes are the last axis) of CTC scores.

    As many classes as labels: the blank is among them, last if that is named like one, else first.
    One or two classes more: a dictionary without the blank, which comes first, and perhaps without
    the space, which comes last (PaddleOCR).
    """
    for classes, last in ((shape[1], True), (shape[0], False)):
        if classes == len(labels):
            at_end = labels[-1] in _BLANKS and labels[0] not in _BLANKS
            return list(labels), classes - 1 if at_end else 0, last
    for classes, last in ((shape[1], True), (shape[0], False)):
        if 0 < classes - len(labels) <= 2 and len(labels) >= _DICTIONARY:
            return ["", *labels, " "][:classes], 0, last
    return None


def _line(scores: np.ndarray, labels: Sequence[str], blank: int) -> list[Item]:
    """(T,C) → best label of each step, repeats merged, blanks dropped; logits become
    probabilities."""
    if scores.min() < 0 or scores.max() > 1:
        scores = np.exp(scores.astype(np.float64) - scores.max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
    best = scores.argmax(axis=1)
    fresh = np.concatenate([[True], best[1:] != best[:-1]])
    steps = np.flatnonzero(fresh & (best != blank))
    return [{"label": labels[best[t]], "score": float(scores[t, best[t]])} for t in steps]


def _top(scores: np.ndarray, labels: Sequence[str], count: int) -> list[Item]:
    order = np.argsort(-scores.astype(np.float64), kind="stable")[:count]
    names = [labels[i] if labels else str(i) for i in order]
    return [
        {"label": name, "score": float(scores[i]), "index": int(i)} for name, i in zip(names, order)
    ]
