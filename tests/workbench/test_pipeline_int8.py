"""int8 stage by stage on PP-OCR's real models, under one budget of the whole answer."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lite_engine._native import runner_path
from lite_engine.pipeline import Pipeline
from lite_workbench.pipelines.quantizing import MOVED, quantize_stages

from tests.pipeline.test_real import same, stages

pytestmark = [pytest.mark.cpu, pytest.mark.models, pytest.mark.hours]


def alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """As many lines with the same texts and directions, at the same places."""
    lines = [answer["answers"]["detect"]["items"] for answer in (one, other)]
    if len(lines[0]) != len(lines[1]):
        return False
    far = MOVED * max(one["image"]["width"], one["image"]["height"])
    for a, b in zip(*lines, strict=True):
        if np.abs(np.array(a["box"] + a["corners"]) - (b["box"] + b["corners"])).max() > far:
            return False
        said = [
            (read["read"]["text"], read["direction"]["items"][0]["label"]) if read else None
            for read in (item.get("answers") for item in (a, b))
        ]
        if said[0] != said[1]:
            return False
    return True


def test_stages_of_ppocr_within_one_budget(models_dir: Path, tmp_path: Path) -> None:
    made, photo = stages("ocr", models_dir)
    pipeline = Pipeline(made, "ocr")
    files = [photo, *(models_dir / "images" / name for name in ("text_rec.jpg", "text_cls.jpg"))]
    budget = 0.34
    found = quantize_stages(pipeline, files, max_drop=budget)
    by_name = {stage.name: stage for stage in found.stages}
    assert list(by_name) == ["detect", "direction", "read"] and found.samples == 3
    assert by_name["read"].reason == "the model is already quantized"
    assert found.float_value == 1 and found.value >= 1 - budget
    for name in ("detect", "direction"):
        stage = by_name[name]
        assert stage.int8_bytes < 0.35 * stage.float_bytes
        assert stage.int8 == (not stage.reason)
    assert any(stage.int8 for stage in found.stages)
    kept = [alike(pipeline.run(f), found.pipeline.run(f)) for f in files]
    assert np.mean(kept) == pytest.approx(found.value)
    file = found.pipeline.save(tmp_path / "int8.lite", ["x86"])
    done = subprocess.run([str(runner_path()), str(file), "--image", str(photo)],
                          capture_output=True, text=True, check=True)  # fmt: skip
    same(json.loads(done.stdout)["answers"], found.pipeline.run(photo, "x86")["answers"])
