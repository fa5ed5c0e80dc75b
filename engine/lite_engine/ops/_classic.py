"""What the classic models of ai.onnx.ml share: the functions of their scores."""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ._helpers import check_word

#: in the order of TreeEnsemble's numbers
POST_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + e⁻ˣ) without overflow"""
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e / (1 + e), 1 / (1 + e))


def probit(x: np.ndarray) -> np.ndarray:
    """√2 · erf⁻¹(2x − 1), with Winitzki's approximation of erf⁻¹ (2008), as onnxruntime has it"""
    x = 2 * x - 1
    log = np.log((1 - x) * (1 + x))
    half = 2 / (np.pi * 0.147) + log / 2
    return np.sqrt(2.0) * np.sign(x) * np.sqrt(np.sqrt(half * half - log / 0.147) - half)


def softmax(x: np.ndarray, *, keep_zeros: bool = False) -> np.ndarray:
    """Softmax of each row; with `keep_zeros` scores of zero stay zero and do not count."""
    y = np.exp(x - x.max(-1, keepdims=True))
    if keep_zeros:
        y = np.where(np.abs(x) > 1e-7, y, 0)
    total = y.sum(-1, keepdims=True)
    return np.divide(y, total, out=np.zeros_like(y), where=total != 0)


def transformed(scores: np.ndarray, how: str) -> np.ndarray:
    """Scores (N, K) after `post_transform`. Regressors of one target know PROBIT only, as in
    onnxruntime: the other functions are of several scores."""
    check_word("post_transform", how, *POST_TRANSFORMS)
    if how == "PROBIT":
        return probit(scores)
    if how == "NONE" or scores.shape[1] == 1:
        return scores
    if how == "LOGISTIC":
        return logistic(scores)
    return softmax(scores, keep_zeros=how == "SOFTMAX_ZERO")


def two_scores(score: np.ndarray, how: str, *, signed: bool) -> np.ndarray:
    """The scores (N, 2) of two classes from one (N,) of the second class: its complement beside it,
    its negative where scores are `signed`."""
    check_word("post_transform", how, *POST_TRANSFORMS)
    if how == "PROBIT":
        return probit(score)[:, None]
    if how == "LOGISTIC":
        return np.stack([logistic(-score), logistic(score)], -1)
    return np.stack([-score if signed else 1 - score, score], -1)


def labels_of(labels: list[int], indices: np.ndarray) -> np.ndarray:
    """Class labels (N,) i64 of class numbers. Raises ShapeError for a class without a label."""
    if indices.size and int(indices.max()) >= len(labels):
        raise ShapeError(
            tr(
                "class {index} has no label: there are {labels}",
                index=int(indices.max()),
                labels=len(labels),
            )
        )
    return np.asarray(labels, np.int64)[indices]


def table(numbers: list[float], rows: int, name: str) -> np.ndarray:
    """A flat attribute as float32 rows. Raises ShapeError when its length does not fit."""
    flat = np.asarray(numbers, np.float32)
    if rows < 1 or flat.size % rows:
        raise ShapeError(
            tr("{name} has {size} numbers for {rows} rows", name=name, size=flat.size, rows=rows)
        )
    return flat.reshape(rows, -1)
