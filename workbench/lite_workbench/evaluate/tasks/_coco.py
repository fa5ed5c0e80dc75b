"""pycocotools on samples and boxes in memory: no files, nothing printed."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..statistics import Resampled

if TYPE_CHECKING:
    from pycocotools.cocoeval import COCOeval

    from ..dataset import Sample
    from ._boxes import Found

#: Each draw accumulates all classes and sizes again, which takes 5 to 500 ms.
DRAWS = 200
#: metric → its place in COCOeval.stats
STATS = {"mAP": 0, "mAP@.5": 1, "mAP small": 3, "mAP medium": 4, "mAP large": 5, "recall": 8}
#: metric → (IoU threshold or None for all, area range), as the averages of COCOeval.summarize
_PARTS = {"mAP": (None, 0), "mAP@.5": (0, 0), "mAP small": (None, 1), "mAP medium": (None, 2),
          "mAP large": (None, 3)}  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """What is matched, how many of an image, and where its figures stand."""

    iou: str
    most: int
    stats: Mapping[str, int]
    parts: Mapping[str, tuple[int | None, int]]


BOXES = Kind("bbox", 100, STATS, _PARTS)
KEYPOINTS = Kind(
    "keypoints", 20,
    {"OKS mAP": 0, "OKS mAP@.5": 1, "OKS mAP medium": 3, "OKS mAP large": 4, "recall": 5},
    {"OKS mAP": (None, 0), "OKS mAP@.5": (0, 0), "OKS mAP medium": (None, 1),
     "OKS mAP large": (None, 2)},
)  # fmt: skip
#: Masks are matched, and otherwise counted as boxes are.
INSTANCES = Kind(
    "segm", 100,
    {"mask mAP": 0, "mask mAP@.5": 1, "mask mAP small": 3, "mask mAP medium": 4,
     "mask mAP large": 5, "recall": 8},
    {"mask mAP": (None, 0), "mask mAP@.5": (0, 0), "mask mAP small": (None, 1),
     "mask mAP medium": (None, 2), "mask mAP large": (None, 3)},
)  # fmt: skip


@contextmanager
def _silent() -> Iterator[None]:
    with contextlib.redirect_stdout(io.StringIO()):
        yield


def labels_document(samples: Sequence[Sample], categories: Sequence[str]) -> dict[str, Any]:
    """COCO's document of the labels: images and categories are counted from 1."""
    boxes = [(number, box) for number, s in enumerate(samples, 1) for box in s.label]
    return {
        "info": {},
        "images": [{"id": n, "file_name": s.name} for n, s in enumerate(samples, 1)],
        "categories": [{"id": n, "name": name} for n, name in enumerate(categories, 1)],
        "annotations": [
            {"id": n, "image_id": image, "category_id": box.category + 1, "bbox": list(box.xywh),
             "area": box.area, "iscrowd": int(box.ignored), **_points(box.keypoints),
             **_pixels(box.mask)}
            for n, (image, box) in enumerate(boxes, 1)
        ],
    }  # fmt: skip


def results(found: Sequence[Sequence[Found]]) -> list[dict[str, Any]]:
    """COCO's results: image and category ids as `labels_document` counts them. Where there is a
    mask, it says where, not the box."""
    return [
        {"image_id": image, "category_id": box.category + 1, "score": box.score,
         **(_pixels(box.mask) or {"bbox": list(box.xywh)}),
         **({"keypoints": list(box.keypoints)} if box.keypoints else {})}
        for image, boxes in enumerate(found, 1)
        for box in boxes
    ]  # fmt: skip


def _points(keypoints: Sequence[float]) -> dict[str, Any]:
    """A label's keypoints and how many of them are labeled."""
    if not keypoints:
        return {}
    return {"keypoints": list(keypoints), "num_keypoints": sum(v > 0 for v in keypoints[2::3])}


def _pixels(mask: Mapping[str, Any] | None) -> dict[str, Any]:
    return {} if mask is None else {"segmentation": dict(mask)}


def _sized(
    images: Sequence[dict[str, Any]], samples: Sequence[Sample], found: Sequence[Sequence[Found]]
) -> None:
    """Images that have masks get their size."""
    for image, sample, boxes in zip(images, samples, found, strict=True):
        masks = (box.mask for box in (*sample.label, *boxes) if box.mask is not None)
        image["height"], image["width"] = next((mask["size"] for mask in masks), (1, 1))


def _extent(result: dict[str, Any]) -> dict[str, Any]:
    """Area and box of a result, as COCO.loadRes finds them."""
    if runs := result.get("segmentation"):
        from pycocotools import mask

        return {"area": float(mask.area(runs)), "bbox": mask.toBbox(runs).tolist()}
    points = result.get("keypoints")
    if not points:
        return {"area": result["bbox"][2] * result["bbox"][3]}
    xs, ys = points[0::3], points[1::3]
    box = [min(xs), min(ys), max(xs) - min(xs), max(ys) - min(ys)]
    return {"area": box[2] * box[3], "bbox": box}


def sigmas(count: int) -> np.ndarray:
    """How far keypoints may be off: COCO's for its 17, their mean for any other skeleton."""
    from pycocotools.cocoeval import Params

    known = np.asarray(Params("keypoints").kpt_oks_sigmas, np.float64)
    return known if count == len(known) else np.full(count, known.mean())


def skeletons(samples: Sequence[Sample]) -> dict[int, int]:
    """Class → how many keypoints its first object with keypoints has."""
    found: dict[int, int] = {}
    for box in (box for sample in samples for box in sample.label if box.keypoints):
        found.setdefault(box.category, len(box.keypoints) // 3)
    return found


def _with_keypoints(
    samples: Sequence[Sample], found: Sequence[Sequence[Found]], sizes: Mapping[int, int]
) -> tuple[list[Sample], list[list[Found]]]:
    """Without the classes that have no keypoints. An object of another class that has none counts
    as one of which none is labeled, and COCO ignores those."""
    labels = [
        tuple(
            box if box.keypoints else box._replace(keypoints=(0.0,) * 3 * sizes[box.category])
            for box in sample.label
            if box.category in sizes
        )
        for sample in samples
    ]
    made = [replace(s, label=label) for s, label in zip(samples, labels, strict=True)]
    return made, [[box for box in own if box.category in sizes] for own in found]


def _by_skeleton(sizes: Mapping[int, int]) -> type[COCOeval]:
    """COCOeval with the tolerances of each class's own skeleton; it has one for all."""
    from pycocotools.cocoeval import COCOeval

    class OfSkeletons(COCOeval):
        def computeOks(self, image: int, category: int) -> Any:
            self.params.kpt_oks_sigmas = sigmas(sizes.get(category - 1, 17))
            return super().computeOks(image, category)

    return OfSkeletons


def evaluated(
    samples: Sequence[Sample],
    found: Sequence[Sequence[Found]],
    categories: Sequence[str],
    kind: Kind = BOXES,
) -> COCOeval:
    """A COCOeval that has matched, accumulated and summarized."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    evaluation_class = COCOeval
    if kind is KEYPOINTS:
        sizes = skeletons(samples)
        samples, found = _with_keypoints(samples, found, sizes)
        evaluation_class = _by_skeleton(sizes)
    with _silent():
        truth, made = COCO(), COCO()
        truth.dataset = labels_document(samples, categories)
        if kind is INSTANCES:
            _sized(truth.dataset["images"], samples, found)
        truth.createIndex()
        made.dataset = {**truth.dataset, "annotations": [
            {**r, "id": n, **_extent(r), "iscrowd": 0}
            for n, r in enumerate(results(found), 1)
        ]}  # fmt: skip
        made.createIndex()
        evaluation = evaluation_class(truth, made, kind.iou)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
    return evaluation


def figures(evaluation: Any, kind: Kind = BOXES) -> dict[str, float]:
    """The metrics of a kind; NaN where there is no object of that size."""
    values = {name: float(evaluation.stats[i]) for name, i in kind.stats.items()}
    return {name: value if value >= 0 else float("nan") for name, value in values.items()}


def average_precision(evaluation: Any, category: int) -> float:
    """AP@[.5:.95] of one class; NaN without objects."""
    return _mean(evaluation.eval["precision"][:, :, category, 0, -1])


class Resampling:
    """The metrics on images drawn with replacement: what was matched per image stays as it is, and
    is accumulated again, once for all metrics of a draw."""

    def __init__(self, evaluation: Any, kind: Kind = BOXES) -> None:
        self.evaluation, self.kind = evaluation, kind
        self._known: dict[bytes, dict[str, float]] = {}

    def of(self, name: str) -> Resampled:
        return lambda counts: np.array([self._figures(row)[name] for row in counts])

    def _figures(self, counts: np.ndarray) -> dict[str, float]:
        key = counts.tobytes()
        if key not in self._known:
            self._known[key] = self._again(np.repeat(np.arange(len(counts)), counts))
        return self._known[key]

    def _again(self, chosen: np.ndarray) -> dict[str, float]:
        from pycocotools.cocoeval import COCOeval

        before = self.evaluation._paramsEval
        blocks = range(0, len(self.evaluation.evalImgs), len(before.imgIds))
        with _silent():
            own = COCOeval(iouType=self.kind.iou)
            own.params.catIds = list(before.catIds)
            own.params.imgIds = list(range(len(chosen)))
            own.params.maxDets = [self.kind.most]
            own._paramsEval = own.params
            own.evalImgs = [self.evaluation.evalImgs[b + i] for b in blocks for i in chosen]
            own.accumulate()
        precision = own.eval["precision"][..., 0]
        made = {"recall": _mean(own.eval["recall"][:, :, 0, 0])}
        for name, (threshold, area) in self.kind.parts.items():
            part = precision[:, :, :, area]
            made[name] = _mean(part if threshold is None else part[threshold])
        return made


def _mean(values: np.ndarray) -> float:
    """As COCOeval.summarize: -1 stands for what has no objects."""
    there = values[values > -1]
    return float(there.mean()) if there.size else float("nan")
