"""Detection's last operators against their definitions: crowded boxes, tied scores, odd numbers."""

import numpy as np
import pytest

from .tiny import check

pytestmark = pytest.mark.cpu
rng = np.random.default_rng(19)


def scores(*shape):
    """In steps of an eighth: many are equal; a few are no numbers."""
    x = (rng.integers(0, 9, shape) / 8).astype(np.float32)
    flat = x.reshape(-1)
    flat[rng.permutation(x.size)[: x.size // 50]] = np.nan
    return x


def moves(*shape):
    return rng.normal(0, 1, shape).astype(np.float32)


def anchors(count):
    """Centres and sizes: several to a place, one without extent."""
    out = np.concatenate([rng.integers(0, 4, (count, 2)) / 4, np.full((count, 2), 0.3)], 1)
    out[count // 2, 2:] = 0
    return out.astype(np.float32)


@pytest.mark.parametrize("regular", [False, True])
@pytest.mark.parametrize("boxes, columns, most", [(1, 1, 3), (40, 4, 10), (150, 7, 100)])
def test_tflite(boxes, columns, most, regular):
    for per_box, per_class, least, iou in [(1, 100, 0.2, 0.6), (3, 2, -1.0, 0.3), (2, 4, 2.0, 0.5)]:
        attrs = {
            "max_detections": most, "max_classes_per_detection": per_box,
            "detections_per_class": per_class, "num_classes": max(columns - 1, 1),
            "score_threshold": least, "iou_threshold": iou, "use_regular_nms": regular,
        }  # fmt: skip
        inputs = [moves(1, boxes, 4), scores(1, boxes, columns), anchors(boxes)]
        kernel = "f32_detection_postprocess"
        check("TFLite_Detection_PostProcess", kernel, inputs, attrs, n_outputs=4)


@pytest.mark.parametrize("code", [1, 2, 3])
@pytest.mark.parametrize("shared", [True, False])
def test_caffe(shared, code):
    for images, boxes, classes, keep, most, encoded in [
        (1, 30, 2, 20, -1, False), (2, 60, 4, 25, 9, True), (1, 5, 3, 200, 400, False),
        (1, 8, 2, 0, -1, False),
    ]:  # fmt: skip
        attrs = {
            "num_classes": classes, "share_location": shared, "background_label": 0,
            "code_type": code, "variance_encoded": encoded, "nms_threshold": 0.4,
            "nms_top_k": most, "keep_top_k": keep, "confidence_threshold": 0.2,
        }  # fmt: skip
        place = anchors(boxes)
        corners = np.concatenate([place[:, :2], place[:, :2] + place[:, 2:]], 1)
        priors = np.stack([corners.ravel(), np.full(4 * boxes, 0.15, np.float32)])[None]
        sets = 1 if shared else classes
        inputs = [moves(images, boxes * sets * 4), scores(images, boxes * classes), priors]
        check("DetectionOutput", "f32_detection_output", inputs, attrs)
