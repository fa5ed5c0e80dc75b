"""Detection's last operators against their definitions: crowded boxes, tied scores, odd numbers."""

import numpy as np
import pytest

from ..tiny import check

pytestmark = pytest.mark.cpu
rng = np.random.default_rng(19)


def scores(*shape):
    """In steps of an eighth: many are equal, also to the thresholds; a few are no numbers."""
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
    cases = [(1, 100, 0.875, 0.6), (3, 2, -1.0, 0.3), (2, 4, 2.0, 0.5)]
    for per_box, per_class, least, iou in cases:
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
            "nms_top_k": most, "keep_top_k": keep, "confidence_threshold": 0.25,
        }  # fmt: skip
        place = anchors(boxes)
        corners = np.concatenate([place[:, :2], place[:, :2] + place[:, 2:]], 1)
        priors = np.stack([corners.ravel(), np.full(4 * boxes, 0.15, np.float32)])[None]
        sets = 1 if shared else classes
        inputs = [moves(images, boxes * sets * 4), scores(images, boxes * classes), priors]
        check("DetectionOutput", "f32_detection_output", inputs, attrs)


def crowded(*shape):
    """Corners on a small grid; some boxes have none or less than no extent."""
    low = rng.integers(0, 6, (*shape, 2))
    return np.concatenate([low, low + rng.integers(-1, 7, low.shape)], -1).astype(np.float32)


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("normalized", [0, 1])
def test_paddle(normalized, per_class):
    for images, boxes, classes, keep, most, eta, background in [
        (1, 40, 4, 20, 15, 1.0, 0), (2, 30, 3, -1, -1, 0.9, -1), (1, 6, 2, 300, 400, 1.0, 5),
        (2, 5, 1, 10, 10, 1.0, 0),
    ]:  # fmt: skip
        attrs = {
            "background_label": background, "score_threshold": 0.25, "nms_top_k": most,
            "keep_top_k": keep, "nms_threshold": 0.6, "nms_eta": eta, "normalized": normalized,
            "padded": 1,
        }  # fmt: skip
        sets = (classes,) if per_class else ()
        inputs = [crowded(images, boxes, *sets), scores(images, classes, boxes)]
        check("multiclass_nms", "f32_multiclass_nms", inputs, attrs, n_outputs=3)


@pytest.mark.parametrize("gaussian", [0, 1])
@pytest.mark.parametrize("normalized", [0, 1])
def test_matrix(normalized, gaussian):
    for images, boxes, classes, keep, most, background in [
        (1, 40, 4, 20, 15, 0), (2, 30, 3, -1, -1, -1), (1, 6, 2, 300, 400, 5), (2, 5, 1, 10, 10, 0),
    ]:  # fmt: skip
        attrs = {
            "background_label": background, "score_threshold": 0.25, "nms_top_k": most,
            "keep_top_k": keep, "post_threshold": 0.1, "use_gaussian": gaussian,
            "gaussian_sigma": 1.5, "normalized": normalized, "padded": 1,
        }  # fmt: skip
        inputs = [crowded(images, boxes), scores(images, classes, boxes)]
        check("matrix_nms", "f32_matrix_nms", inputs, attrs, n_outputs=3)


@pytest.mark.parametrize("centred", [0, 1])
def test_onnx(centred):
    for images, boxes, classes, most, iou, least in [
        (1, 40, 4, 10, 0.4, 0.25), (2, 30, 1, 99, 0.0, -1.0), (1, 6, 3, 2, 1.0, None),
        (1, 5, 2, 3, None, 2.0),
    ]:  # fmt: skip
        attrs = {"center_point_box": centred, "padded": 1}
        inputs = [crowded(images, boxes), scores(images, classes, boxes), np.array([most]),
                  None if iou is None else np.array([iou], np.float32),
                  None if least is None else np.array([least], np.float32)]  # fmt: skip
        names = ("max_output_boxes_per_class", "iou_threshold", "score_threshold")
        given = {n: i for i, n in enumerate(names, 2) if inputs[i] is not None}
        kernel = "f32_non_max_suppression"
        check("NonMaxSuppression", kernel, inputs, attrs, as_attrs=given)


@pytest.mark.parametrize("aware", [0, 1])
@pytest.mark.parametrize("sizes", [np.int32, np.float32])
def test_yolo_box(aware, sizes):
    for images, anchor, classes, h, w, clip, scale in [
        (1, [10, 13, 16, 30, 33, 23], 3, 4, 5, 1, 1.0), (2, [7, 9], 1, 3, 3, 0, 1.05),
    ]:  # fmt: skip
        attrs = {
            "anchors": anchor, "class_num": classes, "conf_thresh": 0.4, "downsample_ratio": 8,
            "clip_bbox": clip, "scale_x_y": scale, "iou_aware": aware, "iou_aware_factor": 0.4,
        }  # fmt: skip
        x = moves(images, len(anchor) // 2 * (classes + 5 + aware), h, w)
        size = np.array([[50, 40], [20, 33]][:images], sizes)
        check("yolo_box", "f32_yolo_box", [x, size], attrs, n_outputs=2)


@pytest.mark.parametrize("normalized", [0, 1])
def test_box_coder(normalized):
    low = rng.integers(0, 6, (7, 2))
    prior = np.concatenate([low, low + 3], 1).astype(np.float32)
    for rows, columns, axis in [(3, 7, 0), (7, 2, 1)]:
        for variance, given in [
            (np.full((7, 4), 0.2, np.float32), []), (None, [0.1, 0.1, 0.2, 0.2]), (None, []),
            (np.full(4, 0.3, np.float32), []),
        ]:  # fmt: skip
            attrs = {"code_type": "decode_center_size", "box_normalized": normalized, "axis": axis,
                     "variance": given}  # fmt: skip
            inputs = [prior, variance, moves(rows, columns, 4)]
            check("box_coder", "f32_box_coder", inputs, attrs)
