"""Regions of one probability map, read as PP-OCR reads its text detector's (DB).

A region is a set of pixels above 0.3 that touch, corners included; its box is the smallest
rectangle at any angle. Boxes with a side below 3 pixels or a mean probability below 0.6 go; the
others grow by area · 1.5 / perimeter on each side, because the detector learns shrunken text.
Source: Liao et al., "Real-time Scene Text Detection with Differentiable Binarization", 2020; the
numbers are PaddleOCR's defaults (det_db_thresh, det_db_box_thresh, det_db_unclip_ratio, min_size).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

MAP_THRESHOLD = 0.3
BOX_THRESHOLD = 0.6
MIN_SIDE_PIXELS = 3
UNCLIP_RATIO = 1.5


def find_regions(outputs: Mapping[str, np.ndarray]) -> list[dict[str, Any]] | None:
    """Regions of one map (1,1,H,W) or (1,H,W,1), largest first; `box` bounds the rectangle, as
    parts of the input. None for other outputs."""
    array = _probability_map(outputs)
    if array is None:
        return None
    height, width = array.shape
    found = []
    for pixels in _components(array > MAP_THRESHOLD):
        rectangle = _smallest_rectangle(pixels)
        if min(rectangle.sides) < MIN_SIDE_PIXELS:
            continue
        score = rectangle.mean(array)
        if score < BOX_THRESHOLD:
            continue
        low, high = rectangle.grown(UNCLIP_RATIO).bounds()
        box = np.clip(np.concatenate([low, high]) / [width, height, width, height], 0, 1)
        found.append((np.prod(rectangle.sides), score, box.tolist()))
    found.sort(key=lambda item: -item[0])
    return [
        {"label": f"region {n}", "score": score, "box": box}
        for n, (_, score, box) in enumerate(found, 1)
    ]


def _probability_map(outputs: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """(H,W) floats in 0…1, or None."""
    if len(outputs) != 1:
        return None
    (whole,) = outputs.values()
    array = np.squeeze(whole)
    if array.ndim != 2 or array.dtype.kind != "f" or whole.ndim != 4 or min(array.shape) < 8:
        return None
    return array if array.min() >= 0 and array.max() <= 1 else None


def _components(mask: np.ndarray) -> list[np.ndarray]:
    """Connected regions of (H,W) → per region the ends of its runs, (N,2) x and y.

    Each row is cut into runs; a run joins the runs of the row above that it touches.
    """
    parent: list[int] = []
    runs: list[tuple[int, int, int]] = []  # y, first x, last x

    def top(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    above: list[int] = []
    for y, row in enumerate(mask):
        edges = np.flatnonzero(np.diff(row.astype(np.int8), prepend=0, append=0))
        here: list[int] = []
        for x0, end in edges.reshape(-1, 2).tolist():
            index = len(runs)
            runs.append((y, x0, end - 1))
            parent.append(index)
            here.append(index)
            for other in above:
                if runs[other][1] <= end and runs[other][2] >= x0 - 1:
                    parent[top(other)] = top(index)
        above = here
    found: dict[int, list[tuple[int, int]]] = {}
    for index, (y, x0, x1) in enumerate(runs):
        found.setdefault(top(index), []).extend([(x0, y), (x1, y)])
    return [np.array(points, np.float64) for points in found.values()]


@dataclass
class _Rectangle:
    """`axes` (2,2) are two unit vectors, `low` and `high` (2,) the extent along them."""

    axes: np.ndarray
    low: np.ndarray
    high: np.ndarray

    @property
    def sides(self) -> np.ndarray:
        extent: np.ndarray = self.high - self.low
        return extent

    def grown(self, ratio: float) -> _Rectangle:
        """Every side moved outwards by area · ratio / perimeter."""
        by = np.prod(self.sides) * ratio / (2 * self.sides.sum())
        return _Rectangle(self.axes, self.low - by, self.high + by)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Least and greatest x and y."""
        ends = ((a, b) for a in (self.low[0], self.high[0]) for b in (self.low[1], self.high[1]))
        corners = np.array(list(ends)) @ self.axes
        return corners.min(axis=0), corners.max(axis=0)

    def mean(self, array: np.ndarray) -> float:
        """Mean of the elements of (H,W) whose centres lie less than half a pixel outside."""
        (x0, y0), (x1, y1) = (np.round(p).astype(int) for p in self.bounds())
        x0, y0 = max(x0, 0), max(y0, 0)
        part = array[y0 : y1 + 1, x0 : x1 + 1]
        ys, xs = np.indices(part.shape)
        at = np.stack([xs + x0, ys + y0], axis=-1) @ self.axes.T
        inside = ((at > self.low - 0.5) & (at < self.high + 0.5)).all(axis=-1)
        return float(part[inside].mean())


def _smallest_rectangle(points: np.ndarray) -> _Rectangle:
    """The rectangle of least area around (N,2) points: one side lies along a side of their hull."""
    hull = _hull(points)
    edges = np.roll(hull, -1, axis=0) - hull
    lengths = np.hypot(*edges.T)
    along = edges[lengths > 0] / lengths[lengths > 0, None]
    if not len(along):
        along = np.array([[1.0, 0.0]])  # one pixel
    axes = np.stack([along, along[:, ::-1] * [-1, 1]], axis=1)  # (edges, 2, 2)
    at = hull @ axes.transpose(0, 2, 1)  # (edges, points, 2)
    low, high = at.min(axis=1), at.max(axis=1)
    best = int(np.argmin(np.prod(high - low, axis=1)))
    return _Rectangle(axes[best], low[best], high[best])


def _hull(points: np.ndarray) -> np.ndarray:
    """Convex hull of (N,2), counter-clockwise (Andrew's monotone chain)."""
    ordered = [tuple(p) for p in np.unique(points, axis=0).tolist()]
    if len(ordered) < 3:
        return np.array(ordered)

    def chain(sequence: list[tuple[float, ...]]) -> list[tuple[float, ...]]:
        out: list[tuple[float, ...]] = []
        for p in sequence:
            while len(out) > 1 and _turn(out[-2], out[-1], p) <= 0:
                out.pop()
            out.append(p)
        return out[:-1]

    return np.array(chain(ordered) + chain(ordered[::-1]))


def _turn(a: tuple[float, ...], b: tuple[float, ...], c: tuple[float, ...]) -> float:
    """Twice the signed area of a triangle: positive for a left turn."""
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
