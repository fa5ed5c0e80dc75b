"""Which pixels a crop takes: against exact fractions, where the runtime has floats."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from lite_engine.pipeline.native import NativePipeline

from .pipes import document, model, png

pytestmark = pytest.mark.cpu
WHOLE = np.array([[0, 1, 0, 0, 1, 1]], np.float32)  # label, score and corners: all that is seen


def crops(boxes: np.ndarray, size: tuple[int, int], grow: float, pixels: bool) -> np.ndarray:
    """x0, y0, x1, y1 of what is cut out of a photo (width, height) for these boxes, whose numbers
    are parts of the input, or its pixels."""
    width, height = size
    scale = np.array([width, height] * 2) if pixels else 1
    rows = np.concatenate(
        [np.zeros((len(boxes), 1)), np.linspace(1, 0.5, len(boxes))[:, None], boxes * scale], axis=1
    )
    how = [
        model("find", size=[height, width], read={"kind": "boxes", "overlap": 1}),
        model("look", size=[8, 8], read={"kind": "boxes"}),
    ]
    stages = [{"model": "find"}, {"crop": {"grow": grow}}, {"model": "look"}]
    native = NativePipeline(
        document(how, stages), lambda i, _: [WHOLE if i else rows.astype(np.float32)]
    )
    native.run(png(np.zeros((height, width, 3), np.uint8)))
    items = json.loads(native.answer(times=False))["answers"]["find"]["items"]
    return np.array([item["answers"]["look"]["items"][0]["box"] for item in items])


@pytest.mark.parametrize("grow", [Fraction(0), Fraction(1, 4), Fraction(1, 3)])
@pytest.mark.parametrize("pixels", [False, True])
@pytest.mark.parametrize("size", [(97, 61), (320, 240), (1001, 333)])
def test_pixels_of_a_crop_are_those_of_exact_fractions(
    size: tuple[int, int], pixels: bool, grow: Fraction
) -> None:
    """Boxes begin and end on pixels, on quarters of one, or anywhere."""
    rng = np.random.default_rng(size[0])
    exact: list[list[Fraction]] = []
    for steps in (1, 4, 64):
        for _ in range(30):
            low, high = np.sort(rng.integers(0, [steps * n + 1 for n in size], (2, 2)), axis=0)
            high = np.minimum(low + np.maximum(high - low, 1), [steps * n for n in size])
            low = np.minimum(low, high - 1)
            exact.append([Fraction(int(v), steps) for v in (*low, *high)])
    parts = np.array([[float(v / size[i % 2]) for i, v in enumerate(box)] for box in exact])
    made = crops(parts, size, float(grow), pixels)
    for got, (x0, y0, x1, y1) in zip(made, exact, strict=True):
        wide, high = (x1 - x0) * grow, (y1 - y0) * grow
        low = [max(math.floor(x0 - wide), 0), max(math.floor(y0 - high), 0)]
        end = [min(math.ceil(x1 + wide), size[0]), min(math.ceil(y1 + high), size[1])]
        assert got.tolist() == [*low, *end], (x0, y0, x1, y1)


def test_an_upright_line_is_as_large_as_its_corners_say() -> None:
    """Its sides are shorter than a whole number only by rounding."""
    height, width = 64, 101
    how = [
        model("find", size=[height, width], read={"kind": "regions", "unclip": 0}),
        {**model("read", size=[19, 1], fit="height"), "widths": list(range(1, 100))},
    ]
    stages = [{"model": "find"}, {"crop": {}}, {"model": "read"}]
    found = np.zeros((1, 1, height, width), np.float32)
    widths: list[int] = []

    def run(index: int, x: np.ndarray) -> list[np.ndarray]:
        if index == 0:
            return [found]
        widths.append(x.shape[-1])
        return [np.zeros(3, np.float32)]

    native = NativePipeline(document(how, stages), run)
    for length in range(21, 90, 3):
        found[0, 0, 20:40, 5 : 5 + length] = 0.9
        native.run(png(np.zeros((height, width, 3), np.uint8)))
        item = json.loads(native.answer(times=False))["answers"]["find"]["items"][0]
        x, y = np.array(item["corners"]).reshape(4, 2).T
        assert widths[-1] == round(float(x.max() - x.min()))
        assert round(float(y.max() - y.min())) == 19
