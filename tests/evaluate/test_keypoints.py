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
from lite_workbench.evaluate.tasks._base import Outcome
from lite_workbench.evaluate.tasks._boxes import Found
from lite_workbench.evaluate.tasks.keypoints import Keypoints
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


def by_pycocotools(path: Path, predictions, category: int, points: int) -> np.ndarray:
    """The figures of one class, with the tolerances of its own skeleton."""
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(path))
        own = [p for p in predictions if p["category_id"] == category]
        made = COCOeval(truth, truth.loadRes(own), "keypoints")
        known = made.params.kpt_oks_sigmas
        made.params.kpt_oks_sigmas = known if points == 17 else np.full(points, known.mean())
        made.params.catIds = [category]
        made.evaluate()
        made.accumulate()
        made.summarize()
    return made.stats


def found_near(data, counts: list[int], rng) -> list[Outcome]:
    """Each object with as many points as its class has, moved a little, every fifth one far."""
    made = []
    for sample in data.samples:
        boxes = []
        for box in sample.label:
            points = np.reshape(box.keypoints or [10.0] * 3 * counts[box.category], (-1, 3)).copy()
            points[:, :2] += rng.normal(0, 1.5 if rng.random() < 0.8 else 30, points[:, :2].shape)
            points[:, 2] = 1
            boxes.append(Found(box.category, box.xywh, float(rng.random()), tuple(points.ravel())))
        made.append(Outcome("", 1.0, 1.0, None, boxes))
    return made


def test_skeletons_of_two_sizes_and_objects_without_keypoints(tmp_path):
    """Two classes of 17 and 5 points, a ball without any, a person of whom none is labeled: the
    figures are the mean of what pycocotools finds for the two classes, each by itself."""
    rng = np.random.default_rng(8)
    path = keypoint_set(tmp_path / "set", 17)
    document = json.loads(path.read_text())
    for number, a in enumerate(list(document["annotations"]), 1000):
        part = {**a, "id": number, "category_id": 5, "keypoints": a["keypoints"][:15]}
        document["annotations"].append({**part, "num_keypoints": 4})
    plain = {"image_id": 1, "bbox": [5, 5, 20, 20], "area": 400, "iscrowd": 0}
    document["annotations"] += [
        {**plain, "id": 2000, "category_id": 9},
        {**plain, "id": 2001, "category_id": 3},
    ]
    document["categories"] += [{"id": 5, "name": "star"}, {"id": 9, "name": "ball"}]
    path.write_text(json.dumps(document))
    data = read_dataset(path)
    task, outcomes = Keypoints(data, [], None), found_near(data, [17, 5, 3], rng)
    predictions = [
        {"image_id": image, "category_id": [3, 5, 9][b.category], "score": b.score,
         "keypoints": list(b.keypoints)}
        for image, own in enumerate(outcomes, 1) for b in own.data
    ]  # fmt: skip
    document["annotations"][-1] |= {"keypoints": [0] * 51, "num_keypoints": 0}  # as COCO writes it
    path.write_text(json.dumps(document))
    each = [by_pycocotools(path, predictions, *of) for of in ((3, 17), (5, 5))]
    figures = {m.name: m.value for m in task.measures(data.samples, outcomes)}
    for name, at in (("OKS mAP", 0), ("OKS mAP@.5", 1), ("recall", 5)):
        assert figures[name] == pytest.approx(np.mean([stats[at] for stats in each])), name
    assert 0.05 < figures["OKS mAP"] < 0.95
    assert [c.name for c in task.classes(data.samples, outcomes)] == ["red", "star"]


def test_keypoints_that_do_not_fit_are_told(tmp_path):
    path = keypoint_set(tmp_path / "set", 4)
    other = keypoint_set(tmp_path / "other", 3)
    with pytest.raises(LiteError, match="3 keypoints of red are answered, the labels have 4"):
        evaluate([identity()], read_dataset(path), adapter=Adapter(function=reader(other, 0)))
    document = json.loads(path.read_text())
    document["annotations"][-1]["keypoints"] += [1, 1, 2]
    path.write_text(json.dumps(document))
    with pytest.raises(UsageError, match=r"^40\.png: red has 5 keypoints here and 4 elsewhere; "):
        Keypoints(read_dataset(path), [], None)


def test_labels_without_a_keypoint_are_no_measure(tmp_path):
    path = keypoint_set(tmp_path / "set", 3, 2)
    document = json.loads(path.read_text())
    for a in document["annotations"]:
        a["keypoints"][2::3] = [0, 0, 0]
    path.write_text(json.dumps(document))
    with pytest.raises(UsageError, match="the labels contain no object that can be scored"):
        Keypoints(read_dataset(path), [], None)


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
