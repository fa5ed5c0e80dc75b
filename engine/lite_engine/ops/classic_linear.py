"""Linear models and support vector machines of ai.onnx.ml.

Where the standard leaves the scores of two classes open, the results are onnxruntime's.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Dim, DType, TypeInfo
from ._classic import labels_of, logistic, table, transformed, two_scores
from ._core import REQUIRED, define_op
from ._helpers import check_word


def rows_of(x: TypeInfo) -> Dim:
    """Samples of a batch: a vector is one."""
    return x.dims[0] if x.rank > 1 else 1


def samples_of(x: np.ndarray) -> np.ndarray:
    """A batch (N, F) f32; a vector is one sample."""
    return x.reshape(x.shape[0] if x.ndim > 1 else 1, -1).astype(np.float32)


def classes(x: TypeInfo, scores: Dim) -> list[TypeInfo]:
    """Types of a classifier's outputs: labels (N,) and scores (N, K)."""
    return [TypeInfo(DType.I64, (rows_of(x),)), TypeInfo(DType.F32, (rows_of(x), scores))]


linear_regressor = define_op(
    "LinearRegressor",
    inputs="x",
    attrs={"coefficients": REQUIRED, "intercepts": [], "targets": 1, "post_transform": "NONE"},
    source="ai.onnx.ml LinearRegressor-1",
)
linear_regressor.infer(lambda x, *, targets, **_: TypeInfo(DType.F32, (rows_of(x), targets)))


def _linear(x: np.ndarray, coefficients: list[float], intercepts: list[float], rows: int) -> Any:
    weights = table(coefficients, rows, "coefficients")
    y = samples_of(x) @ weights.T
    return y + np.asarray(intercepts, np.float32) if intercepts else y


@linear_regressor.reference
def _(
    x: np.ndarray,
    *,
    coefficients: list[float],
    intercepts: list[float],
    targets: int,
    post_transform: str,
) -> np.ndarray:
    """y = x·Wᵀ + b"""
    y = _linear(x, coefficients, intercepts, targets)
    return transformed(y, post_transform).astype(np.float32)


linear_classifier = define_op(
    "LinearClassifier",
    inputs="x",
    outputs="label scores",
    attrs={
        "coefficients": REQUIRED, "intercepts": [], "classlabels_ints": [], "multi_class": 0,
        "post_transform": "NONE",
    },
    source="ai.onnx.ml LinearClassifier-1",
)  # fmt: skip


def _score_rows(intercepts: list[float], labels: list[int]) -> int:
    return len(intercepts) or max(1, len(labels))


@linear_classifier.infer
def _(x: TypeInfo, *, intercepts: list[float], classlabels_ints: list[int], **_: Any) -> Any:
    rows = _score_rows(intercepts, classlabels_ints)
    return classes(x, 2 if rows == 1 and len(classlabels_ints) == 2 else rows)


@linear_classifier.reference
def _(
    x: np.ndarray,
    *,
    coefficients: list[float],
    intercepts: list[float],
    classlabels_ints: list[int],
    multi_class: int,
    post_transform: str,
) -> Any:
    """label = the class of the largest x·Wᵀ + b; one row of W scores the second of two classes"""
    rows = _score_rows(intercepts, classlabels_ints)
    scores = _linear(x, coefficients, intercepts, rows)
    if rows == 1:
        labels = classlabels_ints if len(classlabels_ints) == 2 else [0, 1]
        found = labels_of(labels, (scores[:, 0] > 0).astype(np.int64))
        if len(classlabels_ints) == 2:
            scores = two_scores(scores[:, 0], post_transform, signed=False)
            return found, scores.astype(np.float32)
    else:
        found = labels_of(classlabels_ints, scores.argmax(-1))
    return found, transformed(scores, post_transform).astype(np.float32)


_SVM = {
    "coefficients": REQUIRED, "kernel_params": [], "kernel_type": "LINEAR", "rho": [],
    "support_vectors": [], "post_transform": "NONE",
}  # fmt: skip


def _kernel(
    x: np.ndarray, vectors: np.ndarray, kind: str, params: list[float], add: float = 0.0
) -> np.ndarray:
    """K(x, v) + add of every sample and vector, (N, V)"""
    check_word("kernel_type", kind, "LINEAR", "POLY", "RBF", "SIGMOID")
    if x.shape[1] != vectors.shape[1]:
        raise ShapeError(
            tr(
                "expected {wanted} features, found {given}",
                given=x.shape[1],
                wanted=vectors.shape[1],
            )
        )
    gamma, coef0, degree = (*params, 0.0, 0.0, 0.0)[:3] if params else (0.0, 0.0, 0.0)
    if kind == "RBF":
        squares = (x * x).sum(-1)[:, None] + (vectors * vectors).sum(-1) - 2 * (x @ vectors.T)
        return np.exp(-np.float32(gamma) * np.maximum(squares, 0)) + np.float32(add)
    dot = x @ vectors.T
    if kind == "LINEAR":
        return dot + np.float32(add)
    dot = np.float32(gamma) * dot + np.float32(coef0)
    return (dot ** np.float32(degree) if kind == "POLY" else np.tanh(dot)) + np.float32(add)


svm_regressor = define_op(
    "SVMRegressor",
    inputs="x",
    attrs={**_SVM, "n_supports": 0, "one_class": 0},
    source="ai.onnx.ml SVMRegressor-1",
)
svm_regressor.infer(lambda x, **_: TypeInfo(DType.F32, (rows_of(x), 1)))


@svm_regressor.reference
def _(x: np.ndarray, **attrs: Any) -> np.ndarray:
    """y = Σ coefficient · K(x, support vector) + ρ; its sign (1 or −1) with `one_class`"""
    x, weights = samples_of(x), np.asarray(attrs["coefficients"], np.float32)
    rho = attrs["rho"][0] if attrs["rho"] else 0.0
    if attrs["n_supports"]:
        vectors = table(attrs["support_vectors"], attrs["n_supports"], "support_vectors")
        y = _kernel(x, vectors, attrs["kernel_type"], attrs["kernel_params"])
        y = (y @ weights + np.float32(rho))[:, None]
    else:
        y = _kernel(x, weights[None], "LINEAR", [], rho)
    if attrs["one_class"]:
        return np.where(y > 0, 1, -1).astype(np.float32)
    return transformed(y, attrs["post_transform"]).astype(np.float32)


svm_classifier = define_op(
    "SVMClassifier",
    inputs="x",
    outputs="label scores",
    attrs={**_SVM, "classlabels_ints": [], "prob_a": [], "prob_b": [], "vectors_per_class": []},
    source="ai.onnx.ml SVMClassifier-1",
)


@svm_classifier.infer
def _(x: TypeInfo, *, classlabels_ints: list[int], **attrs: Any) -> list[TypeInfo]:
    count = len(attrs["vectors_per_class"]) or len(classlabels_ints)
    if attrs["vectors_per_class"] and not attrs["prob_a"] and count > 2:
        count = count * (count - 1) // 2
    return classes(x, count)


def _pairwise(x: np.ndarray, attrs: dict[str, Any]) -> np.ndarray:
    """Decision values of each pair of classes i < j, (N, pairs); libsvm's layout of coefficients"""
    sizes = attrs["vectors_per_class"]
    vectors = table(attrs["support_vectors"], sum(sizes), "support_vectors")
    kernels = _kernel(x, vectors, attrs["kernel_type"], attrs["kernel_params"])
    weights = table(attrs["coefficients"], len(sizes) - 1, "coefficients")
    start = np.concatenate([[0], np.cumsum(sizes)])
    pieces = [slice(int(a), int(b)) for a, b in pairwise(start)]
    columns: list[np.ndarray] = []
    for i in range(len(sizes)):
        for j in range(i + 1, len(sizes)):
            a, b = pieces[i], pieces[j]
            of_i, of_j = kernels[:, a] @ weights[j - 1, a], kernels[:, b] @ weights[i, b]
            columns.append(of_i + of_j + np.float32(attrs["rho"][len(columns)]))
    return np.stack(columns, -1)


def _coupled(pairs: np.ndarray, count: int) -> np.ndarray:
    """Class probabilities (N, K) from those of pairs, r[i, j] = P(i | i or j).

    Minimises Σ (r[j, i]·p[i] − r[i, j]·p[j])². Source: Wu, Lin and Weng 2004, algorithm 2, with
    libsvm's limits (100 rounds, an error of 0.005 / K).
    """
    n = len(pairs)
    r = np.zeros((n, count, count), np.float32)
    upper = np.triu_indices(count, 1)
    r[:, upper[0], upper[1]] = pairs
    r[:, upper[1], upper[0]] = 1 - pairs
    q = -r.transpose(0, 2, 1) * r
    q[:, range(count), range(count)] = np.square(r).sum(1)
    out = np.empty((n, count), np.float32)
    for row in range(n):
        p, Q = np.full(count, 1 / count, np.float32), q[row]
        for _ in range(max(100, count)):
            qp = Q @ p
            pqp = p @ qp
            if np.abs(qp - pqp).max() < 0.005 / count:
                break
            for t in range(count):
                step = (pqp - qp[t]) / Q[t, t]
                p[t] += step
                pqp = (pqp + step * (step * Q[t, t] + 2 * qp[t])) / (1 + step) ** 2
                qp = (qp + step * Q[t]) / (1 + step)
                p /= 1 + step
        out[row] = p
    return out


@svm_classifier.reference
def _(x: np.ndarray, *, classlabels_ints: list[int], post_transform: str, **attrs: Any) -> Any:
    """The class with the most votes of the pairs of classes; scores are the pairs' decision values,
    or class probabilities by Platt's method. Without support vectors: the largest x·Wᵀ + ρ"""
    x, sizes = samples_of(x), attrs["vectors_per_class"]
    if not sizes:
        count = len(classlabels_ints)
        weights = table(attrs["coefficients"], count, "coefficients")
        scores = _kernel(x, weights, "LINEAR", [], attrs["rho"][0] if attrs["rho"] else 0.0)
        best = scores.argmax(-1)
    else:
        count = len(sizes)
        scores = _pairwise(x, attrs)
        first, second = np.triu_indices(count, 1)
        winners = np.where(scores > 0, first, second)
        best = np.stack([(winners == c).sum(-1) for c in range(count)], -1).argmax(-1)
        if attrs["prob_a"]:
            a, b = (np.asarray(attrs[f"prob_{k}"], np.float32) for k in "ab")
            pairs = np.clip(1 - logistic(scores * a + b), 1e-7, 1 - 1e-7)
            scores = _coupled(pairs.astype(np.float32), count)
    labels = labels_of(classlabels_ints or list(range(count)), best)
    if scores.shape[1] == 1:
        scores = two_scores(scores[:, 0], post_transform, signed=post_transform == "NONE")
    else:
        scores = transformed(scores, post_transform)
    return labels, scores.astype(np.float32)
