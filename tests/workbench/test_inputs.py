"""What a session takes as input: numbers of a CSV, texts, noise, samples; the Run step's form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.errors import ModelFormatError, ShapeError, UsageError
from lite_engine.ir import DType, Graph, Value
from lite_engine.runtime.texts import Tokenizer
from lite_workbench.cli import main

from tests.small_models import classifier
from tests.workbench.sessions import click, opened, settle

VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "play", "##ing", "##ed", "cafe", "!", "字"]


def sums() -> Graph:
    """a + b of different shapes: two inputs that are no images."""
    graph = Graph("sums")
    a, b = Value("a", DType.F32, (2, 3)), Value("b", DType.F32, (3,))
    graph.inputs = [a, b]
    graph.outputs = [graph.add("Add", [a, b], name="sum").output]
    return graph


def reader(length: int | str = 8) -> Graph:
    """Gives the three integer inputs of a language model back, as one."""
    graph = Graph("reader")
    names = ("input_ids", "attention_mask", "token_type_ids")
    graph.inputs = [Value(name, DType.I64, (1, length)) for name in names]
    graph.outputs = [graph.add("Concat", graph.inputs, {"axis": 1}, name="all").output]
    return graph


@pytest.fixture
def here(tmp_path: Path, monkeypatch: Any) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("vocab.txt").write_text("\n".join(VOCABULARY) + "\n", "utf-8")
    return tmp_path


def test_numbers_of_a_csv(here: Path) -> None:
    session = lw.open(optimize(sums()).save("sums.lite"))
    Path("a.csv").write_text("x;y;z\n1;2;3\n\n4;5;6\n")
    Path("b.csv").write_text("\ufeff10,20,1e2\n", "utf-8")
    made = session.run(session.set_input({"a": "a.csv", "b": "b.csv"}), backend="reference")
    np.testing.assert_array_equal(made["sum"], [[11, 22, 103], [14, 25, 106]])
    assert session.code[-2] == "session.set_input({'a': 'a.csv', 'b': 'b.csv'})"
    Path("b.csv").write_text("1,2\n")
    with pytest.raises(ShapeError, match="2 numbers do not fit input b"):
        session.set_input({"a": "a.csv", "b": "b.csv"})
    for wrong, told in (
        ("1,2\n3\n", r"expected 2 numbers in the row '3', found 1"),
        ("1,2,one\n3,4,x\n", "could not convert string to float: 'x'"),
        ("10,20,\n", "could not convert string to float: ''"),  # not a row of words
        ("one,two\n", "could not convert string to float: 'one'"),
    ):
        Path("b.csv").write_text(wrong)
        with pytest.raises(UsageError, match=rf"b\.csv: .*{told}"):
            session.set_input({"a": "a.csv", "b": "b.csv"})


def test_noise_of_a_seed(here: Path) -> None:
    session = lw.open(optimize(sums()).save("sums.lite"))
    seven = session.set_input(None, seed=7)
    assert session.code[-1] == "session.set_input(None, seed=7)"
    assert session.input_name == "random data of seed 7"
    other = session.set_input(seed=8)
    assert not np.array_equal(seven["a"], other["a"])
    Path("a.csv").write_text("1,2,3,4,5,6\n")
    mixed = session.set_input({"a": "a.csv", "b": None}, seed=7)
    np.testing.assert_array_equal(mixed["b"], seven["b"])
    np.testing.assert_array_equal(mixed["a"], [[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize("seed", [-3, "a", 1.5, None, 2**63])
def test_a_seed_that_is_none_is_refused_as_by_the_command(here: Path, capsys: Any, seed) -> None:
    session = lw.open(optimize(sums()).save("sums.lite"))
    says = "is not a whole number " + ("between 0 and 9223" if seed == 2**63 else "of 0 or more")
    for source in (None, {"a": np.zeros((2, 3), "f4"), "b": None}):
        with pytest.raises(UsageError, match=f"^{seed!r} {says}"):
            session.set_input(source, seed=seed)
    assert main(["run", "sums.lite", f"--seed={seed}"]) == 2
    assert f"'{seed}' {says}" in capsys.readouterr().err
    assert session.set_input(seed=np.int64(7))["a"].shape == (2, 3)


@pytest.mark.parametrize("given", [{"img": None}, {"a": np.zeros((2, 3), "f4"), "img": None},
                                   {"img": "a.csv"}, {"img": [1.0, 2.0]}])  # fmt: skip
def test_a_name_that_is_no_input_is_refused_whatever_it_gets(here: Path, given: Any) -> None:
    session = lw.open(optimize(sums()).save("sums.lite"))
    says = r"^there is no input 'img'; inputs: a: f32\[2×3\], b: f32\[3\]$"
    with pytest.raises(ShapeError, match=says):
        session.set_input(given)


@pytest.mark.parametrize("given", [object(), 3])
def test_what_cannot_be_an_input_is_named_by_its_type(here: Path, given: Any) -> None:
    session = lw.open(optimize(sums()).save("sums.lite"))
    says = f"^an input of type {type(given).__name__} cannot be used; give a file, image or array$"
    with pytest.raises(UsageError, match=says):
        session.set_input(given)


def test_a_text_becomes_numbers_mask_and_segment(here: Path) -> None:
    session = lw.open(optimize(reader()).save("reader.lite"))
    feeds = session.set_input("The PLAYING Café!", tokenizer="vocab.txt")
    numbers = [VOCABULARY.index(p) for p in ("[CLS]", "the", "play", "##ing", "cafe", "!", "[SEP]")]
    np.testing.assert_array_equal(feeds["input_ids"], [[*numbers, 0]])
    np.testing.assert_array_equal(feeds["attention_mask"], [[1] * 7 + [0]])
    np.testing.assert_array_equal(feeds["token_type_ids"], [[0] * 8])
    Path("long.txt").write_text("played字unknown " * 9, "utf-8")
    (numbers,) = session.set_input("long.txt", tokenizer="vocab.txt")["input_ids"]
    words = [VOCABULARY[i] for i in numbers]
    assert words == ["[CLS]", "play", "##ed", "字", "[UNK]", "play", "##ed", "[SEP]"]
    with pytest.raises(UsageError, match="takes no text"):
        lw.open(optimize(sums()).save("sums.lite")).set_input("a", tokenizer="vocab.txt")


def ran(*words: str) -> dict[str, np.ndarray]:
    """The outputs of `lite run` with these words."""
    assert main(["run", *words, "--output", "out.npz"]) == 0
    with np.load("out.npz") as saved:
        return dict(saved)


def test_the_command_takes_seed_text_and_sample(here: Path, capsys: Any) -> None:
    """`lite run` computes what the session does with the same input."""
    session = lw.open(optimize(sums()).save("sums.lite"))
    Path("a.csv").write_text("1,2,3,4,5,6\n")
    for words, source in (([], None), (["--input", "a=a.csv"], {"a": "a.csv", "b": None})):
        session.set_input(source, seed=7)
        made = ran("sums.lite", *words, "--seed", "7")
        for name, array in session.run(backend="x86").outputs.items():
            np.testing.assert_allclose(made[name], array, rtol=1e-6)
    session = lw.open(optimize(reader()).save("reader.lite"))
    session.set_input("the cafe", tokenizer="vocab.txt")
    made = ran("reader.lite", "--input", "the cafe", "--tokenizer", "vocab.txt")
    for name, array in session.run(backend="x86").outputs.items():
        np.testing.assert_allclose(made[name], array, rtol=1e-6)
    models = Path(__file__).parents[2] / "notebooks" / "models"
    held = str(models / "digits_held_back.npz")
    session = lw.open(models / "digits.onnx")
    session.set_input(held, sample=3)
    made = ran(str(models / "digits.onnx"), "--input", held, "--sample", "3", "--backend", "x86")
    for name, array in session.run(backend="x86").outputs.items():
        np.testing.assert_allclose(made[name], array, rtol=1e-6)
    x = np.random.default_rng(0).standard_normal((5, 3, 20, 20)).astype(np.float32)
    np.savez("images.npz", images=x, labels=np.arange(5))  # a sample of it has no batch
    optimize(classifier()).save("classifier.lite")
    made = ran("classifier.lite", "--input", "images.npz", "--sample", "3", "--backend", "x86")
    (want,) = Predictor(classifier(), "reference").run({"x": x[3:4]}).values()
    np.testing.assert_allclose(made["prob"], want, rtol=1e-4)
    capsys.readouterr()
    for words in (["--tokenizer", "vocab.txt"], ["--sample", "0"],
                  ["--input", "a", "--tokenizer", "vocab.txt", "--sample", "0"]):  # fmt: skip
        assert main(["run", "reader.lite", *words]) == 2
        assert "goes with one --input" in capsys.readouterr().err


def test_a_tokenizer_is_checked(here: Path) -> None:
    Path("t.json").write_text('{"model": {"type": "BPE"}}')
    with pytest.raises(UsageError, match="a BPE tokenizer is not supported"):
        Tokenizer.open("t.json")
    Path("t.json").write_text('{"model": {"type": "WordPiece", "vocab": {"[UNK]": "x"}}}')
    with pytest.raises(ModelFormatError, match="vocab"):
        Tokenizer.open("t.json")
    vocabulary = ", ".join(f'"{name}": {i}' for i, name in enumerate(VOCABULARY))
    Path("t.json").write_text(
        f'{{"normalizer": {{"lowercase": false}},'
        f' "model": {{"type": "WordPiece", "vocab": {{{vocabulary}}}}}}}'
    )
    made = Tokenizer.open("t.json")
    assert made.encode("The play")[0] == [2, 1, 5, 3], "letters keep their size: The is unknown"
    Path("vocab.txt").write_text("the\n")
    with pytest.raises(UsageError, match=r"lacks \[UNK\]"):
        Tokenizer.open("vocab.txt")


def test_labels_are_set_for_every_version_and_travel(here: Path) -> None:
    session = lw.open(optimize(classifier()).save("m.lite"))
    Path("labels.txt").write_text("".join(f"thing {i}\n" for i in range(10)))
    session.set_labels("labels.txt")
    said = session.run(None, backend="reference").text
    assert said.startswith("thing ") and session.code[-2] == "session.set_labels('labels.txt')"
    again = lw.open(session.export("again.lite"))
    assert again.run(None, backend="reference").text == said


def test_the_form_sets_all_inputs_and_the_labels(here: Path) -> None:
    Path("a.csv").write_text("1,2,3,4,5,6\n")
    session = lw.open(optimize(sums()).save("sums.lite"))
    session.convert(targets=["x86"])
    step = lw.Workbench(session, step="Run").step("Run")
    click(step.header, "inputs")
    form = step.inputs.view
    assert form.layout.display is None
    assert [f["name"] for f in form.fields] == ["input:a", "input:b", "seed", "labels"]
    assert [text for _, text in form.fields[0]["options"]] == ["random data", "a.csv"]
    values = {"input:a": "a.csv", "input:b": "", "seed": "seven", "labels": ""}
    click(form, "submit", values=values)
    assert "seven" in form.errors["seed"] and form.layout.display is None and not session.runs
    click(form, "submit", values={**values, "seed": "7", "labels": "missing.txt"})
    assert "labels cannot be read" in form.errors["labels"]
    click(form, "submit", values={**values, "seed": "7"})
    settle(session)
    assert form.layout.display == "none" and step.header.note == "a.csv, random data of seed 7"
    assert session.code[-3] == "session.set_input({'a': 'a.csv', 'b': None}, seed=7)"
    np.testing.assert_array_equal(session.feeds["a"], [[1, 2, 3], [4, 5, 6]])
    assert set(session.runs) >= {"x86"}


def test_the_form_takes_a_sample_of_a_data_set(here: Path) -> None:
    session = lw.open(lw.shipped("digits.onnx"))
    session.convert(targets=["x86"])
    step = lw.Workbench(session, step="Run").step("Run")
    click(step.header, "inputs")
    (data,) = (f for f in step.inputs.view.fields if f["name"] == "data")
    held = next(value for value, text in data["options"] if text == "digits_held_back.npz")
    values = {"input:image": "", "seed": "", "data": held, "sample": "9999", "labels": ""}
    click(step.inputs.view, "submit", values=values)
    assert "there is no sample 9999" in step.inputs.view.errors["sample"]
    click(step.inputs.view, "submit", values={**values, "sample": "3"})
    settle(session)
    kept = np.load(held)
    assert session.runs["x86"].text == str(kept["labels"][3])
    assert step.header.note == "sample 3 of digits_held_back.npz"


def test_the_form_offers_a_text_where_the_model_reads_one(here: Path) -> None:
    session = lw.open(optimize(reader()).save("reader.lite"))
    session.convert(targets=["x86"])
    step = lw.Workbench(session, step="Run").step("Run")
    click(step.header, "inputs")
    form = step.inputs.view
    assert form.values["tokenizer"].endswith("vocab.txt")
    values = {f["name"]: "" for f in form.fields}
    click(form, "submit", values={**values, "text": "play!", "tokenizer": "vocab.txt"})
    settle(session)
    np.testing.assert_array_equal(session.feeds["input_ids"], [[2, 5, 9, 3, 0, 0, 0, 0]])


@pytest.mark.parametrize("wrong", [np.zeros(3, "f4"), np.zeros((1, 1, 32, 32)),
                                   {"other": np.zeros((1, 1, 32, 32), "f4")}, {}])  # fmt: skip
def test_an_input_that_does_not_fit_leaves_the_one_before(wrong) -> None:
    session = opened("x86")
    before = session.run(lw.shipped("digits.png"), backend="x86")
    name, picture = session.input_name, session.image
    for give in (lambda: session.set_input(wrong), lambda: session.run(wrong, backend="x86")):
        with pytest.raises(ShapeError):
            give()
        assert (session.input_name, session.image) == (name, picture)
        after = session.run(backend="x86")
        np.testing.assert_array_equal(after.outputs["probability"], before.outputs["probability"])


def test_lists_and_names_of_any_length(here: Path) -> None:
    session = lw.open(optimize(sums()).save("sums.lite"))
    made = session.set_input({"a": [[1, 2, 3], [4, 5, 6]], "b": [1.5, 2, 3]})
    assert made["a"].dtype == np.float32
    np.testing.assert_array_equal(session.run().outputs["sum"], [[2.5, 4, 6], [5.5, 7, 9]])
    with pytest.raises(ShapeError, match="cannot be read as an array"):
        session.set_input({"a": [[1, 2, 3], [4]], "b": [1, 2, 3]})
    for name in ("x" * 5000, "a\0b"):
        with pytest.raises(UsageError, match="no such file"):
            session.set_input(name)
    half: Any = 1.5
    with pytest.raises(UsageError, match="is not a whole number"):
        session.set_input(str(here), sample=half)
