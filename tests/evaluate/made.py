"""Data sets with exact labels, and small networks that answer them imperfectly."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from lite_engine.ir import Graph
from PIL import Image, ImageDraw, ImageFont

from tests.small_models import Builder

SIZE = 64
COLORS = np.array([[0, 0, 0], [230, 40, 40], [40, 220, 60]], np.float32)
NAMES = ("background", "red", "green")


def detection_set(folder: Path, count: int = 300) -> Path:
    """COCO JSON of red and green rectangles: small ones, some that occlude others, some that
    touch; every tenth image has a crowd."""
    rng = np.random.default_rng(11)
    (folder / "images").mkdir(parents=True)
    annotations, images = [], []
    for number in range(1, count + 1):
        picture = np.zeros((SIZE, SIZE, 3), np.float32)
        x, y = rng.integers(2, 30, 2)
        for k in range(int(rng.integers(1, 5))):
            w, h = rng.integers(3, 8, 2) if k == 3 else rng.integers(8, 28, 2)
            if k == 1:  # touches or covers a part of the one before
                x, y = x + int(rng.integers(0, 12)), y + int(rng.integers(0, 12))
            elif k > 1:
                x, y = rng.integers(0, SIZE - 8, 2)
            w, h = min(w, SIZE - x), min(h, SIZE - y)
            category = int(rng.integers(1, 3))
            picture[y : y + h, x : x + w] = COLORS[category]
            crowd = number % 10 == 0 and k == 0
            annotations.append(
                {"id": len(annotations) + 1, "image_id": number, "category_id": category * 7,
                 "bbox": [int(x), int(y), int(w), int(h)], "area": int(w * h),
                 "iscrowd": int(crowd)}
            )  # fmt: skip
        noisy = np.clip(picture + rng.normal(0, 30, picture.shape), 0, 255).astype(np.uint8)
        Image.fromarray(noisy).save(folder / "images" / f"{number}.png")
        images.append({"id": number, "file_name": f"{number}.png"})
    categories = [{"id": 7 * n, "name": NAMES[n]} for n in (1, 2)]
    document = {"images": images, "annotations": annotations, "categories": categories}
    (folder / "labels.json").write_text(json.dumps(document))
    return folder / "labels.json"


def segmentation_set(folder: Path, count: int = 40) -> Path:
    """`images` and `masks` of overlapping discs; 255 along one edge of each mask."""
    rng = np.random.default_rng(12)
    for name in ("images", "masks"):
        (folder / name).mkdir(parents=True)
    rows, columns = np.mgrid[:SIZE, :SIZE]
    for number in range(count):
        mask = np.zeros((SIZE, SIZE), np.uint8)
        for category in (1, 2):
            x, y, r = (*rng.integers(10, 54, 2), rng.integers(5, 20))
            mask[(rows - y) ** 2 + (columns - x) ** 2 < r * r] = category
        noisy = COLORS[mask] + rng.normal(0, 70, (SIZE, SIZE, 3))
        Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8)).save(
            folder / "images" / f"{number:02}.png"
        )
        mask[:, :2] = 255
        Image.fromarray(mask).save(folder / "masks" / f"{number:02}.png")
    return folder


def text_lines(folder: Path, count: int = 1000) -> Path:
    """A `.tsv` of lines in the line recognizer's alphabet, rendered in a font that it never saw,
    with noise."""
    rng, font = np.random.default_rng(13), ImageFont.load_default(26)
    letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ.:-"
    folder.mkdir(parents=True)
    listed = []
    for number in range(count):
        text = "".join(letters[i] for i in rng.integers(0, len(letters), rng.integers(3, 11)))
        image = Image.new("L", (320, 48), int(rng.integers(170, 256)))
        ImageDraw.Draw(image).text((8, 24), text, int(rng.integers(0, 70)), font, anchor="lm")
        noisy = np.asarray(image, np.float32) + rng.normal(0, 8, (48, 320))
        Image.fromarray(np.clip(noisy, 0, 255).astype(np.uint8)).save(folder / f"{number:04}.png")
        listed.append(f"{number:04}.png\t{text}\n")
    (folder / "lines.tsv").write_text("".join(listed))
    return folder / "lines.tsv"


def colors_network() -> Graph:
    """(1,3,64,64) RGB in 0…1 → scores of NAMES for each pixel."""
    b = Builder((1, 3, SIZE, SIZE), "colors")
    weights = np.array([[-1, -1, 0], [1, -1, 0], [-1, 1, 0]], np.float32)[..., None, None]
    bias = b.graph.constant(np.array([0.4, 0, 0], np.float32))
    b.graph.metadata["labels"] = list(NAMES)
    return b.done(b.add("Conv", b.x, b.graph.constant(weights), bias, name="scores"))


def blur_network() -> Graph:
    """(1,3,64,64) → the image, blurred."""
    b = Builder((1, 3, SIZE, SIZE), "blur")
    kernel = b.graph.constant(np.full((3, 1, 3, 3), 1 / 9, np.float32))
    return b.done(b.add("Conv", b.x, kernel, name="blur", group=3, pads=[1] * 4))


def map_network() -> Graph:
    """(1,3,64,64) → (1,1,64,64), a map of how bright each pixel is."""
    b = Builder((1, 3, SIZE, SIZE), "map")
    weights = b.graph.constant(np.full((1, 3, 1, 1), 8, np.float32))
    bias = b.graph.constant(np.array([-4], np.float32))
    return b.done(b.add("Sigmoid", b.add("Conv", b.x, weights, bias, name="sum"), name="map"))


def boxes_of_colors(outputs, picture):
    """An adapter: connected regions of a color are boxes."""
    from scipy import ndimage

    (scores,) = outputs.values()
    classes = scores[0].argmax(0)
    found = []
    for category in (1, 2):
        regions, _ = ndimage.label(ndimage.median_filter(classes == category, 3))
        for number, (rows, columns) in enumerate(ndimage.find_objects(regions), 1):
            sure = float(np.mean(regions[rows, columns] == number))
            box = [columns.start, rows.start, columns.stop, rows.stop]
            found.append({"label": NAMES[category], "index": category, "score": sure,
                          "box": [v / SIZE for v in box]})  # fmt: skip
    return found
