"""A pipeline and a comparison of it in a notebook: stages as cards, the answer, tables."""

from __future__ import annotations

from pathlib import Path

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine.pipeline import compare
from lite_engine.runtime import host_target
from lite_workbench import rich
from lite_workbench.pipelines.tables import cards
from PIL import Image

pytestmark = pytest.mark.cpu


def test_stages_are_cards_with_what_they_took(tmp_path: Path) -> None:
    image = tmp_path / "digit.png"
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (28, 28), np.uint8)).save(image)
    pipeline = lw.pipeline(lw.shipped("digits.onnx"))
    assert [card["state"] for card in cards(pipeline)] == ["todo"]
    answer = pipeline.run(image)
    (card,) = cards(pipeline)
    assert card["name"] == "digits" and card["state"] == "done" and " ms, " in card["detail"]
    stages, result, table = rich._pipeline(pipeline).children
    assert stages.title == "digits" and result.image[:4] == b"\x89PNG"
    best = answer["answers"]["digits"]["items"][0]["label"]
    assert result.items[0]["text"] == best
    assert [row["0"] for row in table.rows] == ["decode", "digits", "total"]
    made = compare(pipeline, image, host_target(), "reference")
    (table,) = rich._pipeline_comparison(made).children
    assert table.title == f"{host_target()} / reference" and table.note == "same answer"
    assert table.rows[0]["0"] == "digits" and table.rows[0]["1"] == "1"
