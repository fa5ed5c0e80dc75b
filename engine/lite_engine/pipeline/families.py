"""Ready pipelines: the stages that a family of models wants, for models that somebody else brings.

    Pipeline.of_family("ppocr", ["det.onnx", "cls.onnx", "rec.nb"], labels="keys.txt")

What a family says goes before what travels with the models; a stage of one's own says it better
where a model was trained otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lite_messages import tr

from ..errors import UsageError

_TURNED = ["0", "180"]
#: Anchors of YOLO v3, v5 and v7 as trained on COCO, of strides 8, 16 and 32, and those of v3 tiny,
#: of 16 and 32, in pixels of the input. Source: the models' published configurations.
_ANCHORS = [[10, 13, 16, 30, 33, 23], [30, 61, 62, 45, 59, 119], [116, 90, 156, 198, 373, 326]]
_TINY_ANCHORS = [[10, 14, 23, 27, 37, 58], [81, 82, 135, 169, 344, 319]]
#: NanoDet's numbers, in the order BGR. Source: its published configurations.
_NANODET = "mean=103.53/116.28/123.675,std=57.375/57.12/58.395,bgr"
_YOLO_READ = {"kind": "boxes", "threshold": 0.25, "overlap": 0.45}


def _yolo(preprocess: str = "unit,letterbox", **read: Any) -> list[dict[str, Any]]:
    return [{"model": "", "name": "detect", "preprocess": preprocess, "open_size": [640, 640],
             "read": {**_YOLO_READ, **read}}]  # fmt: skip


#: Family → its stages; an empty `model` is the next one that is given, and the last model gets the
#: labels that are given. `open_size` and `open_widths` are for inputs that the file leaves open.
FAMILIES: dict[str, list[dict[str, Any]]] = {
    # PP-OCR v3 to v5: text detector (DB), direction of a line, recognizer (CTC); v2's lines are 32
    # pixels high
    "ppocr": [
        {"model": "", "name": "detect", "preprocess": "imagenet,letterbox=0",
         "open_size": [960, 960], "read": {"kind": "regions"}},
        {"crop": {}},
        {"model": "", "name": "direction", "preprocess": "pm1,bgr,height", "open_size": [48, 192],
         "labels": _TURNED, "read": {"kind": "top"}},
        {"turn": {"model": "direction", "label": "180", "above": 0.9}},
        {"model": "", "name": "read", "preprocess": "pm1,bgr,height", "open_size": [48, 320],
         "open_widths": [160, 320, 640], "read": {"kind": "text"}},
    ],
    "ppocrv2": [],  # below
    # text detector and recognizer, without the direction
    "text": [
        {"model": "", "name": "detect", "preprocess": "imagenet,letterbox=0",
         "open_size": [960, 960], "read": {"kind": "regions"}},
        {"crop": {}},
        {"model": "", "name": "read", "preprocess": "pm1,bgr,height", "open_size": [48, 320],
         "open_widths": [160, 320, 640], "read": {"kind": "text"}},
    ],
    # a detector of plates and LPRNet
    "plates": [
        {"model": "", "name": "detect"},
        {"crop": {}},
        {"model": "", "name": "read", "preprocess": "mean=127.5,std=128,bgr",
         "read": {"kind": "text"}},
    ],
    "ssd": [{"model": "", "name": "detect", "preprocess": "pm1", "read": {"kind": "boxes"}}],
    # YOLO v5 to v12 whose boxes the model decodes
    "yolo": _yolo(),
    # heads that the model leaves encoded; v7 is like v5
    "yolov3": _yolo(decode="yolov3", anchors=_ANCHORS),
    "yolov3-tiny": _yolo(decode="yolov3", anchors=_TINY_ANCHORS),
    "yolov5": _yolo(decode="yolov5", anchors=_ANCHORS),
    "yolov8": _yolo(decode="yolov8"),
    "yolox": _yolo("raw,bgr,letterbox", decode="yolox"),
    # without anchors: NanoDet, whose "plus" counts from the corners of cells and has a fourth
    # stride; FCOS, whose distances are pixels
    "nanodet": _yolo(_NANODET, decode="nanodet"),
    "nanodet-plus": _yolo(_NANODET, decode="nanodet", center=0, strides=[8, 16, 32, 64]),
    "fcos": _yolo("imagenet,letterbox", decode="fcos", pixels=True),
    # people's keypoints: YOLO pose, and heat maps of one person (SimpleBaseline, HRNet)
    "pose": _yolo(kind="keypoints"),
    "heatmaps": [{"model": "", "name": "pose", "preprocess": "imagenet",
                  "read": {"kind": "keypoints"}}],
    # a vector for each image; `gallery` in a stage of one's own has the known ones
    "embedding": [{"model": "", "name": "embed", "preprocess": "pm1",
                   "read": {"kind": "vector"}}],
    "ultraface": [{"model": "", "name": "faces", "preprocess": "mean=127,std=128",
                   "labels": ["background", "face"],
                   "read": {"kind": "boxes", "threshold": 0.7}}],
    "classification": [{"model": "", "name": "classify", "preprocess": "imagenet,crop",
                        "read": {"kind": "top"}}],
    "segmentation": [{"model": "", "name": "segment", "preprocess": "imagenet",
                      "read": {"kind": "mask"}}],
    # an image out of an image: super-resolution, denoising
    "image": [{"model": "", "name": "image", "read": {"kind": "image"}}],
    "keywords": [{"model": "", "name": "word", "read": {"kind": "top"}}],
}  # fmt: skip
FAMILIES["ppocrv2"] = [dict(stage) for stage in FAMILIES["ppocr"]]
FAMILIES["ppocrv2"][-1]["open_size"] = [32, 320]


def stages_of(family: str, models: Sequence[Any], labels: Any = None) -> list[dict[str, Any]]:
    """The stages with these models; `labels` (a file or a list) are those of the last one. Raises
    UsageError for an unknown family or another number of models."""
    if family not in FAMILIES:
        raise UsageError(
            tr("{family!r} is not a family of pipelines", family=family),
            fix=tr("use one of {known}", known=", ".join(FAMILIES)),
        )
    made = [dict(stage) for stage in FAMILIES[family]]
    looking = [stage for stage in made if "model" in stage]
    if len(looking) != len(models):
        wanted = ", ".join(stage["name"] for stage in looking)
        raise UsageError(
            tr(
                "{family} takes {count} models ({wanted}), got {given}",
                family=family, count=len(looking), wanted=wanted, given=len(models),
            )
        )  # fmt: skip
    for stage, model in zip(looking, models, strict=True):
        stage["model"] = model
    if labels is not None:
        looking[-1]["labels"] = labels
    return made
