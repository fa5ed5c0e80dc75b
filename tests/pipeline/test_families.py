"""Ready pipelines: each family takes models that somebody else brings."""

from __future__ import annotations

from pathlib import Path

import pytest
from lite_engine import optimize
from lite_engine.errors import UsageError
from lite_engine.pipeline import FAMILIES, Pipeline
from lite_workbench.cli import main

from tests.small_models import classifier

pytestmark = pytest.mark.cpu


@pytest.mark.parametrize("family", [f for f, stages in FAMILIES.items() if len(stages) == 1])
def test_a_family_of_one_model(family: str) -> None:
    made = Pipeline.of_family(family, [optimize(classifier())], ["a", "b"])
    (stage,) = FAMILIES[family]
    assert list(made.models) == [stage["name"]]
    assert made.parts[0].labels == ("a", "b")
    assert made.to_dict()["models"][0]["preprocess"]["size"] == (20, 20)


def test_the_verb_takes_the_models_of_a_family(tmp_path: Path, capsys) -> None:
    path = optimize(classifier()).save(tmp_path / "m.lite")
    assert main(["pipeline", str(path), str(path), "--family", "plates"]) == 0
    assert "detect → crop → read" in capsys.readouterr().out


def test_what_does_not_fit_a_family() -> None:
    with pytest.raises(UsageError, match="not a family of pipelines") as error:
        Pipeline.of_family("ocr", [])
    assert "ppocr" in error.value.fix
    with pytest.raises(UsageError, match=r"3 models \(detect, direction, read\), got 1"):
        Pipeline.of_family("ppocr", [optimize(classifier())])


def test_text_of_real_models(models_dir: Path) -> None:
    ocr = Pipeline.of_family(
        "text",
        [models_dir / "ppocr_v3_det_ch/model.onnx",
         models_dir / "lprnet_plate_ocr/DERIVED_lprnet.onnx"],
    )  # fmt: skip
    assert ocr.to_dict()["models"][0]["preprocess"]["size"] == (640, 640)
