"""Masks of instances: the figures are pycocotools' own, by hand on the exported predictions."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.adapter import Adapter
from lite_engine.errors import LiteError, UsageError
from lite_engine.model_file import Model
from lite_engine.pipeline import Pipeline
from lite_workbench.answers import answer_of
from lite_workbench.cli import main
from lite_workbench.evaluate import Side, evaluate, read_dataset
from PIL import Image, ImageDraw
from pycocotools import mask as masks
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from tests.evaluate.test_keypoints import SIZE, identity
from tests.small_models import Builder

pytestmark = pytest.mark.cpu


def instance_set(folder: Path, count: int = 30) -> Path:
    """COCO JSON of polygons, of objects in two parts, and of run lengths in every fifth image."""
    rng = np.random.default_rng(31)
    folder.mkdir()
    images, annotations = [], []
    for number in range(1, count + 1):
        picture = rng.integers(0, 30, (SIZE, SIZE, 3), dtype=np.uint8)
        picture[0, 0, 0] = number  # by which the adapter knows it
        Image.fromarray(picture).save(folder / f"{number}.png")
        images.append({"id": number, "file_name": f"{number}.png", "height": SIZE, "width": SIZE})
        for k in range(1 + number % 3):
            parts = [star(rng) for _ in range(1 + (k == 1))]
            runs: dict[str, Any] = masks.merge(masks.frPyObjects(parts, SIZE, SIZE))
            shape: Any = counted(masks.decode(runs)) if number % 5 == 0 else parts
            annotations.append(
                {"id": len(annotations) + 1, "image_id": number, "category_id": 3,
                 "bbox": masks.toBbox(runs).tolist(), "area": float(masks.area(runs)),
                 "iscrowd": 0, "segmentation": shape}
            )  # fmt: skip
    path = folder / "instances.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations,
                                "categories": [{"id": 3, "name": "red"}]}))  # fmt: skip
    return path


def star(rng: np.random.Generator) -> list[float]:
    """A polygon of seven corners."""
    angle = np.linspace(0, 2 * np.pi, 7, endpoint=False)
    radius, middle = rng.uniform(6, 16, 7), rng.uniform(16, SIZE - 16, 2)
    points = middle + radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], 1)
    made: list[float] = np.round(points, 2).ravel().tolist()
    return made


def counted(mask: np.ndarray) -> dict[str, Any]:
    """COCO's uncompressed run lengths, column by column."""
    flat = np.concatenate([[0], mask.ravel(order="F"), [2]])
    edges = np.flatnonzero(np.diff(flat) != 0)
    counts = np.diff(np.concatenate([[0], edges]))
    return {"size": list(mask.shape), "counts": counts.tolist()}


def reader(path: Path, noise: int):
    """An adapter that answers the labels, moved by some pixels."""
    truth = json.loads(path.read_text())
    shapes: dict[int, list[np.ndarray]] = {}
    for a in truth["annotations"]:
        given = a["segmentation"]
        runs = masks.frPyObjects(given, SIZE, SIZE)
        runs = masks.merge(runs) if isinstance(given, list) else runs
        shapes.setdefault(a["image_id"], []).append(masks.decode(runs))

    def read(outputs, picture):
        number = int(np.round(next(iter(outputs.values()))[0, 0, 0, 0] * 255))
        rng = np.random.default_rng(number)
        found = []
        for shape in shapes[number]:
            moved = np.roll(shape, rng.integers(-noise, noise + 1, 2), (0, 1))
            rows, columns = np.nonzero(moved)
            box = [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]
            found.append({"label": "red", "index": 1, "score": float(rng.uniform(0.4, 1)),
                          "box": [int(v) / SIZE for v in box], "mask": counted(moved)})  # fmt: skip
        return found

    return read


def test_mask_map_is_that_of_pycocotools_on_exported_predictions(tmp_path):
    path = instance_set(tmp_path / "set")
    assert read_dataset(path).task == "detection"
    data = read_dataset(path, task="instances")
    found = evaluate([identity()], data, adapter=Adapter(function=reader(path, 3)))
    predictions = found.predictions["x86"]
    for row in predictions:
        row["category_id"] = 3
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(path))
        by_hand = COCOeval(truth, truth.loadRes(json.loads(json.dumps(predictions))), "segm")
        by_hand.evaluate()
        by_hand.accumulate()
        by_hand.summarize()
    figures = {m.name: m for m in found["x86"].metrics}
    for name, at in (("mask mAP", 0), ("mask mAP@.5", 1), ("mask mAP small", 3), ("recall", 8)):
        assert figures[name].value == by_hand.stats[at], name
        assert figures[name].low <= figures[name].value <= figures[name].high
    assert 0.05 < figures["mask mAP"].value < 0.999
    exact = evaluate([identity()], data.first(8), adapter=Adapter(function=reader(path, 0)))
    assert exact["x86"].main.value == pytest.approx(1)


def test_what_has_no_masks_is_refused(tmp_path):
    path = instance_set(tmp_path / "set", 2)
    with pytest.raises(LiteError, match="needs masks of things in an image"):
        evaluate([identity()], read_dataset(path, task="instances"), adapter=Adapter(
            function=lambda outputs, picture: [{"label": "red", "box": [0, 0, 1, 1]}]))  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ([[1, 2, 3]], "expected polygons"), ([[0, 0, 5, 5, 1e9, 3]], "expected polygons"),
        ({"size": [SIZE, SIZE], "counts": [1, 2]}, "expected `counts` of 4096 pixels"),
        ({"size": [SIZE, SIZE], "counts": [-1, 4097]}, "expected `counts`"), ("x", "segmentation"),
    ],
)  # fmt: skip
def test_hostile_masks(tmp_path, shape, said):
    path = instance_set(tmp_path / "set", 1)
    document = json.loads(path.read_text())
    document["annotations"][0]["segmentation"] = shape
    path.write_text(json.dumps(document))
    with pytest.raises(UsageError, match=said):
        read_dataset(path, task="instances")


def segmenter() -> Model:
    """A YOLO of one class whose masks follow the brightness of the image."""
    b = Builder((1, 3, SIZE, SIZE), "segmenter")
    side = SIZE // 8
    rows = b.add("Conv", b.x, b.graph.constant(np.zeros((13, 3, 8, 8), np.float32)),
                 b.graph.constant(np.array([32, 32, 48, 40, 0.9, *[1] * 8], np.float32)),
                 name="rows", strides=[8, 8], pads=[0] * 4, group=1)  # fmt: skip
    rows = b.add("Reshape", rows, b.ints(1, 13, side * side), name="flat")
    bright = b.graph.constant(np.full((8, 3, 4, 4), 1 / 48, np.float32))
    dark = b.graph.constant(np.full(8, -0.5, np.float32))
    cells = b.add("Conv", b.x, bright, dark, name="cells", strides=[4, 4], pads=[0] * 4, group=1)
    b.graph.metadata |= {
        "labels": ["blob"], "preprocess": {"mean": [0], "std": [255]}, "adapter": {"kind": "boxes"},
    }  # fmt: skip
    return optimize(b.done(rows, cells), targets=["x86"])


def blob(folder: Path) -> Path:
    picture = Image.new("RGB", (SIZE, SIZE), (20, 20, 20))
    ImageDraw.Draw(picture).ellipse((16, 20, 47, 44), (240, 240, 240))
    picture.save(folder / "blob.png")
    return folder / "blob.png"


def test_masks_of_run_are_those_of_a_pipeline(tmp_path, capsys):
    """In `lite run` as JSON and drawn, in evaluate, and in a pipeline: one mask."""
    model, image = segmenter(), blob(tmp_path)
    file = model.save(tmp_path / "segmenter.lite")
    pipeline = Pipeline([{"model": model, "name": "m"}])
    (want,) = pipeline.run(image, "x86")["answers"]["m"]["items"]
    words = ["run", file, "--input", image, "--json", "-", "--draw", tmp_path / "drawn.png"]
    assert main([str(w) for w in words]) == 0
    (got,) = json.loads(capsys.readouterr().out)["answer"]["items"]
    assert got["mask"] == want["mask"]
    assert (tmp_path / "drawn.png").read_bytes() == pipeline.drawn()
    disc = np.zeros((SIZE, SIZE), bool)
    disc[np.asarray(Image.open(image))[..., 0] > 128] = True
    pixels = masks.decode(masks.frPyObjects(want["mask"], SIZE, SIZE)).astype(bool)
    assert (pixels & disc).sum() / (pixels | disc).sum() > 0.85
    side = Side("x86", Predictor(model, "x86"))
    read = side.read(image, ["blob"], None, {})
    assert read.answer.items[0]["mask"] == want["mask"]
    feeds = {"x": np.zeros((1, 3, SIZE, SIZE), np.float32)}
    bare = answer_of(model, feeds, Predictor(model, "x86").run(feeds))
    assert all("mask" not in item for item in bare.items)  # the image's size is not known


def test_a_drawing_needs_an_image(tmp_path, capsys):
    file = segmenter().save(tmp_path / "segmenter.lite")
    np.save(tmp_path / "x.npy", np.zeros((1, 3, SIZE, SIZE), np.float32))
    words = ["run", file, "--input", tmp_path / "x.npy", "--draw", tmp_path / "drawn.png"]
    assert main([str(w) for w in words]) != 0
    assert "--draw needs one image" in capsys.readouterr().err
    assert not (tmp_path / "drawn.png").exists()
