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


def test_a_grey_model_gets_the_recipes_that_fit(photo, capsys):
    """Means of three channels say nothing of one."""
    b = Builder((1, 1, 12, 12), "grey")
    y = b.add("GlobalAveragePool", b.conv(b.x, 1, 4, 3, activation="Relu"))
    model = optimize(b.done(b.add("Softmax", b.add("Flatten", y), axis=-1, name="prob")))
    made = recipe_answers(model, Predictor(model, "x86"), photo)
    assert [r.preprocess for r in made] == ["unit", "pm1", "raw"]


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


@pytest.mark.parametrize(
    "words",
    ["evaluate {} --data {data}", "sweep {} --data {data} --backends x86 --rounds 1",
     "quantize {} -o {out} --calibration {data} --method minmax --force",
     "quantize {} -o {out} --data {data} --method minmax --target-db 99",
     "compare {} --backends reference,x86 --data {data}",
     "compare {} --backends reference,x86 --input {image}",
     "prune {} -o {out} --calibration {data} --no-measure --sparsity 0.5"],
)  # fmt: skip
def test_every_verb_that_reads_images_shows_the_recipes_first(words, tmp_path, capsys):
    """Also where it fails afterwards, and of the first image that can be read."""
    for label in "37":
        folder = tmp_path / "data" / label
        folder.mkdir(parents=True)
        for number in range(4):
            pixels = np.random.default_rng(number).integers(0, 256, (20, 20, 3)).astype(np.uint8)
            Image.fromarray(pixels).save(folder / f"{number}.png")
    (tmp_path / "data" / "3" / "0.png").write_bytes(b"damaged")
    path = str(optimize(classifier(), targets=["x86"]).save(tmp_path / "m.lite"))
    image = tmp_path / "data" / "3" / "1.png"
    given = words.format(path, data=tmp_path / "data", out=tmp_path / "o.lite", image=image).split()
    main(given)
    said = capsys.readouterr()
    first, *rows = said.err.splitlines()
    assert first.startswith("the model does not say how its images were prepared; ")
    assert "1.png with each usual preprocessing" in first
    told = {r.preprocess: r.text for r in lw.open(path).recipes(str(image))}
    assert {row.split()[0]: row.split()[-2] for row in rows[2 : 2 + len(RECIPES)]} == told
    main([*given, "--preprocess", "pm1"])
    assert "with each usual preprocessing" not in capsys.readouterr().err


def test_inputs_that_are_no_images_need_no_recipes(tmp_path, capsys):
    path = str(optimize(classifier(), targets=["x86"]).save(tmp_path / "m.lite"))
    np.savez(tmp_path / "x.npz", x=np.zeros((4, 3, 20, 20), np.float32))
    words = ["compare", path, "--backends", "reference,x86", "--data", str(tmp_path / "x.npz")]
    assert main(words) == 0
    assert capsys.readouterr().err == ""


def test_notebooks_say_it_above_the_answer(photo, tmp_path):
    session = lw.open(optimize(classifier(), targets=["x86"]).save(tmp_path / "m.lite"))
    page = session.run(str(photo), backend="x86")._repr_html_()
    assert page.index("does not say how its images were prepared") < page.index("x86 fp32")
    pixels = np.zeros((2, 20, 20, 3), np.uint8)
    made = session.evaluate((pixels, np.array([0, 1])), ["x86"])
    page = made._repr_html_()
    assert page.index("does not say how its images were prepared") < page.index("top-1")
    session.prepare("unit")
    assert "does not say" not in session.run(str(photo), backend="x86")._repr_html_()


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
