"""Lowerings of detection: anchors, boxes, suppression, and Caffe's DetectionOutput of all three."""

from __future__ import annotations

from typing import Any

import numpy as np
from lite_messages import tr

from ...ir import DType, Node, Value
from .container import Floats
from .lower import Writer, lowers

_CORNER, _CENTRE_SIZE = 1, 2


@lowers("yolo_box")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    boxes, scores = node.outputs
    x, size = node.inputs[:2]
    w.add("yolo_box", {"X": x, "ImgSize": size}, {"Boxes": boxes, "Scores": scores},
          **_plain(attrs, ("clip_bbox", "iou_aware")))  # fmt: skip


def _plain(attrs: dict[str, Any], flags: tuple[str, ...]) -> dict[str, Any]:
    return {k: bool(v) if k in flags else v for k, v in attrs.items()}


@lowers("prior_box")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    boxes, variances = node.outputs
    x, image = node.inputs[:2]
    w.add("prior_box", {"Input": x, "Image": image}, {"Boxes": boxes, "Variances": variances},
          **_plain(attrs, ("flip", "clip", "min_max_aspect_ratios_order")))  # fmt: skip


@lowers("box_coder")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    prior, variance, target = node.inputs[:3]
    given = {**_plain(attrs, ("box_normalized",)), "variance": Floats(attrs["variance"])}
    w.add("box_coder", {"PriorBox": prior, "PriorBoxVar": variance, "TargetBox": target},
          {"OutputBox": node.output}, **given)  # fmt: skip


@lowers("multiclass_nms")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    boxes, scores = node.inputs[:2]
    outs = dict(zip(("Out", "Index", "NmsRoisNum"), node.outputs))
    w.add("multiclass_nms3", {"BBoxes": boxes, "Scores": scores}, outs,
          **_plain(attrs, ("normalized",)))  # fmt: skip


@lowers("DetectionOutput")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    """(1,P·4), (1,P·C), constant priors → box_coder, multiclass_nms3, and a column of the image's
    number. As many rows as are found: Paddle-Lite knows no rows of zeros behind them."""
    locations, confidences = node.inputs[:2]
    if w.dims(locations)[0] != 1 or not attrs["share_location"]:
        raise w.refuse(
            tr("it can be written for one image only, with boxes that all classes share")
        )
    boxes = _decoded(w, node, attrs)
    count, classes = w.dims(locations)[1] // 4, attrs["num_classes"]
    by_prior = _reshaped(w, node, confidences, "by_prior", [1, count, classes])
    scores = w.variable(f"{node.output.name}/scores", DType.F32, [1, classes, count])
    w.add("transpose2", {"X": by_prior}, {"Out": scores, "XShape": f"{by_prior}/xshape"},
          axis=[0, 2, 1], data_format="AnyLayout")  # fmt: skip
    found = w.variable(f"{node.output.name}/found", DType.F32, [-1, 6])
    outs = {"Out": found, "Index": w.variable(f"{found}/index", DType.I32, [-1, 1]),
            "NmsRoisNum": w.variable(f"{found}/count", DType.I32, [1])}  # fmt: skip
    w.add("multiclass_nms3", {"BBoxes": boxes, "Scores": scores}, outs,
          background_label=attrs["background_label"], keep_top_k=attrs["keep_top_k"],
          nms_top_k=attrs["nms_top_k"], nms_threshold=float(attrs["nms_threshold"]), nms_eta=1.0,
          score_threshold=float(attrs["confidence_threshold"]), normalized=True)  # fmt: skip
    # not reshape2, whose −1 no size replaces when nothing is found
    rows = w.variable(f"{node.output.name}/rows", DType.F32, [1, 1, -1, 6])
    xshape = w.variable(f"{rows}/xshape", DType.F32, [-1, 6])
    w.add("unsqueeze2", {"X": found}, {"Out": rows, "XShape": xshape}, axes=[0, 1])
    w.add("pad2d", {"X": rows}, {"Out": node.output}, mode="constant", paddings=[0, 0, 1, 0],
          pad_value=0.0, data_format="NCHW")  # fmt: skip


def _decoded(w: Writer, node: Node, attrs: dict[str, Any]) -> str:
    """The variable of the boxes' corners (1,P,4)."""
    anchors, variances = w.array(node.inputs[2], "priors")[0].reshape(2, -1, 4)
    if attrs["variance_encoded"]:
        variances = np.ones_like(variances)
    shape = [1, len(anchors), 4]
    moves = _reshaped(w, node, node.inputs[0], "moves", shape)
    boxes = w.variable(f"{node.output.name}/boxes", DType.F32, shape)
    if attrs["code_type"] == _CENTRE_SIZE:
        inputs = {"PriorBox": w.weight(anchors, "anchors"), "TargetBox": moves,
                  "PriorBoxVar": w.weight(variances, "variances")}  # fmt: skip
        w.add("box_coder", inputs, {"OutputBox": boxes}, code_type="decode_center_size",
              box_normalized=True, axis=0, variance=Floats())  # fmt: skip
        return boxes
    if attrs["code_type"] != _CORNER:
        size = anchors[:, 2:] - anchors[:, :2]
        variances = variances * np.concatenate([size, size], 1)
    scaled = w.variable(f"{boxes}/scaled", DType.F32, shape)
    factors, origins = w.weight(variances[None], "factors"), w.weight(anchors[None], "anchors")
    w.add("elementwise_mul", {"X": moves, "Y": factors}, {"Out": scaled}, axis=-1)
    w.add("elementwise_add", {"X": scaled, "Y": origins}, {"Out": boxes}, axis=-1)
    return boxes


def _reshaped(w: Writer, node: Node, x: Value | None, suffix: str, shape: list[int]) -> str:
    out = w.variable(f"{node.output.name}/{suffix}", DType.F32, shape)
    xshape = w.variable(f"{out}/xshape", DType.F32, shape)
    w.add("reshape2", {"X": x}, {"Out": out, "XShape": xshape}, shape=shape)
    return out
