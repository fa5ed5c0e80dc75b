"""What is marked where two answers differ."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest
from lite_workbench.answer_difference import iou, mark_different, masked
from lite_workbench.answers import Answer
from PIL import Image

pytestmark = pytest.mark.cpu


def text(letters: str) -> Answer:
    return Answer("text", letters, [{"label": c, "score": 1.0} for c in letters])


def boxes(*given: tuple[str, list[float]]) -> Answer:
    return Answer("boxes", "", [{"label": n, "score": 0.9, "box": b} for n, b in given])


@pytest.mark.parametrize(
    ("a", "b", "marks"),
    [
        ("TOTAL", "TOTAL", "....."),
        ("TOTAL", "TOAL", "..∅.."),  # only the letter that is missing, not all that follow it
        ("TOTAL", "XTOTAL", "X....."),
        ("TOTAL", "TOTBL", "...X."),
        ("", "A", "X"),
        ("AB", "", "∅∅"),
    ],
)
def test_letters_are_marked_by_the_fewest_edits(a: str, b: str, marks: str) -> None:
    said = text(b)
    mark_different(text(a), said)
    got = "".join(("∅" if i["label"] == "∅" else "X") if i["bad"] else "." for i in said.items)
    assert got == marks


def test_the_marks_are_never_more_than_the_edit_distance() -> None:
    def distance(a: str, b: str) -> int:
        if not a or not b:
            return len(a) + len(b)
        rest = distance(a[1:], b[1:]) + (a[0] != b[0])
        return min(rest, distance(a[1:], b) + 1, distance(a, b[1:]) + 1)

    words = ["".join(w) for n in range(4) for w in itertools.product("AB", repeat=n)]
    for a, b in itertools.product(words, words):
        said = text(b)
        mark_different(text(a), said)
        assert sum(i["bad"] for i in said.items) == distance(a, b), (a, b)
        assert "".join(i["label"] for i in said.items).replace("∅", "") == b


def test_boxes_are_matched_by_overlap_and_label() -> None:
    a = boxes(("cat", [0, 0, 1, 1]), ("dog", [0, 0, 0.5, 0.5]), ("cat", [2, 2, 3, 3]))
    b = boxes(("cat", [2, 2, 3, 2.8]), ("cat", [0, 0, 0.5, 0.5]), ("cat", [0, 0.1, 1, 1]))
    assert mark_different(a, b) == "2 of 3 boxes match, mean IoU 0.850"
    assert [i["bad"] for i in b.items] == [False, True, False]
    assert [i["bad"] for i in a.items] == [False, True, False]
    assert mark_different(boxes(), boxes()) == ""


def test_overlap_is_the_share_of_cells_in_both() -> None:
    cells = np.zeros((2, 10, 10), bool)
    cells[0, 1:6, 2:8] = cells[1, 3:9, 4:9] = True
    wanted = (cells[0] & cells[1]).sum() / (cells[0] | cells[1]).sum()
    assert iou([2, 1, 8, 6], [4, 3, 9, 9]) == pytest.approx(wanted)
    assert iou([0, 0, 1, 1], [2, 2, 3, 3]) == iou([0, 0, 0, 0], [0, 0, 0, 0]) == 0


def test_masks_say_the_share_of_equal_pixels_and_show_where_they_differ() -> None:
    mask, other = np.array([[0, 1], [2, 2]]), np.array([[0, 1], [2, 0]])
    a, b = (Answer("values", "", [], mask=m) for m in (mask, other))
    assert mark_different(a, b) == "75.00 % of the pixels have the same class"
    file = io.BytesIO()
    Image.new("RGB", (4, 4), (100, 100, 100)).save(file, "PNG")
    made = np.asarray(Image.open(io.BytesIO(masked(file.getvalue(), mask, other))))
    assert (made[:2, :2] == 100).all()  # class 0 is clear
    assert (made[2:, 2:] == (213, 94, 0)).all() and not (made[:2, 2:] == (213, 94, 0)).any()
