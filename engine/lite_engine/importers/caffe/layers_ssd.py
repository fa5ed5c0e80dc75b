"""SSD layers of Caffe: PriorBox and DetectionOutput."""

from __future__ import annotations

from lite_messages import tr

from ...errors import ModelFormatError
from ...ir import Value
from .call import Call, layer


@layer("PriorBox")
def prior_box(c: Call) -> Value:
    """Depends only on the shapes of the map and of the image."""
    p = c.param("prior_box_param")
    sizes = p.floats("min_size")
    if not sizes:
        raise ModelFormatError(tr("prototxt: layer {layer} has no min_size", layer=c.layer.name))
    steps = [p.float("step_h", p.float("step", 0.0)), p.float("step_w", p.float("step", 0.0))]
    image = [p.int("img_h", p.int("img_size", 0)), p.int("img_w", p.int("img_size", 0))]
    return c.emit(
        "PriorBox",
        c.emit("Shape", c.x),
        c.emit("Shape", c.bottom(1)),
        min_sizes=sizes,
        max_sizes=p.floats("max_size"),
        aspect_ratios=p.floats("aspect_ratio"),
        flip=p.flag("flip", True),
        clip=p.flag("clip", False),
        variances=p.floats("variance") or [0.1],
        steps=steps,
        image=image,
        offset=p.float("offset", 0.5),
    )


_CODES = {"CORNER": 1, "1": 1, "CENTER_SIZE": 2, "2": 2, "CORNER_SIZE": 3, "3": 3}


@layer("DetectionOutput")
def detection_output(c: Call) -> Value:
    """Bottoms: locations (N,P·4), confidences (N,P·C), priors (1,2,P·4)."""
    p = c.param("detection_output_param")
    nms = p.block("nms_param")
    code = _CODES.get(p.text("code_type", "CORNER"))
    if code is None or p.int("num_classes", 0) < 1:
        raise ModelFormatError(
            tr(
                "prototxt: layer {layer}: code_type is not known, or num_classes is not at least 1",
                layer=c.layer.name,
            )
        )
    return c.emit(
        "DetectionOutput",
        c.bottom(0),
        c.bottom(1),
        c.bottom(2),
        num_classes=p.int("num_classes", 0),
        share_location=p.flag("share_location", True),
        background_label=p.int("background_label_id", 0),
        code_type=code,
        variance_encoded=p.flag("variance_encoded_in_target", False),
        nms_threshold=nms.float("nms_threshold", 0.3),
        nms_top_k=nms.int("top_k", -1),
        keep_top_k=p.int("keep_top_k", -1),
        confidence_threshold=p.float("confidence_threshold", -3e38),
    )
