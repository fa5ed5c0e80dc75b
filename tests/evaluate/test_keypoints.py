"""Keypoints: the figures are pycocotools' own, by hand on the exported predictions."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.adapter import Adapter
from lite_engine.errors import LiteError, UsageError
from lite_workbench.evaluate import Side, evaluate, read_dataset
from PIL import Image
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from tests.evaluate import made
from tests.small_models import Builder

pytestmark = pytest.mark.cpu
SIZE = made.SIZE


def keypoint_set(folder: Path, points: int, count: int = 40) -> Path:
    """COCO JSON of one or two stars of points each image; every fourth point is not labeled."""
    rng = np.random.default_rng(21)
    folder.mkdir()
    images, annotations = [], []
    for number in range(1, count + 1):
        picture = rng.integers(0, 30, (SIZE, SIZE, 3), dtype=np.uint8)
        for _ in range(1 + number % 2):
            x, y = rng.uniform(4, SIZE - 4, (2, points))
            seen = np.where(np.arange(points) % 4 == 3, 0, 2)
            box = [x.min(), y.min(), np.ptp(x), np.ptp(y)]
            annotations.append(
                {"id": len(annotations) + 1, "image_id": number, "category_id": 3, "bbox": box,
                 "area": 0.6 * box[2] * box[3], "iscrowd": 0,
                 "num_keypoints": int((seen > 0).sum()),
                 "keypoints": np.stack([x, y, seen], 1).ravel().tolist()}
            )  # fmt: skip
        picture[0, 0, 0] = number  # by which the adapter knows it
        Image.fromarray(picture).save(folder / f"{number}.png")
        images.append({"id": number, "file_name": f"{number}.png"})
    category = {"id": 3, "name": "red", "keypoints": [str(i) for i in range(points)]}
    path = folder / "person_keypoints.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations,
                                "categories": [category]}))  # fmt: skip
    return path


def reader(path: Path, noise: float):
    """An adapter that answers the labels, moved a little, sometimes with a star of nothing."""
    labels: dict[int, list[np.ndarray]] = {}
    for a in json.loads(path.read_text())["annotations"]:
        labels.setdefault(a["image_id"], []).append(np.reshape(a["keypoints"], (-1, 3))[:, :2])

    def read(outputs, picture):
        number = int(np.round(next(iter(outputs.values()))[0, 0, 0, 0] * 255))
        rng = np.random.default_rng(number)
        found = [p + rng.normal(0, noise, p.shape) for p in labels[number]]
        if number % 5 == 0:
            found.append(rng.uniform(0, SIZE, found[0].shape))
        return [{"label": "red", "index": 1, "score": float(rng.uniform(0.4, 1)),
                 "keypoints": (p / SIZE).tolist()} for p in found]  # fmt: skip

    return read


def identity() -> Side:
    """(1,3,64,64) → the image."""
    b = Builder((1, 3, SIZE, SIZE), "identity")
    b.graph.metadata["labels"] = ["background", "red"]
    one = b.graph.constant(np.ones(1, np.float32))
    model = optimize(b.done(b.add("Mul", b.x, one, name="y")), targets=["x86"])
    return Side("x86", Predictor(model, "x86"))


@pytest.mark.parametrize("points", [17, 5])
def test_oks_is_that_of_pycocotools_on_exported_predictions(points, tmp_path):
    path = keypoint_set(tmp_path / "set", points)
    data = read_dataset(path)
    assert data.task == "keypoints" and read_dataset(path, task="detection").task == "detection"
    found = evaluate([identity()], data, adapter=Adapter(function=reader(path, 1.5)))
    predictions = found.predictions["x86"]
    for row in predictions:
        row["category_id"] = 3
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(path))
        by_hand = COCOeval(truth, truth.loadRes(predictions), "keypoints")
        if points != 17:
            mean = by_hand.params.kpt_oks_sigmas.mean()
            by_hand.params.kpt_oks_sigmas = np.full(points, mean)
        by_hand.evaluate()
        by_hand.accumulate()
        by_hand.summarize()
    figures = {m.name: m for m in found["x86"].metrics}
    for name, at in (("OKS mAP", 0), ("OKS mAP@.5", 1), ("OKS mAP medium", 3), ("recall", 5)):
        assert figures[name].value == by_hand.stats[at], name
        assert figures[name].low <= figures[name].value <= figures[name].high
    assert 0.05 < figures["OKS mAP"].value < 0.999
    exact = evaluate([identity()], data.first(8), adapter=Adapter(function=reader(path, 0)))
    assert exact["x86"].main.value > figures["OKS mAP"].value


def test_what_has_no_keypoints_is_refused(tmp_path):
    path = keypoint_set(tmp_path / "set", 3, 2)
    with pytest.raises(LiteError, match="needs keypoints in an image"):
        evaluate([identity()], read_dataset(path), adapter=Adapter(
            function=lambda outputs, picture: [{"label": "red", "box": [0, 0, 1, 1]}]))  # fmt: skip
    document = json.loads(path.read_text())
    document["annotations"][0]["keypoints"] = [1, 2]
    path.write_text(json.dumps(document))
    with pytest.raises(UsageError, match="expected keypoints"):
        read_dataset(path)
