"""Detectors that say which pixels each thing has: against Pillow's resize of the whole mask."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest
from lite_engine.pipeline.native import NativePipeline
from PIL import Image

from .pipes import document, model, png
from .reference.boxes import suppress

pytestmark = pytest.mark.cpu
rng = np.random.default_rng(23)
SIZE, WEIGHTS, LABELS = 96, 8, ["a", "b", "c"]


def pixels_of(mask: dict[str, Any]) -> np.ndarray:
    """COCO's uncompressed runs: outside and inside in turn, column by column."""
    values = np.arange(len(mask["counts"])) % 2 == 1
    flat = np.repeat(values, mask["counts"])
    height, width = mask["size"]
    assert flat.size == height * width and min(mask["counts"][1:], default=1) > 0
    return flat.reshape(width, height).T


def resized(levels: np.ndarray, width: int, height: int) -> np.ndarray:
    image = Image.fromarray(levels.astype(np.float32), "F")
    return np.asarray(image.resize((width, height), Image.Resampling.BILINEAR))


def inside(box: np.ndarray, height: int, width: int) -> np.ndarray:
    y, x = np.mgrid[:height, :width] + 0.5
    return (x >= box[0]) & (x < box[2]) & (y >= box[1]) & (y < box[3])


def ran(
    outputs: list[np.ndarray], photo: np.ndarray, **preprocess: Any
) -> tuple[list[dict[str, Any]], np.ndarray]:
    """What is found, and what is drawn."""
    read = {"kind": "boxes", "threshold": 0.3, "overlap": 0.3}
    how = model("m", len(outputs), labels=LABELS, read=read, size=[SIZE, SIZE], **preprocess)
    given = [np.ascontiguousarray(o) for o in outputs]
    native = NativePipeline(document([how]), lambda *_: given)
    native.run(png(photo))
    items = json.loads(native.answer(times=False))["answers"]["m"]["items"]
    return items, np.asarray(Image.open(io.BytesIO(native.drawn())))


def weighted(objectness: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows (N,K), prototypes (M,h,w), the scores of the rows' best class, and that class."""
    n, side = 40, SIZE // 4
    centre, size = rng.random((n, 2)) * 60 + 18, rng.random((n, 2)) * 30 + 10
    scores, sure = rng.random((n, len(LABELS))), rng.random((n, 1)) * 0.5 + 0.5
    weights = rng.standard_normal((n, WEIGHTS))
    parts = [centre, size, *([sure] if objectness else []), scores, weights]
    small = rng.standard_normal((WEIGHTS, 6, 6))
    prototypes = np.stack([resized(p, side, side) for p in small])
    total = scores * sure if objectness else scores
    rows = np.concatenate(parts, axis=1).astype(np.float32)
    return rows, prototypes, total.max(1), total.argmax(1)


@pytest.mark.parametrize("objectness", [True, False])
@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("letterbox", [True, False])
def test_rows_with_weights_of_prototypes(
    objectness: bool, turned: bool, last: bool, letterbox: bool
) -> None:
    rows, prototypes, value, best = weighted(objectness)
    top = 24 if letterbox else 0  # a photo of half the height lies in the middle of the input
    height = SIZE - 2 * top
    photo = rng.integers(0, 256, (height, SIZE, 3), np.uint8)
    items, _ = ran(
        [rows.T[None] if turned else rows[None],
         prototypes.transpose(1, 2, 0)[None] if last else prototypes[None]],
        photo, fit="letterbox" if letterbox else "stretch",
    )  # fmt: skip
    boxes = np.concatenate([rows[:, :2] - rows[:, 2:4] / 2, rows[:, :2] + rows[:, 2:4] / 2], axis=1)
    sure = np.flatnonzero(value > 0.3)
    kept = sure[suppress(boxes[sure], best[sure], value[sure], 0.3)]
    assert [i["index"] for i in items] == best[kept].tolist() and len(kept) > 3
    for item, i in zip(items, kept, strict=True):
        levels = np.tensordot(rows[i, -WEIGHTS:], prototypes, 1)
        whole = resized(levels, SIZE, SIZE)[top : SIZE - top]
        wanted = (whole > 0) & inside(boxes[i] - [0, top, 0, top], height, SIZE)
        got = pixels_of(item["mask"])
        assert got.shape == (height, SIZE)
        assert (got != wanted).sum() <= 0.01 * max(wanted.sum(), 100)


def test_boxes_with_a_mask_each() -> None:
    """Mask R-CNN: probabilities over the box."""
    boxes = np.array([[10, 12, 66, 80], [30, 4, 94, 60]], np.float32)
    masks = np.stack([resized(rng.random((5, 5)), 28, 28) for _ in boxes])[:, None]
    labels, scores = np.array([2, 1], np.int64), np.array([0.9, 0.8], np.float32)
    photo = rng.integers(0, 256, (SIZE, SIZE, 3), np.uint8)
    items, drawn = ran([boxes, labels, scores, masks], photo)
    assert [i["label"] for i in items] == ["c", "b"]
    either = np.zeros((SIZE, SIZE), bool)
    for item, box, mask in zip(items, boxes.astype(int), masks, strict=True):
        wanted = np.zeros((SIZE, SIZE), bool)
        size = box[2] - box[0], box[3] - box[1]
        wanted[box[1] : box[3], box[0] : box[2]] = resized(mask[0], *size) > 0.5
        got = pixels_of(item["mask"])
        assert (got != wanted).sum() <= 0.01 * wanted.sum() and wanted.sum() > 500
        either |= got
    assert not np.array_equal(drawn[either], photo[either])
    changed = (drawn != photo).any(axis=2)
    assert changed[either].mean() > 0.95 and changed[~either].mean() < 0.35  # frames and labels


def test_masks_of_crops_are_pixels_of_the_photo() -> None:
    box = np.array([[0, 0.9, 36, 24, 84, 72]], np.float32)  # label, score, corners
    masks = [np.array([[12, 12, 36, 36]], np.float32), np.array([0], np.int64),
             np.array([0.9], np.float32), np.ones((1, 1, 28, 28), np.float32)]  # fmt: skip
    find = model("find", size=[SIZE, SIZE], labels=["thing"], read={"kind": "boxes"})
    cut = model("cut", 4, size=[48, 48], labels=LABELS, read={"kind": "boxes"})
    stages = [{"model": "find"}, {"crop": {}}, {"model": "cut"}]
    native = NativePipeline(document([find, cut], stages), lambda i, _: masks if i else [box])
    native.run(png(rng.integers(0, 256, (SIZE, SIZE, 3), np.uint8)))
    (thing,) = json.loads(native.answer(times=False))["answers"]["find"]["items"]
    (inner,) = thing["answers"]["cut"]["items"]
    wanted = np.zeros((SIZE, SIZE), bool)
    wanted[36:60, 48:72] = True
    np.testing.assert_array_equal(pixels_of(inner["mask"]), wanted)
    assert "mask" not in thing
