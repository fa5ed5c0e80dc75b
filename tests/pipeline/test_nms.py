"""Suppression: each kind against the paper's formulas in NumPy, ONNX Runtime, torchvision and
OpenCV."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lite_engine.errors import UsageError

from .pipes import answers, model
from .reference import suppression

pytestmark = pytest.mark.cpu
WIDTH, HEIGHT, THRESHOLD, OVERLAP, SIGMA = 96, 64, 0.25, 0.4, 0.3
KINDS = ["hard", "diou", "weighted", "soft-linear", "soft-gaussian", "matrix-linear",
         "matrix-gaussian"]  # fmt: skip
Boxes = tuple[np.ndarray, np.ndarray, np.ndarray]


def crowded(seed: int, count: int = 80, classes: int = 3) -> Boxes:
    """Corners in pixels, classes, and scores above the threshold that all differ."""
    rng = np.random.default_rng(seed)
    low = rng.random((count, 2)) * [WIDTH / 2, HEIGHT / 2]
    boxes = np.concatenate([low, low + 8 + rng.random((count, 2)) * [24, 20]], axis=1)
    scores = rng.permutation(np.linspace(0.3, 0.99, count))
    return boxes.astype(np.float32), rng.integers(0, classes, count), scores.astype(np.float32)


def native(made: Boxes, **how: Any) -> list[dict[str, Any]]:
    """Rows of a YOLO whose classes have one score above 0, without an objectness."""
    boxes, classes, scores = made
    rows = np.zeros((1, len(boxes) + 9, 7), np.float32)  # more rows than columns
    rows[0, : len(boxes), :2] = (boxes[:, :2] + boxes[:, 2:]) / 2
    rows[0, : len(boxes), 2:4] = boxes[:, 2:] - boxes[:, :2]
    rows[0, np.arange(len(boxes)), 4 + classes] = scores
    read = {"kind": "boxes", "threshold": THRESHOLD, "overlap": OVERLAP, "sigma": SIGMA, **how}
    given = model("m", labels=["a", "b", "c"], read=read, size=[HEIGHT, WIDTH])
    items: list[dict[str, Any]] = answers([rows], given, np.zeros((HEIGHT, WIDTH, 3), np.uint8))[
        "items"
    ]
    return items


def wanted(made: Boxes, kind: str, agnostic: bool) -> suppression.Kept:
    c = suppression.crowd(*made, agnostic)
    if kind.startswith("soft"):
        return suppression.soft(c, OVERLAP if kind.endswith("linear") else None, SIGMA, THRESHOLD)
    if kind.startswith("matrix"):
        return suppression.matrix(c, kind.endswith("linear"), SIGMA, THRESHOLD)
    kept: suppression.Kept = getattr(suppression, kind)(c, OVERLAP)
    return kept


@pytest.mark.parametrize("agnostic", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_are_the_papers(kind: str, agnostic: bool) -> None:
    for seed in range(5):
        made = crowded(seed)
        got = native(made, nms=kind, agnostic=agnostic)
        want = wanted(made, kind, agnostic)
        assert 2 < len(want.places) < len(made[0])  # there was something to suppress
        assert [i["index"] for i in got] == made[1][want.places].tolist()
        np.testing.assert_allclose([i["score"] for i in got], want.scores, rtol=2e-5)
        edges = np.clip(want.boxes, 0, [WIDTH, HEIGHT, WIDTH, HEIGHT])
        np.testing.assert_allclose([i["box"] for i in got], edges, atol=0.011)


def test_kinds_differ() -> None:
    """So that none of the tests above is that of another kind."""
    made = crowded(1)
    told = {(kind, agnostic): str(native(made, nms=kind, agnostic=agnostic))
            for kind in KINDS for agnostic in (False, True)}  # fmt: skip
    assert len(set(told.values())) == len(told)
    assert str(native(made)) == told["hard", False]


def test_keypoints_are_suppressed_alike() -> None:
    boxes, classes, scores = crowded(7, classes=1)
    rows = np.zeros((1, len(boxes), 8), np.float32)
    rows[0, :, :2] = (boxes[:, :2] + boxes[:, 2:]) / 2
    rows[0, :, 2:4] = boxes[:, 2:] - boxes[:, :2]
    rows[0, :, 4] = scores
    rows[0, :, 5:] = [[10, 10, 1]]
    read = {"kind": "keypoints", "points": 1, "threshold": THRESHOLD, "nms": "soft-linear",
            "overlap": OVERLAP}  # fmt: skip
    given = model("m", read=read, size=[HEIGHT, WIDTH])
    got = answers([rows], given, np.zeros((HEIGHT, WIDTH, 3), np.uint8))["items"]
    want = wanted((boxes, classes, scores), "soft-linear", False)
    np.testing.assert_allclose([i["score"] for i in got], want.scores, rtol=2e-5)


def test_copies_of_a_box() -> None:
    """Where a better box lies on another one, Matrix-NMS would divide 0 by 0."""
    boxes = np.array([[8, 8, 40, 40]] * 3 + [[60, 20, 90, 50]], np.float32)
    made = boxes, np.zeros(4, int), np.array([0.9, 0.8, 0.7, 0.6], np.float32)
    for kind in KINDS:
        scores = [i["score"] for i in native(made, nms=kind)]
        assert scores == pytest.approx([0.9, 0.6])
    assert native((boxes[:0], made[1][:0], made[2][:0]), nms="matrix-linear") == []


@pytest.mark.parametrize("agnostic", [False, True])
def test_onnx_runtime_keeps_the_same(agnostic: bool) -> None:
    ort = pytest.importorskip("onnxruntime")
    from onnx import TensorProto, helper

    node = helper.make_node("NonMaxSuppression", ["boxes", "scores", "most", "iou"], ["kept"])
    kinds = {"boxes": TensorProto.FLOAT, "scores": TensorProto.FLOAT, "most": TensorProto.INT64,
             "iou": TensorProto.FLOAT}  # fmt: skip
    values = [helper.make_tensor_value_info(n, k, None) for n, k in kinds.items()]
    out = helper.make_tensor_value_info("kept", TensorProto.INT64, None)
    graph = helper.make_graph([node], "nms", values, [out])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    run = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    for seed in range(5):
        boxes, classes, scores = crowded(seed)
        by_class = np.zeros((1, 1 if agnostic else 3, len(boxes)), np.float32)
        by_class[0, 0 if agnostic else classes, np.arange(len(boxes))] = scores
        (kept,) = run.run(
            None, {"boxes": boxes[None], "scores": by_class, "most": np.array([len(boxes)]),
                   "iou": np.array([OVERLAP], np.float32)},
        )  # fmt: skip
        kept = [i for _, c, i in kept if by_class[0, c, i] > 0]
        best = sorted(kept, key=lambda i: -scores[i])
        got = native((boxes, classes, scores), agnostic=agnostic)
        assert [i["score"] for i in got] == pytest.approx(
            [float(scores[i]) for i in best], rel=1e-5
        )


@pytest.mark.parametrize("agnostic", [False, True])
def test_torchvision_keeps_the_same(agnostic: bool) -> None:
    torch = pytest.importorskip("torch", reason="pip install torch torchvision")
    ops = pytest.importorskip("torchvision.ops", reason="pip install torchvision")
    for seed in range(5):
        made = crowded(seed)
        boxes, classes, scores = map(torch.from_numpy, made)
        kept = (
            ops.nms(boxes, scores, OVERLAP) if agnostic
            else ops.batched_nms(boxes, scores, classes, OVERLAP)
        )  # fmt: skip
        got = native(made, agnostic=agnostic)
        assert [i["index"] for i in got] == classes[kept].tolist()
        assert [i["score"] for i in got] == pytest.approx(scores[kept].tolist(), rel=1e-5)


@pytest.mark.parametrize("kind", ["soft-linear", "soft-gaussian"])
def test_opencv_lowers_the_same(kind: str) -> None:
    """It knows whole pixels only, and one class."""
    cv2 = pytest.importorskip("cv2", reason="pip install opencv-python-headless")
    method = cv2.dnn.SOFT_NMSMETHOD_SOFTNMS_LINEAR, cv2.dnn.SOFT_NMSMETHOD_SOFTNMS_GAUSSIAN
    for seed in range(5):
        boxes, classes, scores = crowded(seed, classes=1)
        boxes = np.round(boxes)
        xywh = np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1).astype(int)
        lowered, _ = cv2.dnn.softNMSBoxes(
            xywh.tolist(), scores.tolist(), THRESHOLD, OVERLAP, top_k=0, sigma=SIGMA,
            method=method[kind.endswith("gaussian")],
        )  # fmt: skip
        got = native((boxes, classes, scores), nms=kind)
        want = np.sort(np.ravel(lowered))[::-1]
        np.testing.assert_allclose([i["score"] for i in got], want, rtol=1e-4)


@pytest.mark.parametrize(
    ("how", "said"),
    [({"nms": "soft"}, "matrix-gaussian"), ({"sigma": 0}, "sigma"), ({"overlap": 2}, "overlap")],
)
def test_what_it_cannot_be(how: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        native(crowded(0), **how)
