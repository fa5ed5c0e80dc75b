"""How two answers differ: letters by the fewest edits, boxes matched by overlap, classes by rank,
masks by pixel."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_messages import tr, trn

from .masks import part_of

if TYPE_CHECKING:
    from .answers import Answer

#: Boxes of one label with this much of their union in common are the same object (Pascal VOC).
SAME_BOX = 0.5
#: Colours of classes in a mask (Okabe-Ito), and of pixels that differ.
_CLASSES = ((86, 180, 233), (0, 158, 115), (240, 228, 66), (204, 121, 167), (0, 114, 178))
_DIFFERENT = (213, 94, 0)


def mark_different(a: Answer, b: Answer) -> str:
    """Marks what `b` has otherwise (`bad` of its items; ∅ stands where a letter is missing, and a
    box of `a` that `b` lacks is marked in `a`). A sentence about boxes and masks, else ""."""
    if a.kind != b.kind:
        return ""
    if a.kind == "text":
        b.items = _edited(a.items, b.items)
    elif a.kind == "boxes":
        return _matched(a.items, b.items)
    elif a.mask is not None and b.mask is not None and a.mask.shape == b.mask.shape:
        share = np.floor(1e4 * (a.mask == b.mask).mean()) / 100  # 100 % only where all are equal
        return tr("{share:.2f} % of the pixels have the same class", share=share)
    else:
        for i, item in enumerate(b.items):
            item["bad"] = i >= len(a.items) or a.items[i]["label"] != item["label"]
    return ""


def _edited(a: Sequence[dict[str, Any]], b: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """`b` with marks where the fewest edits (Levenshtein) lead from the labels of `a` to it."""
    cost = np.zeros((len(a) + 1, len(b) + 1), int)
    cost[:, 0], cost[0] = np.arange(len(a) + 1), np.arange(len(b) + 1)
    for i, one in enumerate(a, 1):
        for j, other in enumerate(b, 1):
            swap = cost[i - 1, j - 1] + (one["label"] != other["label"])
            cost[i, j] = min(swap, cost[i - 1, j] + 1, cost[i, j - 1] + 1)
    made, i, j = [], len(a), len(b)
    while i or j:
        differ = bool(i and j and a[i - 1]["label"] != b[j - 1]["label"])
        if i and j and cost[i, j] == cost[i - 1, j - 1] + differ:
            i, j = i - 1, j - 1
            made.append({**b[j], "bad": differ})
        elif j and cost[i, j] == cost[i, j - 1] + 1:
            j -= 1
            made.append({**b[j], "bad": True})
        else:
            i -= 1
            made.append({"label": "∅", "score": 0.0, "bad": True})
    return made[::-1]


def _matched(a: Sequence[dict[str, Any]], b: Sequence[dict[str, Any]]) -> str:
    """Each box of `b`, best first, takes the box of `a` with its label that it overlaps most."""
    free, overlaps = list(range(len(a))), []
    for item in b:
        own = [k for k in free if a[k]["label"] == item["label"]]
        best = max(own, key=lambda k: iou(a[k]["box"], item["box"]), default=None)
        found = iou(a[best]["box"], item["box"]) if best is not None else 0.0
        item["bad"] = found < SAME_BOX
        if best is not None and not item["bad"]:
            free.remove(best)
            overlaps.append(found)
    for k, item in enumerate(a):
        item["bad"] = k in free
    most = max(len(a), len(b))
    if not most:
        return ""
    said = trn("{matched} of {n} box matches", "{matched} of {n} boxes match", most,
               matched=len(overlaps))  # fmt: skip
    if not overlaps:
        return said
    return tr("{said}, mean IoU {iou:.3f}", said=said, iou=float(np.mean(overlaps)))


def iou(a: Sequence[float], b: Sequence[float]) -> float:
    """Intersection over union of two boxes x0, y0, x1, y1."""
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    common = max(width, 0.0) * max(height, 0.0)
    whole = sum((c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)) - common
    return common / whole if whole > 0 else 0.0


def masked(
    image: bytes,
    mask: np.ndarray,
    other: np.ndarray | None = None,
    window: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0),
) -> bytes:
    """PNG of the image with the classes of `mask` over it; where `other` has another class the
    pixel is orange. Class 0 is left clear. The mask covers the `window`, as in an `Answer`."""
    from PIL import Image

    with Image.open(io.BytesIO(image)) as opened:
        whole = np.array(opened.convert("RGB"), np.float32)
    base = whole[part_of(whole.shape[:2], window)]
    rows = (np.arange(base.shape[0]) * mask.shape[0]) // base.shape[0]
    columns = (np.arange(base.shape[1]) * mask.shape[1]) // base.shape[1]
    at = np.ix_(rows, columns)
    classes = mask.astype(int)[at]
    colours = np.array(_CLASSES, np.float32)[(classes - 1) % len(_CLASSES)]
    out = np.where((classes > 0)[..., None], (base + colours) / 2, base)
    if other is not None and other.shape == mask.shape:
        out = np.where((other != mask)[at][..., None], np.array(_DIFFERENT, np.float32), out)
    file = io.BytesIO()
    base[:] = out
    Image.fromarray(whole.astype(np.uint8)).save(file, "PNG")
    return file.getvalue()
