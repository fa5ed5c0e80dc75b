"""Outputs to answers: the native readings against NumPy's (reference/)."""

from __future__ import annotations

import numpy as np
import pytest

from .pipes import answers, model
from .reference.boxes import find_boxes
from .reference.regions import find_regions
from .reference.scores import find_line, find_top

pytestmark = pytest.mark.cpu
rng = np.random.default_rng(5)
LETTERS = [*"abcdefghijklmnopqrstuvwxyz"]


@pytest.mark.parametrize("shape", [(10,), (1, 10), (1, 10, 1, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32])
def test_class_scores(shape, dtype) -> None:
    scores = (rng.standard_normal(shape) * 50).astype(dtype)
    scores.ravel()[3] = scores.ravel()[7]  # equal scores keep their order
    got = answers([scores], model("m", labels=LETTERS))
    want, _ = find_top([scores], LETTERS, 5)
    assert got["kind"] == "top"
    assert [(i["label"], i["index"]) for i in got["items"]] == [
        (i["label"], i["index"]) for i in want
    ]
    np.testing.assert_allclose(
        [i["score"] for i in got["items"]], [i["score"] for i in want], rtol=1e-5
    )


def test_softmax_and_the_number_of_classes() -> None:
    scores = rng.standard_normal(10).astype(np.float32)
    got = answers([scores], model("m", read={"kind": "top", "top": 10, "softmax": True}))
    want = np.exp(scores) / np.exp(scores).sum()
    np.testing.assert_allclose([i["score"] for i in got["items"]], np.sort(want)[::-1], rtol=1e-5)
    assert got["items"][0]["label"] == f"class {np.argmax(scores)}"


def test_quantised_scores_become_what_they_stand_for() -> None:
    scores = rng.integers(0, 256, 10).astype(np.uint8)
    got = answers([scores], model("m", quants=[{"scale": 0.00390625, "zero_point": 7}]))
    want = np.sort((scores.astype(np.float32) - 7) * 0.00390625)[::-1][:5]
    np.testing.assert_allclose([i["score"] for i in got["items"]], want, rtol=1e-5)


def post_processed():
    boxes = np.sort(rng.random((1, 12, 2, 2)), axis=2).reshape(1, 12, 4).astype(np.float32)
    classes = rng.integers(0, 5, (1, 12)).astype(np.float32)
    scores = -np.sort(-rng.random((1, 12)).astype(np.float32))
    return [boxes, classes, scores, np.array([9], np.float32)]


def caffe_rows():
    corners = np.sort(rng.random((12, 2, 2)), axis=1).reshape(12, 4)
    head = np.stack([np.zeros(12), rng.integers(1, 5, 12), rng.random(12)], axis=1)
    return [np.concatenate([head, corners], axis=1).astype(np.float32)[None, None]]


def paddle_rows():
    corners = np.sort(rng.random((12, 2, 2)), axis=1).reshape(12, 4) * 16  # pixels
    head = np.stack([rng.integers(0, 5, 12), rng.random(12)], axis=1)
    return [np.concatenate([head, corners], axis=1).astype(np.float32)]


def corners_and_scores():
    """Crowded: suppression has work to do."""
    low = rng.random((1, 200, 2)) * 0.3
    boxes = np.concatenate([low, low + 0.3 + 0.2 * rng.random((1, 200, 2))], axis=2)
    return [boxes.astype(np.float32), rng.random((1, 200, 3)).astype(np.float32)]


@pytest.mark.parametrize("made", [post_processed, caffe_rows, paddle_rows, corners_and_scores])
def test_boxes(made) -> None:
    outputs = made()
    got = answers(outputs, model("m", len(outputs), labels=LETTERS))
    want = find_boxes({str(i): a for i, a in enumerate(outputs)}, LETTERS, (16, 16))
    assert got["kind"] == "boxes"
    assert [i["label"] for i in got["items"]] == [i["label"] for i in want]
    assert want  # there was something to find
    for g, w in zip(got["items"], want, strict=True):
        assert g["score"] == pytest.approx(w["score"], rel=1e-5)
        np.testing.assert_allclose(g["box"], 16 * np.array(w["box"]), atol=0.006)  # two decimals


@pytest.mark.parametrize("objectness", [True, False])
@pytest.mark.parametrize("turned", [True, False])
def test_rows_of_yolo(objectness: bool, turned: bool) -> None:
    """Centre, size and scores, (N,C) or (C,N), in pixels; torchvision's rule of suppression."""
    n, classes = 60, 4
    centre, size = rng.random((n, 2)) * 12 + 2, rng.random((n, 2)) * 6 + 2
    scores = rng.random((n, classes))
    sure = rng.random((n, 1)) if objectness else np.ones((n, 0))
    rows = np.concatenate([centre, size, sure, scores], axis=1).astype(np.float32)
    output = rows.T[None] if turned else rows[None]
    got = answers(
        [np.ascontiguousarray(output)],
        model(
            "m", labels=LETTERS[:classes], read={"kind": "boxes", "threshold": 0.3, "overlap": 0.5}
        ),
    )
    total = scores * sure if objectness else scores
    best, value = total.argmax(1), total.max(1)
    boxes = np.concatenate([centre - size / 2, centre + size / 2], axis=1)
    kept: list[int] = []
    for i in np.argsort(-value):
        if value[i] > 0.3 and not any(
            best[k] == best[i] and iou(boxes[k], boxes[i]) > 0.5 for k in kept
        ):
            kept.append(i)
    assert [i["index"] for i in got["items"]] == [best[i] for i in kept]
    for item, i in zip(got["items"], kept, strict=True):
        np.testing.assert_allclose(item["box"], np.clip(boxes[i], 0, 16), atol=0.006)


def iou(a, b) -> float:
    common = np.clip(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0, None).prod()
    return common / ((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - common)


@pytest.mark.parametrize("kind", ["scores first", "scores last", "classes"])
def test_classes_of_pixels(kind: str) -> None:
    scores = rng.standard_normal((1, 3, 20, 24)).astype(np.float32)
    output = {
        "scores first": scores,
        "scores last": np.ascontiguousarray(scores.transpose(0, 2, 3, 1)),
        "classes": scores.argmax(1).astype(np.int64),
    }[kind]
    got = answers([output], model("m", labels=LETTERS, size=[20, 24]))
    want = np.bincount(scores.argmax(1).ravel(), minlength=3) / (20 * 24)
    assert got["kind"] == "mask"
    for item in got["items"]:
        assert item["share"] == pytest.approx(want[item["index"]], rel=1e-5)


@pytest.mark.parametrize("dictionary", ["with blank first", "with blank last", "without blank"])
@pytest.mark.parametrize("turned", [False, True])
def test_lines_of_text(dictionary: str, turned: bool) -> None:
    labels = {
        "with blank first": ["-", *LETTERS], "with blank last": [*LETTERS, "-"],
        "without blank": LETTERS,
    }[dictionary]  # fmt: skip
    classes = len(LETTERS) + 1
    scores = rng.standard_normal((1, 40, classes)).astype(np.float32) * 4
    output = np.ascontiguousarray(scores.transpose(0, 2, 1)) if turned else scores
    got, want = answers([output], model("m", labels=labels)), find_line([output], labels)
    assert got["kind"] == "text"
    assert got["text"] == "".join(i["label"] for i in want) != ""
    assert got["confidence"] == pytest.approx(np.mean([i["score"] for i in want]), rel=1e-5)


def probability_map() -> np.ndarray:
    """Slanted bars of text, one of them too thin and one too faint."""
    y, x = np.mgrid[:120, :160]
    out = np.zeros((120, 160), np.float32)
    for cx, cy, angle, length, height, value in (
        (40, 25, 0.0, 30, 6, 0.9), (110, 30, 0.3, 35, 7, 0.95), (60, 80, -0.2, 40, 8, 0.8),
        (130, 95, 0.1, 12, 1, 0.9), (20, 105, 0.0, 12, 6, 0.4),
    ):  # fmt: skip
        u = (x - cx) * np.cos(angle) + (y - cy) * np.sin(angle)
        v = (y - cy) * np.cos(angle) - (x - cx) * np.sin(angle)
        out[(abs(u) < length) & (abs(v) < height)] = value
    return out


def test_regions_are_those_of_the_reference_in_reading_order() -> None:
    output = probability_map()[None, None]
    got = answers([output], model("m", size=[120, 160]), np.zeros((120, 160, 3), np.uint8))
    want = find_regions({"map": output})
    assert got["kind"] == "regions" and len(got["items"]) == len(want) == 3
    boxes = np.array([i["box"] for i in got["items"]])
    expected = np.array([i["box"] for i in want]) * [160, 120, 160, 120]
    order = [int(np.abs(boxes - e).sum(axis=1).argmin()) for e in expected]
    assert sorted(order) == [0, 1, 2]
    np.testing.assert_allclose(boxes[order], expected, atol=0.006)
    assert np.all(np.diff([i["corners"][1] for i in got["items"]]) > -10)


def test_what_is_not_a_number_says_nothing() -> None:
    assert answers([np.full(10, np.nan, np.float32)], model("m"))["kind"] == "values"
