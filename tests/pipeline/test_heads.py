"""Heads of YOLO that the runtime decodes, keypoints, embeddings and coloured masks: against the
papers' formulas in NumPy, over whole tensors."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from lite_engine.errors import UsageError
from lite_engine.pipeline.native import NativePipeline
from PIL import Image

from .pipes import answers, document, model, png
from .reference.boxes import suppress

pytestmark = pytest.mark.cpu
rng = np.random.default_rng(17)
SIZE, CLASSES = 96, 4
LABELS = ["a", "b", "c", "d"]
ANCHORS = [[14, 16, 18, 18, 22, 16], [20, 16, 16, 30, 30, 30]]


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def grid(height: int, width: int) -> np.ndarray:
    """(H,W,2) of x and y."""
    return np.stack(np.meshgrid(np.arange(width), np.arange(height)), axis=-1).astype(np.float64)


def check(outputs: list[np.ndarray], how: dict, xywh: np.ndarray, scores: np.ndarray) -> None:
    """The runtime's boxes are those of centres, sizes and scores (N,C), after suppression."""
    read = {"kind": "boxes", "threshold": 0.3, "overlap": 0.1, **how}
    got = answers(
        [np.ascontiguousarray(o, np.float32) for o in outputs],
        model("m", len(outputs), labels=LABELS, read=read, size=[SIZE, SIZE]),
        np.zeros((SIZE, SIZE, 3), np.uint8),
    )["items"]
    boxes = np.concatenate([xywh[:, :2] - xywh[:, 2:] / 2, xywh[:, :2] + xywh[:, 2:] / 2], axis=1)
    best, value = scores.argmax(1), scores.max(1)
    sure = value > 0.3
    boxes, best, value = boxes[sure], best[sure], value[sure]
    kept = suppress(boxes, best, value, 0.1)
    assert 2 < len(kept) < len(boxes)  # suppression had work to do
    assert [i["index"] for i in got] == best[kept].tolist()
    np.testing.assert_allclose([i["score"] for i in got], value[kept], rtol=1e-4)
    np.testing.assert_allclose([i["box"] for i in got], np.clip(boxes[kept], 0, SIZE), atol=0.02)


def laid_out(head: np.ndarray, layout: str) -> np.ndarray:
    """(H,W,A,C) as exporters write it."""
    h, w, a, c = head.shape
    return {
        "NCHW": head.transpose(2, 3, 0, 1).reshape(1, a * c, h, w),
        "NHWC": head.reshape(1, h, w, a * c),
        "NAHWC": head.transpose(2, 0, 1, 3)[None],
        "NHWAC": head[None],
        "NACHW": head.transpose(2, 3, 0, 1)[None],
    }[layout]


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "NAHWC", "NHWAC", "NACHW"])
@pytest.mark.parametrize(("form", "scale"), [("yolov3", 1.0), ("yolov3", 1.1), ("yolov5", 2.0)])
def test_heads_with_anchors(layout: str, form: str, scale: float) -> None:
    outputs, xywh, scores = [], [], []
    for anchors, stride in zip(ANCHORS, (8, 16), strict=True):
        n, sizes = SIZE // stride, np.array(anchors, np.float64).reshape(-1, 2)
        head = rng.standard_normal((n, n, 3, 5 + CLASSES))
        cell = grid(n, n)[:, :, None]
        centre = (sigmoid(head[..., :2]) * scale - (scale - 1) / 2 + cell) * stride
        if form == "yolov5":
            size = (2 * sigmoid(head[..., 2:4])) ** 2 * sizes
        else:
            size = np.exp(head[..., 2:4]) * sizes
        xywh.append(np.concatenate([centre, size], axis=-1).reshape(-1, 4))
        scores.append((sigmoid(head[..., 4:5]) * sigmoid(head[..., 5:])).reshape(-1, CLASSES))
        outputs.append(laid_out(head, layout))
    how = {"decode": form, "anchors": ANCHORS} | ({} if form == "yolov5" else {"scale_xy": scale})
    check(outputs[::-1], how, np.concatenate(xywh), np.concatenate(scores))  # whatever the order


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
@pytest.mark.parametrize("bins", [1, 16])
def test_heads_without_anchors(split: bool, layout: str, bins: int) -> None:
    outputs, xywh, scores = [], [], []
    for stride in (8, 16):
        n = SIZE // stride
        sides = rng.standard_normal((n, n, 4, bins)) if bins > 1 else rng.random((n, n, 4, 1)) * 3
        logits = rng.standard_normal((n, n, CLASSES))
        share = np.exp(sides) / np.exp(sides).sum(-1, keepdims=True)
        far = (share @ np.arange(bins)) if bins > 1 else sides[..., 0]
        centre = grid(n, n) + 0.5
        low, high = (centre - far[..., :2]) * stride, (centre + far[..., 2:]) * stride
        xywh.append(np.concatenate([(low + high) / 2, high - low], axis=-1).reshape(-1, 4))
        scores.append(sigmoid(logits).reshape(-1, CLASSES))
        parts = [sides.reshape(n, n, 1, 4 * bins), logits[:, :, None]]
        parts = parts if split else [np.concatenate(parts, axis=-1)]
        outputs += [laid_out(part, layout) for part in parts]
    check(outputs, {"decode": "yolov8", "bins": bins}, np.concatenate(xywh), np.concatenate(scores))


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("center", [0.0, 0.5])
def test_rows_of_distances(together: bool, center: float) -> None:
    """NanoDet: scores before the distributions, rows of all strides or outputs of each."""
    bins, outputs, xywh, scores = 8, [], [], []
    for stride in (8, 16, 32):
        n = SIZE // stride
        sides = rng.standard_normal((n * n, 4, bins)) * 2
        share = np.exp(sides) / np.exp(sides).sum(-1, keepdims=True)
        far = share @ np.arange(bins)
        at = grid(n, n).reshape(-1, 2) + center
        low, high = (at - far[:, :2]) * stride, (at + far[:, 2:]) * stride
        xywh.append(np.concatenate([(low + high) / 2, high - low], axis=1))
        scores.append(rng.random((n * n, CLASSES)))
        outputs.append([scores[-1], sides.reshape(n * n, -1)])
    if together:
        outputs = [np.concatenate([np.concatenate(level, axis=1) for level in outputs])[None]]
    else:
        outputs = [part[None] for level in outputs for part in level]
    how = {"decode": "nanodet", "center": center}
    check(outputs, how, np.concatenate(xywh), np.concatenate(scores))


@pytest.mark.parametrize("pixels", [True, False])
@pytest.mark.parametrize(("layout", "center"), [("NCHW", 0.5), ("rows", 0.5), ("rows", 0.0)])
def test_heads_with_centerness(layout: str, center: float, pixels: bool) -> None:
    """FCOS: classes, distances and centerness of each stride, as grids or as rows of all. Cells of
    torchvision's begin at their corner."""
    strides, levels, xywh, scores = (8, 16, 32), [], [], []
    for stride in strides:
        n = SIZE // stride
        far, logits, sure = rng.random((n, n, 4)) * 3, rng.standard_normal((n, n, CLASSES)), \
            rng.standard_normal((n, n, 1)) + 1  # fmt: skip
        at = grid(n, n) + center
        low, high = (at - far[..., :2]) * stride, (at + far[..., 2:]) * stride
        xywh.append(np.concatenate([(low + high) / 2, high - low], axis=-1).reshape(-1, 4))
        scores.append(np.sqrt(sigmoid(logits) * sigmoid(sure)).reshape(-1, CLASSES))
        levels.append([logits, far * (stride if pixels else 1), sure])
    if layout == "rows":
        parts = zip(*levels, strict=True)
        outputs = [np.concatenate([p.reshape(-1, p.shape[-1]) for p in part])[None]
                   for part in parts]  # fmt: skip
    else:
        outputs = [part.transpose(2, 0, 1)[None] for level in levels for part in level]
    how = {"decode": "fcos", "pixels": pixels, "strides": list(strides), "center": center}
    check(outputs, how, np.concatenate(xywh), np.concatenate(scores))


def test_rows_of_all_strides() -> None:
    rows, xywh, scores = [], [], []
    for stride in (8, 16, 32):
        n = SIZE // stride
        head = np.concatenate(
            [rng.standard_normal((n * n, 4)), 0.3 + 0.7 * rng.random((n * n, 1 + CLASSES))], axis=1
        )
        rows.append(head)
        centre = (head[:, :2] + grid(n, n).reshape(-1, 2)) * stride
        xywh.append(np.concatenate([centre, np.exp(head[:, 2:4]) * stride], axis=1))
        scores.append(head[:, 4:5] * head[:, 5:])
    check(
        [np.concatenate(rows)[None]], {"decode": "yolox"}, np.concatenate(xywh),
        np.concatenate(scores),
    )  # fmt: skip


def test_heads_that_do_not_fit_are_values() -> None:
    how = {"kind": "boxes", "decode": "yolov5", "anchors": ANCHORS}
    for shape in ((1, 27, 7, 8), (1, 26, 8, 8), (1, 27, 8, 4), (1, 27, 8, 8)):  # one level only
        output = np.zeros(shape, np.float32)
        assert answers([output], model("m", read=how, size=[64, 64]))["kind"] == "values"


def points_of(item: dict) -> np.ndarray:
    return np.array(item["keypoints"])


@pytest.mark.parametrize("turned", [True, False])
@pytest.mark.parametrize("objectness", [True, False])
def test_rows_of_poses(turned: bool, objectness: bool) -> None:
    n, points = 120, 5
    centre, size = rng.random((n, 2)) * 40 + 12, rng.random((n, 2)) * 20 + 5
    sure, score = rng.random((n, 1)), rng.random((n, 1))
    keypoints = rng.random((n, points, 3)) * [60, 60, 1]
    parts = [centre, size, *([sure] if objectness else []), score, keypoints.reshape(n, -1)]
    rows = np.concatenate(parts, axis=1).astype(np.float32)
    read = {"kind": "keypoints", "points": points, "threshold": 0.3, "overlap": 0.2}
    got = answers(
        [np.ascontiguousarray(rows.T[None] if turned else rows[None])],
        model("m", read=read, size=[64, 64]), np.zeros((64, 64, 3), np.uint8),
    )["items"]  # fmt: skip
    value = (score * sure if objectness else score)[:, 0]
    keep = np.flatnonzero(value > 0.3)
    boxes = np.concatenate([centre - size / 2, centre + size / 2], axis=1)
    kept = keep[suppress(boxes[keep], np.zeros(len(keep)), value[keep], 0.2)]
    assert 1 < len(kept) < len(keep)
    np.testing.assert_allclose([i["score"] for i in got], value[kept], rtol=1e-4)
    np.testing.assert_allclose([points_of(i) for i in got], keypoints[kept], atol=0.01)


@pytest.mark.parametrize("last", [True, False])
def test_heat_maps(last: bool) -> None:
    maps = rng.random((1, 6, 12, 16)).astype(np.float32)
    output = np.ascontiguousarray(maps.transpose(0, 2, 3, 1)) if last else maps
    (item,) = answers(
        [output], model("m", read={"kind": "keypoints", "points": 6}, size=[48, 64]),
        np.zeros((48, 64, 3), np.uint8),
    )["items"]  # fmt: skip
    flat = maps[0].reshape(6, -1)
    y, x = np.unravel_index(flat.argmax(1), (12, 16))
    around = np.pad(maps[0], ((0, 0), (1, 1), (1, 1)), constant_values=np.nan)
    k = np.arange(6)
    dx = np.sign(around[k, y + 1, x + 2] - around[k, y + 1, x])
    dy = np.sign(around[k, y + 2, x + 1] - around[k, y, x + 1])
    want = np.stack([x + 0.25 * np.nan_to_num(dx), y + 0.25 * np.nan_to_num(dy)], axis=1) * 4
    np.testing.assert_allclose(points_of(item)[:, :2], want, atol=0.01)
    np.testing.assert_allclose(points_of(item)[:, 2], flat.max(1), rtol=1e-5)
    assert item["score"] == pytest.approx(flat.max(1).mean(), rel=1e-5)


def test_movenet_and_coordinates() -> None:
    points = rng.random((4, 3)).astype(np.float32)
    want = points[:, [1, 0, 2]] * [16, 16, 1]
    read = {"kind": "keypoints", "points": 4}
    (one,) = answers([points[None, None]], model("m", read=read))["items"]
    np.testing.assert_allclose(points_of(one), want, atol=0.006)
    people = np.zeros((1, 3, 17), np.float32)
    people[0, :, :12] = points.ravel()
    people[0, :, 12:] = [[0.1, 0.2, 0.5, 0.6, s] for s in (0.3, 0.9, 0.7)]
    several = answers([people], model("m", read=read))["items"]
    assert [i["score"] for i in several] == pytest.approx([0.9, 0.7])
    np.testing.assert_allclose(several[0]["box"], np.array([0.2, 0.1, 0.6, 0.5]) * 16, atol=0.006)
    np.testing.assert_allclose(points_of(several[1]), want, atol=0.006)
    (flat,) = answers([points[:, :2].reshape(1, 8)], model("m", read=read))["items"]
    np.testing.assert_allclose(points_of(flat)[:, :2], points[:, :2] * 16, atol=0.006)


def test_embeddings_find_the_closest_vector() -> None:
    gallery = rng.standard_normal((9, 32))
    vector = (gallery[4] + 0.3 * rng.standard_normal(32)).astype(np.float32)
    labels = [f"person {i}" for i in range(9)]
    read = {"kind": "vector", "top": 3, "gallery": gallery.tolist()}
    got = answers([vector[None, :, None, None]], model("m", labels=labels, read=read))
    cosine = gallery @ vector / np.linalg.norm(gallery, axis=1) / np.linalg.norm(vector)
    order = np.argsort(-cosine)[:3]
    assert [i["label"] for i in got["items"]] == [labels[i] for i in order]
    np.testing.assert_allclose([i["score"] for i in got["items"]], cosine[order], atol=1e-5)
    np.testing.assert_allclose(got["vector"], vector / np.linalg.norm(vector), atol=1e-5)
    nothing = answers([np.zeros(32, np.float32)], model("m", read={"kind": "vector"}))
    assert nothing["vector"] == [0] * 32 and "items" not in nothing
    with pytest.raises(UsageError, match="not as long"):
        answers([vector[:30]], model("m", read=read))


@pytest.mark.parametrize("name", ["colors", "colours"])  # the second: files of earlier versions
@pytest.mark.parametrize("colors", [None, [[10, 20, 30], [200, 100, 0], [0, 255, 9]]])
def test_masks_are_colored(colors, name) -> None:
    """Half the photo, half the class's color; class 0 stays where it has none of its own."""
    photo = rng.integers(0, 256, (40, 48, 3)).astype(np.uint8)
    classes = rng.integers(0, 3, (1, 20, 24)).astype(np.int64)
    read = {"kind": "mask"} | ({name: colors} if colors else {})
    native = NativePipeline(document([model("m", read=read, size=[20, 24])]), lambda *_: [classes])
    native.run(png(photo))
    drawn = np.asarray(Image.open(io.BytesIO(native.drawn())))
    large = classes[0].repeat(2, axis=0).repeat(2, axis=1)
    if colors:
        want = (photo.astype(int) + np.array(colors)[large]) // 2
        np.testing.assert_array_equal(drawn, want)
    else:
        np.testing.assert_array_equal(drawn[large == 0], photo[large == 0])
        assert (drawn[large > 0] != photo[large > 0]).any(axis=-1).mean() > 0.95


@pytest.mark.parametrize(
    ("read", "why"),
    [
        ({"decode": "yolov9"}, "decode"), ({"decode": "yolov5"}, "needs `anchors`"),
        ({"decode": "yolov5", "anchors": [[1, 2, 3]]}, "anchors"),
        ({"decode": "yolov5", "anchors": [[0, 2]]}, "anchor"),
        ({"decode": "yolov8", "bins": 0}, "bins"),
        ({"decode": "yolov3", "scale_xy": 9}, "scale_xy"),
        ({"decode": "yolox", "strides": [0]}, "strides"), ({"points": 0}, "points"),
        ({"gallery": [[1, 2], [1]]}, "one length"), ({"gallery": [[]]}, "one length"),
        ({"gallery": [["x"]]}, "vectors"), ({"colors": [[1, 2]]}, "colors"),
        ({"colours": [[1, 2, 256]]}, "colors"),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_adapters_are_refused(read: dict, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        NativePipeline(document([model("m", read=json.loads(json.dumps(read)))]), lambda *_: ())


@pytest.mark.parametrize("layout", ["NCHW", "NHWC", "grey"])
def test_outputs_that_are_images(layout: str) -> None:
    """In the numbers and the channel order of the input; what is drawn is the image."""
    pixels = rng.integers(0, 256, (12, 20, 1 if layout == "grey" else 3), np.uint8)
    mean, std = np.array([100.0, 110, 120]), np.array([50.0, 60, 70])
    x = (pixels[..., ::-1] - mean[: pixels.shape[2]]) / std[: pixels.shape[2]]
    x = x.astype(np.float32) if layout == "NHWC" else x.transpose(2, 0, 1).astype(np.float32)
    how = {"mean": mean.tolist(), "std": std.tolist(), "colour": "bgr"}
    native = NativePipeline(
        document([model("m", read={"kind": "image"}, **how)]),
        lambda *_: [np.ascontiguousarray(x[None])],
    )
    native.run(png(np.zeros((6, 10, 3), np.uint8)))
    got = json.loads(native.answer(times=False))["answers"]["m"]
    assert got == {"kind": "image", "width": 20, "height": 12}
    with Image.open(io.BytesIO(native.drawn())) as drawn:
        np.testing.assert_array_equal(np.asarray(drawn), np.broadcast_to(pixels, (12, 20, 3)))
