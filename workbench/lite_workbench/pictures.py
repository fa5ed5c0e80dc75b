"""Answers that are pictures: the classes of pixels in words, an image that a model made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from lite_engine.preprocess import PRESETS, Preprocess
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


def find_image(arrays: Sequence[np.ndarray], how: Preprocess | None) -> np.ndarray | None:
    """(H,W,C) uint8 RGB of the only output, in the numbers and the order that `how` gives the input
    (0…1 where it does not say). None for other outputs."""
    array = np.asarray(arrays[0])
    plain = array[0] if array.ndim == 4 and array.shape[0] == 1 else array
    if len(arrays) != 1 or plain.ndim != 3 or not {plain.shape[0], plain.shape[2]} & {1, 3}:
        return None
    image = plain if plain.shape[2] in (1, 3) else plain.transpose(1, 2, 0)
    if array.dtype.kind == "f":
        unit = PRESETS["unit"]
        mean, std = (how and how.mean) or unit["mean"], (how and how.std) or unit["std"]
        image = image * np.array(std, np.float32) + np.array(mean, np.float32)
    pixels: np.ndarray = np.clip(np.round(image), 0, 255).astype(np.uint8)
    return pixels[..., ::-1] if how and how.colour == "bgr" else pixels


def class_name(labels: Sequence[str], number: int) -> str:
    """The label, or the number where there is none."""
    return labels[number] if 0 <= number < len(labels) else tr("class {number}", number=number)
