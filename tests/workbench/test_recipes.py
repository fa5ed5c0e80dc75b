"""A model that does not say how images become numbers: it is told first, with every answer."""

from __future__ import annotations

import json

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.preprocess import Preprocess
from lite_workbench.cli import main
from lite_workbench.recipes import RECIPES, evidence, recipe_answers
from PIL import Image

from tests.small_models import Builder, classifier

pytestmark = pytest.mark.cpu


@pytest.fixture
def photo(tmp_path):
    path = tmp_path / "photo.png"
    pixels = np.random.default_rng(2).integers(0, 256, (20, 20, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(path)
    return path


def test_each_recipe_answers_as_if_it_was_given(photo):
    model = optimize(classifier(), targets=["x86"])
    predictor = Predictor(model, "x86")
    made = recipe_answers(model, predictor, photo)
    assert [r.preprocess for r in made] == [how for how, _ in RECIPES]
    for recipe in made:
        x = Preprocess.parse(recipe.preprocess).fitted((1, 3, 20, 20)).apply(photo)
        scores = next(iter(predictor.run({"x": x}).values()))[0]
        assert recipe.text == str(scores.argmax())
        assert recipe.score == pytest.approx(float(scores.max()))
    assert "preprocess" not in model.metadata  # a trial leaves nothing behind


def test_it_is_said_before_the_answer(photo, tmp_path, capsys):
    path = str(optimize(classifier(), targets=["x86"]).save(tmp_path / "m.lite"))
    assert main(["run", path, "--input", str(photo)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("note: the model does not say how its images were prepared")
    assert out.index("Caffe: BGR less a mean") < out.index("m on x86")
    assert main(["run", path, "--input", str(photo), "--json", "-"]) == 0
    assert len(json.loads(capsys.readouterr().out)["recipes"]) == 5
    assert main(["run", path, "--input", str(photo), "--preprocess", "pm1"]) == 0
    assert "note:" not in capsys.readouterr().out
    session = lw.open(path)
    assert len(session.recipes(str(photo))) == 5 and "session.recipes" in session.code[-1]


def test_a_model_that_scales_pixels_itself_takes_raw_ones():
    b = Builder((1, 3, 16, 16), "scaling")
    centered = b.add("Sub", b.x, b.scalar(127.5), name="mean")
    graph = b.done(b.conv(b.add("Mul", centered, b.scalar(1 / 127.5), name="scale"), 3, 4, 3))
    assert evidence(optimize(graph)) == "raw"
    folded = Builder((1, 3, 16, 16), "folded")
    scaled = folded.add("Mul", folded.x, folded.scalar(1 / 255), name="scale")
    assert evidence(optimize(folded.done(folded.conv(scaled, 3, 4, 3)))) == "raw"
    assert evidence(optimize(classifier())) == ""


def test_compare_takes_preprocessing(photo, tmp_path, capsys):
    path = str(optimize(classifier(), targets=["x86"]).save(tmp_path / "m.lite"))
    words = ["compare", path, "--backends", "reference,x86", "--input", str(photo), "--json", "-"]
    ranges = []
    for how in ("raw", "unit"):
        assert main([*words, "--preprocess", how]) == 0
        ranges.append(json.loads(capsys.readouterr().out)["layers"][0]["range_baseline"])
    assert ranges[0][1] > 50 * ranges[1][1]
