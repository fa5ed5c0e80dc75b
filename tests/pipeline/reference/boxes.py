"""Outputs that are about places in a picture: boxes, classes of pixels.

Boxes are [x0, y0, x1, y1] as parts of the model's input, 0…1; `Placement` knows the picture's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from lite_engine.adapter import OVERLAP, THRESHOLD
from lite_engine.preprocess import Placement

MAX_CLASSES = 256

Item = dict[str, Any]


def find_boxes(
    outputs: Mapping[str, np.ndarray],
    labels: Sequence[str],
    size: tuple[int, int] | None,
    threshold: float = THRESHOLD,
    overlap: float = OVERLAP,
) -> list[Item] | None:
    """Boxes best first, or None when the outputs are not those of a detector.

    Read are TFLite's post-processing (boxes, classes, scores, count), rows of label, score and
    corners (Paddle's multiclass_nms, 6 columns; Caffe's DetectionOutput, 7), and (1,N,4) corners
    with (1,N,C) scores whose class 0 is the background; the last are thinned out here. `size` is
    the input's (height, width), for boxes in pixels.
    """
    arrays = [np.asarray(a) for a in outputs.values()]
    found = _post_processed(arrays)
    thin = found is None
    if found is None:
        found = _rows(arrays)
        thin = False
    if found is None:
        found = _decoded(arrays)
        thin = True
    if found is None:
        return None
    boxes, classes, scores = found
    keep = scores > threshold
    boxes, classes, scores = boxes[keep], classes[keep], scores[keep]
    if boxes.size and boxes.max() > 2 and size is not None:
        boxes = boxes / np.array([size[1], size[0]] * 2, np.float32)
    best_first = np.argsort(-scores, kind="stable").tolist()
    order = suppress(boxes, classes, scores, overlap) if thin else best_first
    return [
        {
            "label": _name(labels, int(classes[i])),
            "index": int(classes[i]),
            "score": float(scores[i]),
            "box": [float(v) for v in boxes[i]],
        }
        for i in order
    ]


_Found = tuple[np.ndarray, np.ndarray, np.ndarray]


def _post_processed(arrays: list[np.ndarray]) -> _Found | None:
    """TFLite_Detection_PostProcess: boxes are y0, x0, y1, x1."""
    if len(arrays) != 4 or arrays[0].ndim != 3 or arrays[0].shape[2] != 4:
        return None
    boxes, classes, scores, count = arrays
    if not classes.shape == scores.shape == boxes.shape[:2] or count.size != 1:
        return None
    n = int(count.ravel()[0])
    return boxes[0, :n, [1, 0, 3, 2]].T, classes[0, :n], scores[0, :n]


def _rows(arrays: list[np.ndarray]) -> _Found | None:
    rows = next((a for a in arrays if a.dtype.kind == "f" and a.ndim in (2, 4)), None)
    if rows is None or rows.shape[-1] not in (6, 7) or (rows.ndim == 4) != (rows.shape[-1] == 7):
        return None
    if (
        any(a is not rows and a.dtype.kind == "f" for a in arrays)
        or rows.shape[:-2] != (1, 1)[: rows.ndim - 2]
    ):
        return None
    rows = rows.reshape(-1, rows.shape[-1])[:, -6:]
    whole = rows[:, 0] == np.round(rows[:, 0])
    if not whole.all() or (rows[:, 1] > 1).any():
        return None
    rows = rows[rows[:, 0] >= 0]
    return rows[:, 2:], rows[:, 0], rows[:, 1]


def is_one_row(array: np.ndarray) -> bool:
    """Is (1,1,1,7) what Caffe's DetectionOutput says of one box, or of none (all -1), rather than
    seven classes?"""
    if array.shape != (1, 1, 1, 7) or array.dtype.kind != "f":
        return False
    image, label, score, *corners = array.ravel().tolist()
    found = image == 0 and label == round(label) and 0 < score <= 1
    return bool((array == -1).all()) or (
        found and corners[2] > corners[0] and corners[3] > corners[1]
    )


def _decoded(arrays: list[np.ndarray]) -> _Found | None:
    """(1,N,4) corners and (1,N,C) scores, in either order."""
    if len(arrays) != 2 or any(a.ndim != 3 or a.dtype.kind != "f" for a in arrays):
        return None
    boxes, scores = arrays if arrays[0].shape[2] == 4 else arrays[::-1]
    if boxes.shape[2] != 4 or boxes.shape[:2] != scores.shape[:2] or scores.shape[2] < 2:
        return None
    classes = scores[0, :, 1:].argmax(axis=1) + 1
    best = scores[0, np.arange(len(classes)), classes]
    sure = boxes[0][best >= min(THRESHOLD, float(best.max(initial=0)))]
    if not (sure[:, 2:] > sure[:, :2]).all():
        return None  # offsets from anchors that the file does not hold
    return boxes[0], classes, best


def suppress(
    boxes: np.ndarray, classes: np.ndarray, scores: np.ndarray, overlap: float
) -> list[int]:
    """Indices of the boxes that no better one of their class covers; (N,4), (N,), (N,)."""
    kept: list[int] = []
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    for i in np.argsort(-scores, kind="stable"):
        others = [k for k in kept if classes[k] == classes[i]]
        low = np.maximum(boxes[i, :2], boxes[others, :2])
        high = np.minimum(boxes[i, 2:], boxes[others, 2:])
        common = np.clip(high - low, 0, None).prod(axis=1)
        if not (common > overlap * (area[i] + area[others] - common)).any():
            kept.append(int(i))
    return kept


def find_mask(
    outputs: Mapping[str, np.ndarray], placed: Placement | None = None, *, binary: bool = False
) -> np.ndarray | None:
    """(H,W) classes of pixels over the picture, or over the center that was cut out. None when no
    output is an image of classes or of class scores; `binary` also takes one plane of
    probabilities, of class 1."""
    arrays = [np.asarray(a) for a in outputs.values()]
    alone = len(arrays) == 1  # beside others, planes of floats may be anything
    maps = [_class_map(a) for a in arrays if alone or a.dtype.kind in "iu"]
    classes = next((m for m in maps if m is not None), None)
    if classes is None and binary and alone and np.squeeze(arrays[0]).ndim == 2:
        classes = (np.squeeze(arrays[0]) > 0.5).astype(np.int64)
    if classes is None:
        return None
    return classes if placed is None else placed.part_of(classes)


def _class_map(array: np.ndarray) -> np.ndarray | None:
    """(H,W) of class numbers."""
    plain = array[0] if array.ndim in (3, 4) and array.shape[0] == 1 else None
    if plain is None:
        return None
    if array.dtype.kind in "iu" and array.itemsize >= 4:
        plain = plain[0] if plain.ndim == 3 and plain.shape[0] == 1 else plain
        plain = plain[..., 0] if plain.ndim == 3 and plain.shape[-1] == 1 else plain
        wide = plain.ndim == 2 and min(plain.shape) >= 8
        return plain if wide and plain.min() >= 0 and plain.max() < MAX_CLASSES else None
    if plain.ndim != 3:
        return None
    axis = 0 if plain.shape[0] < min(plain.shape[1:]) else 2
    sides = [n for i, n in enumerate(plain.shape) if i != axis]
    if not 2 <= plain.shape[axis] <= MAX_CLASSES or min(sides) <= max(8, plain.shape[axis]):
        return None
    classes: np.ndarray = plain.argmax(axis=axis)
    return classes


def _name(labels: Sequence[str], number: int) -> str:
    return labels[number] if 0 <= number < len(labels) else f"class {number}"
