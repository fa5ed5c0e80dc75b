"""Which of the boxes that overlap stay, kind by kind as the papers have it: whole matrices at once.

(N,4) corners in pixels, (N,) classes and (N,) scores → the boxes that stay, best first: their
places, their corners, and their scores. Scores are distinct.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Kept(NamedTuple):
    places: np.ndarray
    boxes: np.ndarray
    scores: np.ndarray


class Crowd(NamedTuple):
    """Boxes best first, and how each pair overlaps: 0 for classes that do not meet."""

    order: np.ndarray
    boxes: np.ndarray
    scores: np.ndarray
    iou: np.ndarray
    apart: np.ndarray


def crowd(boxes: np.ndarray, classes: np.ndarray, scores: np.ndarray, agnostic: bool) -> Crowd:
    order = np.argsort(-scores, kind="stable")
    boxes, scores = boxes[order].astype(np.float64), scores[order].astype(np.float64)
    a, b = boxes[:, None], boxes[None]
    common = np.clip(
        np.minimum(a[..., 2:], b[..., 2:]) - np.maximum(a[..., :2], b[..., :2]), 0, None
    )
    area = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
    both = common.prod(-1)
    iou = both / (area[:, None] + area[None] - both)
    middle = (boxes[:, :2] + boxes[:, 2:]) / 2
    distance = ((middle[:, None] - middle[None]) ** 2).sum(-1)
    hull = np.maximum(a[..., 2:], b[..., 2:]) - np.minimum(a[..., :2], b[..., :2])
    meet = (classes[order][:, None] == classes[order][None]) | agnostic
    return Crowd(order, boxes, scores, iou * meet, distance / (hull**2).sum(-1))


def kept(c: Crowd, places: list[int], scores: np.ndarray, boxes: np.ndarray | None = None) -> Kept:
    best = sorted(places, key=lambda i: -scores[i])
    return Kept(c.order[best], (c.boxes if boxes is None else boxes)[best], scores[best])


def hard(c: Crowd, overlap: float) -> Kept:
    return kept(c, greedy(c.iou > overlap), c.scores)


def diou(c: Crowd, overlap: float) -> Kept:
    """Equation 8 of the paper: IoU less the share of the distance."""
    return kept(c, greedy((c.iou - c.apart > overlap) & (c.iou > 0)), c.scores)


def weighted(c: Crowd, overlap: float) -> Kept:
    """Each chosen box becomes the mean of what falls to it."""
    chosen = greedy(c.iou > overlap)
    owner = np.array([next(i for i in chosen if i == k or c.iou[i, k] > overlap)
                      for k in range(len(c.scores))])  # fmt: skip
    share = (owner[None] == np.arange(len(owner))[:, None]) * c.scores
    mean = share @ c.boxes / np.maximum(share.sum(1, keepdims=True), 1e-30)
    return kept(c, chosen, c.scores, mean)


def greedy(covers: np.ndarray) -> list[int]:
    chosen: list[int] = []
    for k in range(len(covers)):
        if not covers[chosen, k].any():
            chosen.append(k)
    return chosen


def soft(c: Crowd, overlap: float | None, sigma: float, threshold: float) -> Kept:
    """Linear where there is an `overlap`, else Gaussian (equations 1 and 2 of the paper)."""
    scores, left, order = c.scores.copy(), np.ones(len(c.scores), bool), []
    while (left & (scores > threshold)).any():
        best = int(np.where(left, scores, -1).argmax())
        left[best] = False
        order.append(best)
        iou = c.iou[best]
        factor = (
            np.exp(-(iou**2) / sigma) if overlap is None else np.where(iou > overlap, 1 - iou, 1)
        )
        scores = np.where(left, scores * factor, scores)
    return kept(c, order, scores)


def matrix(c: Crowd, linear: bool, sigma: float, threshold: float) -> Kept:
    """SOLOv2's pseudocode."""
    iou = np.triu(c.iou, 1)
    most = iou.max(0)[:, None]  # of the row's box, with better ones
    if linear:
        factor = (1 - iou) / (1 - most)
    else:
        factor = np.exp(-(iou**2 - most**2) / sigma)
    scores = c.scores * np.where(iou > 0, factor, np.inf).min(0).clip(None, 1)
    return kept(c, list(np.flatnonzero(scores > threshold)), scores)
