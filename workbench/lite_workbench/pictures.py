"""Answers that are pictures: the classes of pixels in words, an image that a model made."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from lite_messages import tr

Item = dict[str, Any]


def mask_items(seen: np.ndarray, labels: Sequence[str], what: str) -> list[Item]:
    """The classes of (H,W) with their shares of `what`, largest first."""
    numbers, counts = np.unique(seen, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    return [
        {
            "label": class_name(labels, int(numbers[i])),
            "shape": "×".join(map(str, seen.shape)),
            "text": tr("{counts:.1f} % of {what}", counts=100 * counts[i] / seen.size, what=what),
        }
        for i in order
    ]


def image_of(made: Mapping[str, Any]) -> np.ndarray:
    """What the native runtime says of an image → (H,W,3) uint8 RGB, or (H,W,1)."""
    image = np.frombuffer(b64decode(made["pixels"]), np.uint8).reshape(*made["size"], 3)
    return image[..., :1] if made["grey"] else image


def class_name(labels: Sequence[str], number: int) -> str:
    """The label, or the number where there is none."""
    return labels[number] if 0 <= number < len(labels) else tr("class {number}", number=number)
