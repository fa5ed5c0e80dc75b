"""Masks over pictures: what they cover, and what is judged where a center was cut."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.images import open_image
from lite_workbench.answer_difference import masked
from lite_workbench.evaluate import Side, evaluate, read_dataset
from lite_workbench.inputs import png
from lite_workbench.masks import part_of
from PIL import Image
from sklearn.metrics import jaccard_score

from tests.evaluate import made

pytestmark = pytest.mark.cpu


def test_classes_are_laid_over_the_part_that_they_cover():
    grey, mask = png(np.full((4, 8, 3), 100, np.uint8)), np.array([[0, 1], [2, 0]])
    part = np.asarray(open_image(masked(grey, mask, window=(0.25, 0.0, 0.75, 1.0))))
    clear = (part == 100).all(-1)
    wanted = np.ones((4, 8), bool)
    wanted[:2, 4:6] = wanted[2:, 2:4] = False
    np.testing.assert_array_equal(clear, wanted)


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.001), (0.999, 1.0), (0.4, 0.4)])
def test_a_window_is_never_empty(low, high):
    rows, columns = part_of((7, 9), (low, low, high, high))
    assert 0 <= rows.start < rows.stop <= 7 and 0 <= columns.start < columns.stop <= 9


def test_only_what_was_cut_out_is_judged(tmp_path):
    """A wide image whose center is right and whose left side would be wrong."""
    for name in ("images", "masks"):
        (tmp_path / name).mkdir()
    picture = np.zeros((64, 128, 3), np.uint8)
    picture[16:48, 48:80] = made.COLORS[1]
    mask = (picture[..., 0] > 0).astype(np.uint8)
    mask[:, :32] = 2
    mask[20:24, 64:70] = 0
    Image.fromarray(picture).save(tmp_path / "images" / "a.png")
    Image.fromarray(mask).save(tmp_path / "masks" / "a.png")
    model = optimize(made.colors_network(), targets=["x86"])
    model.metadata["preprocess"] = {"mean": [0], "std": [255], "fit": "crop", "crop": 1.0}
    result = evaluate([Side("x86", Predictor(model, "x86"))], read_dataset(tmp_path))
    wanted = mask[:, 32:96]
    got = (picture[:, 32:96, 0] > 0).astype(np.uint8)
    iou = jaccard_score(wanted.ravel(), got.ravel(), average="macro")
    assert result["x86"].main.value == pytest.approx(iou, abs=1e-9) and iou < 1
