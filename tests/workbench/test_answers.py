"""Outputs → what they say, on arrays made by hand."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.ir import QuantParams
from lite_workbench.answers import answer, real_of
from lite_workbench.views import _worst_outputs
from lite_workbench.words import milliseconds, number

from tests.pipeline.reference.boxes import suppress


def test_post_processed_boxes_are_turned() -> None:
    outputs = {
        "boxes": np.array([[[0.1, 0.2, 0.5, 0.6], [0, 0, 1, 1]]], np.float32),  # y0 x0 y1 x1
        "classes": np.array([[1, 0]], np.float32),
        "scores": np.array([[0.9, 0.2]], np.float32),
        "count": np.array([2], np.float32),
    }
    said = answer(outputs, ["cat", "dog"])
    assert (said.kind, said.text) == ("boxes", "1 dog")
    np.testing.assert_allclose(said.items[0]["box"], [0.2, 0.1, 0.6, 0.5])
    assert len(answer(outputs, [], threshold=0.1).items) == 2


def test_rows_in_pixels_become_parts_of_the_picture() -> None:
    rows = np.array([[2, 0.8, 10, 20, 30, 40], [-1, 0, 0, 0, 0, 0]], np.float32)
    said = answer({"nms": rows, "count": np.array([1], np.int32)}, [], size=(80, 100))
    assert said.text == "1 class 2"
    np.testing.assert_allclose(said.items[0]["box"], [0.1, 0.25, 0.3, 0.5])


def test_one_detection_is_no_classifier() -> None:
    """Caffe's DetectionOutput has one row for one box, and one of -1 for none."""
    row = np.array([0, 1, 0.9, 0.1, 0.2, 0.3, 0.4], np.float32).reshape(1, 1, 1, 7)
    said = answer({"detection_out": row}, ["background", "face"])
    assert (said.kind, said.text) == ("boxes", "1 face")
    none = answer({"detection_out": np.full((1, 1, 1, 7), -1, np.float32)}, [])
    assert (none.kind, none.items) == ("boxes", [])
    for hot in range(7):
        classes = np.eye(7, dtype=np.float32)[hot].reshape(1, 1, 1, 7)
        assert answer({"prob": classes}, []).text == str(hot)
    assert answer({"prob": row[..., ::-1].copy()}, []).kind == "top"


def test_decoded_boxes_are_thinned_out() -> None:
    boxes = np.array([[[0, 0, 0.5, 0.5], [0.02, 0, 0.5, 0.5], [0.6, 0.6, 1, 1]]], np.float32)
    scores = np.array([[[0.1, 0.9], [0.05, 0.95], [0.3, 0.7]]], np.float32)
    said = answer({"scores": scores, "boxes": boxes}, ["background", "face"])
    assert [item["score"] for item in said.items] == pytest.approx([0.95, 0.7])
    assert said.text == "2 face"
    offsets = boxes[..., [2, 3, 0, 1]] - 0.7  # corners the wrong way round: not decoded
    assert answer({"scores": scores, "boxes": offsets}, []).kind == "values"


def test_labels_that_do_not_fit_are_said() -> None:
    scores = {"y": np.array([[0.1, 0.7, 0.2]], np.float32)}
    said = answer(scores, ["cat", "dog"])
    assert (
        said.text == "1"
        and said.note == "class names are not shown: there are 2 labels for 3 classes"
    )
    assert answer(scores, ["", "cat", "dog"]).note == ""


def test_suppression_keeps_other_classes() -> None:
    boxes = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [0, 0, 1, 0.9]], np.float32)
    scores, classes = np.array([0.5, 0.9, 0.8]), np.array([1, 1, 2])
    assert suppress(boxes, classes, scores, 0.3) == [1, 2]
    assert suppress(boxes[:0], classes[:0], scores[:0], 0.3) == []


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0, "B", "0 B"), (12, "B", "12 B"), (999.4, "", "999"), (999.7, "B", "1 kB"),
        (1_234_567, "", "1.23 M"), (999_600, "B", "1 MB"), (2.5e12, "", "2.5 T"),
    ],
)  # fmt: skip
def test_a_number_has_three_digits(value, unit, text) -> None:
    assert number(value, unit) == text


def test_milliseconds_have_three_digits() -> None:
    times = (0.01234, 0.5, 1.234, 12.34, 1234.4, 0.0, float("nan"))
    wanted = ["0.0123 ms", "0.500 ms", "1.23 ms", "12.3 ms", "1234 ms", "–", "–"]
    assert [milliseconds(t) for t in times] == wanted


def test_integers_are_what_they_stand_for() -> None:
    array, quant = np.array([[0, 3, 5]], np.uint8), QuantParams(np.float32(0.5), np.uint8(3))
    assert real_of(array, quant).tolist() == [[-1.5, 0, 1]]
    assert real_of(array, None) is array


def test_the_worst_output_stands_for_its_layer() -> None:
    def row(name, own, carried=0.0, within=True):
        return {"name": name, "rel_l2": carried, "isolated": {"rel_l2": own}, "within": within}

    rows = [row("a", 0.1), row("a", 0.3), row("a", 0.2), row("b", 0.9), row("b", 0.1, within=False),
            row("c", 0.1, 0.5), row("c", 0.1, 0.4), row("d", None), row("d", 9.0)]  # fmt: skip
    assert _worst_outputs(rows) == [rows[1], rows[4], rows[5], rows[7]]


def test_shares_of_a_mask() -> None:
    mask = np.zeros((1, 16, 16), np.int64)
    mask[0, :4] = 1
    said = answer({"mask": mask}, ["background", "person"])
    assert said.text == "background 75.0 %, person 25.0 %"
    scores = np.stack([1 - mask, mask], axis=-1).astype(np.float32)
    assert answer({"scores": scores}, ["background", "person"]).text == said.text


def test_regions_of_a_map() -> None:
    """Distances are between pixel centres; each side grows by area · 1.5 / perimeter."""
    heat = np.zeros((1, 1, 64, 96), np.float32)
    heat[0, 0, 10:26, 8:40] = 0.9
    heat[0, 0, 26:28, 40:42] = 0.9  # touches the corner of the first
    heat[0, 0, 44:56, 50:60] = 0.7
    heat[0, 0, 44:56, 70:80] = 0.5  # not sure enough
    heat[0, 0, 0:2, 60:96] = 1  # too thin
    said = answer({"map": heat}, [])
    assert said.text == "2 regions"
    (x0, y0, x1, y1), sure = (np.array(i["box"]) * [96, 64, 96, 64] for i in said.items)
    grown = 33 * 17 * 1.5 / 100
    assert (x0, y0, x1, y1) == pytest.approx((0, 10 - grown, 41 + grown, 27 + grown))
    grown = 9 * 11 * 1.5 / 40
    assert sure == pytest.approx([50 - grown, 44 - grown, 59 + grown, 55 + grown])
    assert said.items[1]["score"] == pytest.approx(0.7)


def test_a_region_lies_in_a_turned_rectangle() -> None:
    heat = np.zeros((1, 1, 64, 64), np.float32)
    for i in range(30):
        heat[0, 0, 15 + i, 10 + i : 18 + i] = 0.9  # a band at 45°, 7 wide across
    (item,) = answer({"map": heat}, []).items
    assert item["score"] == pytest.approx(0.9, abs=0.1)  # an upright box would be half empty


@pytest.mark.parametrize(
    ("labels", "classes", "blank"),
    [(["A", "B", "-"], 3, 2), (["-", "A", "B"], 3, 0), ([*"ABCDEFGHIJ"], 11, 0),
     ([*"ABCDEFGHIJ"], 12, 0)],
)  # fmt: skip
def test_where_the_blank_is(labels, classes, blank) -> None:
    letters = [label for label in labels if label != "-"]
    a, b = (1, 2) if blank == 0 else (0, 1)
    steps = [blank, a, a, blank, a, b, b, blank, blank, blank, blank, blank, blank]
    scores = np.eye(classes, dtype=np.float32)[steps]
    assert letters[:2] == ["A", "B"]
    assert answer({"y": scores[None]}, labels).text == "AAB"
    assert answer({"y": scores.T[None]}, labels).text == "AAB"


@pytest.mark.parametrize("shape", [(1, 5), (1, 4, 16, 16), (1, 1, 32, 32)])
def test_nan_is_no_answer(shape: tuple[int, ...]) -> None:
    said = answer({"y": np.full(shape, np.nan, np.float32)}, ["a"] * 5)
    assert (said.kind, said.text) == ("values", "")
    assert said.items[0]["text"] == "no finite values"
