"""Every ONNX file of the model collection reproduces its recorded outputs on the references."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from lite_engine.importers import onnx as importer

from tests.importers.golden_runs import Golden, relative_error, run_graph

MODELS = Path(os.environ.get("LITE_TEST_MODELS", ""))
#: integer networks are recorded on an engine that fuses and rounds elsewhere
TOLERANCE = {"qdq": 2e-2}


def _cases() -> list[Path]:
    found = sorted((MODELS / "goldens").rglob("*.onnx__*.npz")) if MODELS.name else []
    return [p for p in found if "__tabby" not in p.name and "__hot_dog" not in p.name]


@pytest.mark.models
@pytest.mark.parametrize("path", _cases(), ids=lambda p: p.stem)
def test_golden(path: Path) -> None:
    golden = Golden(MODELS, path)
    graph = importer.open(MODELS / golden.meta["model"])
    outputs = run_graph(graph, {graph.inputs[0].name: golden.feed()})
    limit = next((t for key, t in TOLERANCE.items() if key in path.name), 1e-4)
    for i, y in enumerate(outputs.values()):
        assert relative_error(golden.sampled(i, y), golden.wanted(i)) <= limit


@pytest.mark.models
def test_plates() -> None:
    data = np.load(MODELS / "goldens/lprnet_plate_ocr/lprnet_first20.npz")
    graph = importer.open(MODELS / "lprnet_plate_ocr/DERIVED_lprnet.onnx")
    for image, logits in list(zip(data["image_u8"], data["logits"], strict=True))[:2]:
        bgr = (image[..., ::-1].astype(np.float32) - 127.5) * np.float32(0.0078125)
        x = np.ascontiguousarray(bgr.transpose(2, 0, 1)[None])
        (y,) = run_graph(graph, {graph.inputs[0].name: x}).values()
        assert np.abs(y[0] - logits).max() <= 1e-4 * np.ptp(logits)
