"""The shipped models read what they were trained to read, and the story's picture does its part."""

from __future__ import annotations

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.model_file import optimize
from lite_workbench.answers import answer

pytestmark = pytest.mark.cpu


def read(name: str, held_back: str) -> tuple[list[str], list[str]]:
    """What the model says to the held-back pictures, and what they show."""
    model = optimize(lw.shipped(name))
    predictor = Predictor(model, "x86")
    data = np.load(lw.shipped(held_back))
    spec = model.metadata["preprocess"]
    value = model.graph.inputs[0]
    channels = value.shape[1]
    said = []
    for picture in data["images"]:
        x = (picture.astype(np.float32) - spec["mean"][0]) / spec["std"][0]
        feed = np.repeat(x[None, None], channels, axis=1).astype(np.float32)
        outputs = predictor.run({value.name: feed})
        said.append(answer(outputs, model.metadata["labels"]).text)
    truth = data["texts"] if "texts" in data else data["labels"]
    return said, [str(t) for t in truth]


@pytest.mark.parametrize(
    ("name", "held_back", "least"),
    [("ocr.onnx", "ocr_held_back.npz", 0.97), ("digits.onnx", "digits_held_back.npz", 0.97)],
)
def test_accuracy_on_held_back_pictures(name: str, held_back: str, least: float) -> None:
    said, truth = read(name, held_back)
    assert np.mean([a == b for a, b in zip(said, truth, strict=True)]) >= least


@pytest.mark.parametrize(
    ("picture", "text"),
    [("total", "TOTAL 128.40"), ("date", "21-11-2026"), ("item", "COFFEE 3.20")],
)
def test_receipts(picture: str, text: str) -> None:
    session = lw.open(lw.shipped("ocr.onnx"))
    session.convert(targets=["x86"])
    assert session.run(lw.shipped(f"ocr_{picture}.png"), backend="x86").text == text


def test_one_forgotten_column_changes_the_amount() -> None:
    session = lw.open(lw.shipped("ocr.onnx"))
    session.convert(targets=["x86"])
    session.plant_fault("b3/dw", "drop_last_column", backend="x86")
    assert session.run(lw.shipped("ocr_total.png"), backend="x86").text == "TOTAL 128.46"
