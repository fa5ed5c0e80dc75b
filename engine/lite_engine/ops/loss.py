"""NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: how well class scores fit labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import TypeInfo
from ._core import define_op
from ._helpers import check_word, wide

_ATTRS = {"ignore_index": None, "reduction": "mean"}


def _loss_type(scores: TypeInfo, labels: TypeInfo, reduction: str) -> TypeInfo:
    check_word("reduction", reduction, "none", "mean", "sum")
    return scores.with_shape(labels.dims if reduction == "none" else ())


def _loss(
    log_p: np.ndarray,
    labels: np.ndarray,
    weights: np.ndarray | None,
    ignore_index: int | None,
    reduction: str,
) -> np.ndarray:
    """−w[label] · log p[label] of every position; log p (N, C, d…), labels (N, d…). The mean is
    over the weights. Raises ShapeError for a label outside the classes."""
    check_word("reduction", reduction, "none", "mean", "sum")
    counts = np.ones(labels.shape, bool) if ignore_index is None else labels != ignore_index
    at = np.where(counts, labels, 0)
    classes = log_p.shape[1]
    if at.size and not -classes <= at.min() <= at.max() < classes:
        raise ShapeError(tr("a label lies outside the {classes} classes", classes=classes))
    scale = np.ones(classes, log_p.dtype) if weights is None else weights.astype(log_p.dtype)
    scale = np.where(counts, scale[at], 0)
    loss = -np.take_along_axis(log_p, at[:, None].astype(np.int64), 1)[:, 0] * scale
    if reduction == "none":
        return loss
    return loss.sum() / scale.sum() if reduction == "mean" else loss.sum()


negative_log_likelihood = define_op(
    "NegativeLogLikelihoodLoss",
    inputs="log_p labels weights?",
    attrs=_ATTRS,
    source="ONNX NegativeLogLikelihoodLoss-22",
)
negative_log_likelihood.infer(
    lambda log_p, labels, *_, reduction, **__: _loss_type(log_p, labels, reduction)
)


@negative_log_likelihood.reference
def _(log_p: np.ndarray, labels: np.ndarray, weights: np.ndarray | None, **attrs: Any) -> Any:
    """−w[label] · log p[label], averaged, summed or as it is"""
    return _loss(wide(log_p), labels, weights, **attrs).astype(log_p.dtype)


softmax_cross_entropy = define_op(
    "SoftmaxCrossEntropyLoss",
    inputs="scores labels weights?",
    outputs="loss log_p",
    attrs=_ATTRS,
    source="ONNX SoftmaxCrossEntropyLoss-13",
    training=True,
)
softmax_cross_entropy.infer(
    lambda scores, labels, *_, reduction, **__: [
        _loss_type(scores, labels, reduction),
        scores.with_shape(scores.shape),
    ]
)


@softmax_cross_entropy.reference
def _(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray | None, **attrs: Any) -> Any:
    """The loss of log p = log softmax(scores) along axis 1, and log p"""
    x = wide(scores)
    x = x - x.max(1, keepdims=True)
    log_p = x - np.log(np.exp(x).sum(1, keepdims=True))
    loss = _loss(log_p, labels, weights, **attrs)
    return loss.astype(scores.dtype), log_p.astype(scores.dtype)
