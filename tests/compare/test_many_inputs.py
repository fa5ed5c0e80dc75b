"""Two sides on many inputs: the figures are those of one comparison after another, and the input
that shows an error is named."""

from __future__ import annotations

import json
import os

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.backends.cpu.native import cpu_features
from lite_engine.compare import Side, compare
from lite_engine.errors import UsageError
from lite_engine.ir import Graph
from lite_workbench.cli import main
from lite_workbench.cluster import Cluster
from lite_workbench.compare_inputs import Sides, compare_inputs, inputs_of
from PIL import Image

from tests.small_models import Builder

pytestmark = pytest.mark.cpu
MODEL = str(lw.shipped("digits.onnx"))


def limited(most: float) -> Graph:
    """A sum of neighbors, at most `most`, then halved."""
    b = Builder((1, 3, 8, 8), "limited")
    y = b.add("AveragePool", b.x, name="mean", kernel_shape=[2, 2])
    y = b.add("Min", y, b.scalar(most), name="limit")
    return b.done(b.add("Mul", y, b.scalar(0.5), name="half"))


def sides(device: str = "local", **options) -> Sides:
    """They differ where a mean is above 5."""
    models = [optimize(limited(most), targets=["x86"]) for most in (50.0, 5.0)]
    a, b = (Side(Predictor(m, "reference"), name) for m, name in zip(models, "ab", strict=True))
    return Sides(a, b, models[0], (device, device), options)


def pictures() -> list[dict[str, np.ndarray]]:
    """Of seven inputs the fourth and, more, the sixth go beyond 5."""
    rng = np.random.default_rng(3)
    made = [rng.uniform(0, 4, (1, 3, 8, 8)).astype(np.float32) for _ in range(7)]
    made[3][0, 0, :4, :4] = 6
    made[5][0, 0, :4, :4] = 30
    return [{"x": x} for x in made]


def test_the_figures_are_those_of_single_comparisons():
    given, feeds = sides(), pictures()
    found = compare_inputs(given, inputs_of(feeds, given.model))
    alone = [compare(given.a, given.b, feed) for feed in feeds]
    for layer in found.layers:
        rows = [next(x for x in one.layers if x.name == layer.name) for one in alone]
        errors = np.array([x.rel_l2 for x in rows])
        own = np.array([x.isolated["rel_l2"] for x in rows])
        assert layer.typical == np.median(errors) and layer.worst == errors.max()
        assert layer.isolated_typical == np.median(own) and layer.isolated_worst == own.max()
        assert layer.failing == sum(x.state in ("failing", "differing") for x in rows)
        assert layer.inputs == 7
    assert found.agreeing == 5 and found.kinds == {"agree": 5, "layer_fails": 2}
    (limit,) = (x for x in found.layers if x.name == "limit")
    assert limit.failing == 2 and limit.worst_input == limit.isolated_worst_input == "5"
    assert limit.typical == 0 and limit.worst > 0.5
    assert found.worst.input == "3" and found.worst.verdict == alone[3].verdict
    assert found.exit_code == 1 and found.verdict.startswith(
        f"2 of 7 inputs differ; the worst is input 3: {alone[3].verdict}"
    )
    assert found.table()[1][0][:3] == ["limit", "Min", "2/7"]


def test_inputs_that_agree():
    given = sides()
    found = compare_inputs(given, inputs_of([pictures()[i] for i in (0, 1)], given.model))
    assert found.exit_code == 0 and found.worst is None
    assert found.verdict == "a and b agree on 2 inputs"  # not a bit differs


@pytest.mark.slow
def test_a_cluster_gives_the_same(tmp_path):
    pytest.importorskip("distributed", reason="pip install 'lite-workbench[cluster]'")
    given = sides(isolated=False)
    data = inputs_of(pictures(), given.model)
    told, before = [], os.environ.get("OMP_NUM_THREADS")
    shared = compare_inputs(given, data, cluster=Cluster(workers=2),
                            progress=lambda done, total: told.append((done, total)))  # fmt: skip
    assert os.environ.get("OMP_NUM_THREADS") == before, "the workers' own"
    assert shared.to_json() == compare_inputs(given, data).to_json() and told[-1] == (7, 7)
    assert all(x.isolated_worst is None for x in shared.layers)
    assert shared.layers[1].own == shared.layers[1].worst


def photos(folder, count):
    data = np.load(lw.shipped("digits_held_back.npz"))["images"]
    (folder / "inner").mkdir(parents=True)
    for i in range(count):
        Image.fromarray(data[i]).save(folder / ("inner" if i % 2 else ".") / f"{i}.png")
    return folder


def test_the_command(tmp_path, capsys):
    folder = photos(tmp_path / "photos", 4)
    (folder / "broken.png").write_bytes(b"no image")
    words = ["compare", MODEL, "--backends", "reference,x86", "--data", str(folder)]
    assert main([*words, "--json", "-"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["inputs"] == found["agreeing"] == 4 and found["worst"] is None
    assert [name for name, _ in found["unreadable"]] == ["broken.png"]
    named = {x["isolated_worst_input"] for x in found["layers"]}
    assert named <= {"0.png", "inner/1.png", "2.png", "inner/3.png"}
    assert main([*words[:-1], str(folder / "broken.png")]) == 2
    assert "no sample of 1 can be read" in capsys.readouterr().err
    low = ["compare", MODEL, "--backends", "x86", "--precision", "fp32,bf16", "--tolerance", "1e-5"]
    # Elsewhere, bf16 is what layers store, and none differs on its own.
    products = "avx512bf16" in cpu_features()
    assert main([*low, "--data", str(folder)]) == (1 if products else 3)
    said = capsys.readouterr().out
    assert "left out: " in said and "4 of 4 inputs differ" in said
    assert ("4/4" if products else "errors accumulate") in said


@pytest.mark.parametrize("option", ["--input", "--data"])
def test_the_command_prepares_images_as_it_is_told(tmp_path, capsys, option):
    """Each layer's figures are those of the numbers that were made of the pixels by hand."""
    pixels = np.load(lw.shipped("digits_held_back.npz"))["images"][0]
    Image.fromarray(pixels).save(tmp_path / "a.png")
    np.save(tmp_path / "a.npy", ((pixels.astype(np.float32) - 100) / 50)[None, None])

    def layers(name: str, *words: str) -> list:
        command = ["compare", MODEL, "--backends", "reference,x86", option, str(tmp_path / name)]
        assert main([*command, *words, "--json", "-"]) == 0
        return json.loads(capsys.readouterr().out.replace("a.npy", "a.png"))["layers"]

    by_hand = layers("a.npy")
    assert layers("a.png", "--preprocess", "mean=100,std=50") == by_hand != layers("a.png")


def test_kinds_of_data(tmp_path):
    model = optimize(MODEL, targets=["x86"])
    np.savez(tmp_path / "labeled.npz", images=np.zeros((5, 32, 32), np.uint8), labels=np.arange(5))
    np.savez(tmp_path / "inputs.npz", np.zeros((3, 1, 32, 32), np.float32))
    assert len(inputs_of(tmp_path / "labeled.npz", model)) == 5
    assert len(inputs_of(str(tmp_path / "inputs.npz"), model, limit=2)) == 2
    folder = photos(tmp_path / "photos", 3)
    assert [s.name for s in inputs_of(folder / "0.png", model).samples] == ["0.png"]
    assert len(inputs_of(folder, model)) == 3
    (tmp_path / "list.txt").write_text("0.png 3\n2.png 4\n")
    assert len(inputs_of(tmp_path / "list.txt", model, images=folder)) == 2
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no inputs"):
        inputs_of(tmp_path / "empty", model)
    with pytest.raises(UsageError, match="no such file"):
        inputs_of(tmp_path / "missing", model)
    with pytest.raises(UsageError, match="no samples"):
        inputs_of([], model)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("--data x --input y.png", "--input looks at one"),
        ("--data x --bisect", "--bisect looks at one"),
        ("--limit 3", "--limit needs --data"),
        ("--workers 2", "--workers needs --data"),
    ],
)
def test_wrong_usage(words, what, capsys):
    assert main(["compare", MODEL, *words.split()]) == 2
    assert what in capsys.readouterr().err


def test_a_session_remembers_it(tmp_path):
    session = lw.open(MODEL)
    session.convert(targets=["x86"])
    folder = photos(tmp_path / "photos", 2)
    made = session.compare_many(folder, "reference", "x86", limit=2)
    assert made.inputs == 2 and "<table" in made._repr_html_()
    arguments = f"{str(folder)!r}, 'reference', 'x86', limit=2"
    assert session.code[-1] == f"spread = session.compare_many({arguments})"
