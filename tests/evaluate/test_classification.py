"""Classification: every layout gives the same figures, which are scikit-learn's."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import Predictor, optimize, write_onnx
from lite_engine.errors import UsageError
from lite_engine.ir import DType, Graph, Value
from lite_engine.model_file import Model
from lite_engine.ops import infer_types
from lite_workbench.cli import main
from lite_workbench.evaluate import Dataset, Sample, Side, evaluate, read_dataset
from lite_workbench.evaluate.classes import class_numbers
from lite_workbench.evaluate.summary import summarize
from lite_workbench.evaluate.tasks._base import Outcome
from lite_workbench.evaluate.tasks.classification import Classification
from lite_workbench.inputs import read_source
from scipy.stats import binomtest
from sklearn.metrics import accuracy_score, confusion_matrix, top_k_accuracy_score

from tests.small_models import Builder

pytestmark = pytest.mark.cpu
MODEL = str(lw.shipped("digits.onnx"))


@pytest.fixture(scope="module")
def session() -> lw.Session:
    made = lw.open(MODEL)
    made.convert(targets=["x86"])
    return made


def scores_by_hand(session: lw.Session, images: np.ndarray) -> np.ndarray:
    """(N,10) what the Predictor gives for the images, scaled as the model's file says."""
    predictor, model = Predictor(session.model, "x86"), session.model
    spec, value = model.metadata["preprocess"], model.graph.inputs[0]
    x = (images.astype(np.float32) - spec["mean"][0]) / np.float32(spec["std"][0])
    return np.concatenate([predictor.run({value.name: a[None, None]})["probability"] for a in x])


def test_top_1_and_top_5_are_those_of_scikit_learn(session, digits):
    scores = scores_by_hand(session, digits[0])
    made = session.evaluate(digits, ["x86"])
    top_1, top_5 = made["x86"].metrics
    assert made.samples == 1200
    assert top_1.value == accuracy_score(digits[1], scores.argmax(1)) < 1
    assert top_5.value == top_k_accuracy_score(digits[1], scores, k=5)
    assert top_1.low < top_1.value < top_1.high
    wrong = confusion_matrix(digits[1], scores.argmax(1))
    assert {(a, b): n for a, b, n in made["x86"].confusion} == {
        (str(a), str(b)): wrong[a, b] for a, b in np.argwhere(wrong) if a != b
    }
    recalls = {c.name: c.metrics["recall"] for c in made["x86"].classes}
    assert recalls["3"] == wrong[3, 3] / wrong[3].sum()


def test_every_layout_gives_the_same(session, digit_folders):
    made = [session.evaluate(digit_folders / name, ["x86"])
            for name in ("classes", "list.txt", "data.npz")]  # fmt: skip
    assert len({m["x86"].main.value for m in made}) == 1 and made[0].samples == 100
    assert made[0]["x86"].metrics == made[2]["x86"].metrics or made[0]["x86"].main.value < 1


def test_two_versions_are_compared_sample_by_sample(digits):
    session = lw.open(MODEL)
    session.convert(targets=["x86"])
    session.quantize(digits[0][:40], method="minmax")
    made = session.evaluate((digits[0][200:600], digits[1][200:600]), ["float", "int8"])
    (change,) = made.changes
    assert change.difference == made["int8"].main.value - made["float"].main.value
    assert change.low <= change.difference <= change.high
    assert change.changed == len(made.disagreements)
    assert made.rows[0].disagrees and not made.rows[-1].disagrees
    gained = sum(r.sides["int8"].right and not r.sides["float"].right for r in made.rows)
    assert change.improved == gained
    assert "session.evaluate(data, ['float', 'int8'])" in session.code[-1]
    assert "McNemar" in made.sentences[0] and "int8" in made._repr_html_()


@pytest.mark.parametrize(("metric", "k"), [("top-1", 1), ("top-5", 5)])
def test_a_change_is_tested_on_what_its_metric_has_right(metric, k):
    """The label is among the best five far more often than it is the best one."""
    rng = np.random.default_rng(4)
    labels = rng.integers(0, 20, 80)
    first = rng.standard_normal((80, 20)) + 2 * np.eye(20)[labels]
    second = first + 1.5 * np.eye(20)[(labels + 1) % 20] + rng.standard_normal((80, 20))
    samples = [Sample(str(i), None, int(label)) for i, label in enumerate(labels)]
    data = Dataset("made", "classification", samples, metric=metric)
    task = Classification(data, [], 20)
    sides = [SimpleNamespace(name=n, version=n, title="m", backend="", precision="") for n in "ab"]
    best = [np.argsort(-scores, 1)[:, :5].tolist() for scores in (first, second)]
    outcomes = [
        [Outcome(str(b[0]), 1.0, float(b[0] == label), b[0] == label, b)
         for b, label in zip(own, labels, strict=True)]
        for own in best
    ]  # fmt: skip
    (change,) = summarize(task, data, samples, outcomes, sides).changes
    was, now = ((np.sort(s, 1)[:, -k] <= s[np.arange(80), labels]) for s in (first, second))
    gained, lost = int(np.sum(~was & now)), int(np.sum(was & ~now))
    assert (change.improved, change.worsened) == (gained, lost) and gained + lost > 5
    assert change.p_value == pytest.approx(binomtest(lost, gained + lost).pvalue)
    wanted = [top_k_accuracy_score(labels, s, k=k) for s in (first, second)]
    assert change.difference == pytest.approx(wanted[1] - wanted[0])


def test_the_command_writes_a_document_and_reads_a_limit(digit_folders, capsys):
    words = ["evaluate", MODEL, "--data", str(digit_folders / "classes"), "--limit", "20"]
    assert main([*words, "--backend", "x86,reference", "--json", "-"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["samples"] == 20 and len(data["rows"]) == 20
    assert {row["label"] for row in data["rows"]} >= {"0", "9"}  # spread over the classes
    assert main(words) == 0
    assert "top-1" in capsys.readouterr().out


@pytest.mark.parametrize("float_word", ["float", "fp32"])
def test_the_float_version_of_a_mixed_file_is_computed_in_floats(
    float_word, digit_folders, tmp_path, capsys
):
    """x86 is int8 in the file: its float scores are those of the model that it was made from."""
    source, data = str(lw.shipped("digits.onnx")), str(digit_folders / "data.npz")
    mixed = str(tmp_path / "mixed.lite")
    words = ["convert", source, "-o", mixed, "--targets", "x86,opencl", "--precision", "x86=int8"]
    assert main([*words, "--calibration", str(lw.shipped("digits_held_back.npz"))]) == 0

    def scores(model, *words):
        capsys.readouterr()
        rest = ["--data", data, "--backend", "x86", "--limit", "20", "--json", "-"]
        assert main(["evaluate", model, *rest, *words]) == 0
        made = json.loads(capsys.readouterr().out)
        ordered = sorted(made["rows"], key=lambda row: row["name"])
        rows = [[side["score"] for side in row["sides"].values()] for row in ordered]
        return [side["precision"] for side in made["sides"]], np.array(rows)

    precisions, got = scores(mixed, "--versions", f"{float_word},int8")
    wanted = scores(source)[1]
    assert precisions == ["fp32", "int8"]
    np.testing.assert_allclose(got[:, :1], wanted, atol=1e-6)
    assert np.abs(got[:, 1:] - wanted).max() > 1e-4
    assert scores(mixed)[0] == ["int8"]  # what is not asked for is as in the file


@pytest.mark.parametrize("word", ["float", "fp32", "fp16", "bf16"])
@pytest.mark.parametrize("weights", ["", "int8", "int4"])
def test_a_file_of_integers_alone_has_no_float_version(
    weights, word, digit_folders, tmp_path, capsys
):
    integers, data = str(tmp_path / "q.lite"), str(digit_folders / "data.npz")
    samples = ["--calibration", str(lw.shipped("digits_held_back.npz"))]
    how = ["--weights-only", weights] if weights else samples
    words = ["quantize", str(lw.shipped("digits.onnx")), "-o", integers, "--targets", "x86"]
    assert main([*words, *how]) == 0
    said = "holds no float version, only integers; give the float model that it was made from\n"
    for words in (
        ["evaluate", integers, "--data", data, "--versions", f"{word},{integers}"],
        ["recommend", integers, "--data", data, "--max-drop", "1%"],
        ["quantize", integers, "-o", str(tmp_path / "again.lite"), *samples],
        ["prune", integers, "-o", str(tmp_path / "again.lite"), *samples],
    ):
        capsys.readouterr()
        assert main(words) == 2
        assert capsys.readouterr().err == f"error: {integers} {said}"
    assert main(["evaluate", integers, "--data", data, "--limit", "5"]) == 0


def test_names_are_found_among_the_labels():
    labels = ["n01440764 tench, Tinca tinca", "Egyptian cat", "background"]
    data = Dataset("d", "classification", [Sample("a", None, 0)], ["tinca  Tinca", "egyptian_cat"])
    assert class_numbers(data, labels, 3) == {0: 0, 1: 1}
    synsets = Dataset("d", "classification", [Sample("a", None, 0)], ["n01440764"])
    assert class_numbers(synsets, labels, 3) == {0: 0}
    numbers = Dataset("d", "classification", [Sample("a", None, 0)], ["2", "0"])
    assert class_numbers(numbers, labels, 3) == {0: 2, 1: 0}
    for count in (2, 4):  # one line more moves every class behind it
        with pytest.raises(UsageError, match=f"{count} labels for 3 classes of the model"):
            class_numbers(data, (labels * 2)[:count], 3)
    with pytest.raises(UsageError, match="no class 'dog'"):
        class_numbers(Dataset("d", "classification", [], ["Egyptian cat", "dog"]), labels, 3)
    for found, fix in (((3, 1), "shifts them by -1$"), ((0, -1), "by 1$"), ((0, 9), "leave out")):
        outside = Dataset("d", "classification", [Sample("a", None, n) for n in found])
        with pytest.raises(UsageError, match=f"d: a: label .*, but the model has 3 .*{fix}"):
            class_numbers(outside, labels, 3)


@pytest.mark.parametrize("given", [1, -2, 5])
def test_the_offset_that_fits_is_of_the_labels_as_they_are_stored(given: int) -> None:
    stored = Dataset("d", "classification", [Sample("a", None, n) for n in (1, 2, 3)])
    with pytest.raises(UsageError, match=r"the labels fit if --label-offset shifts them by -1$"):
        class_numbers(stored.shifted(given), [], 3)
    fitting = Dataset("d", "classification", [Sample("a", None, n) for n in (0, 1, 2)])
    with pytest.raises(UsageError, match="the labels fit without --label-offset"):
        class_numbers(fitting.shifted(given), [], 3)


def test_an_npz_holds_several_inputs_by_name(tmp_path, capsys):
    """Numbers of words and their mask, as a text classifier takes them."""
    rng = np.random.default_rng(5)
    table, weights = rng.standard_normal((20, 8)), rng.standard_normal((8, 4))
    graph = Graph("words")
    ids, mask = Value("ids", DType.I64, ("N", 5)), Value("mask", DType.F32, ("N", 5))
    graph.inputs = [ids, mask]
    found = graph.add("Gather", [graph.constant(table.astype(np.float32)), ids], {}).output
    wide = graph.add("Unsqueeze", [mask, graph.constant(np.array([2]))], {}).output
    kept = graph.add("Mul", [found, wide], {}).output
    axes = {"keepdims": 0}
    summed = graph.add("ReduceSum", [kept, graph.constant(np.array([1]))], axes).output
    graph.outputs = [
        graph.add("MatMul", [summed, graph.constant(weights.astype(np.float32))], {}).output
    ]
    infer_types(graph)
    model = optimize(graph, targets=["x86"]).save(tmp_path / "words.lite")
    feeds = {"ids": rng.integers(0, 20, (40, 5)), "mask": (rng.random((40, 5)) > 0.4) * 1.0}
    labels = rng.integers(0, 4, 40)
    arrays = {"ids": feeds["ids"], "mask": feeds["mask"].astype(np.float32), "labels": labels}
    np.savez(tmp_path / "d.npz", **arrays)
    words = ["evaluate", str(model), "--data", str(tmp_path / "d.npz"), "--json", "-"]
    assert main(words) == 0
    said = json.loads(capsys.readouterr().out)["sides"][0]["metrics"][0]
    scores = (table[feeds["ids"]] * feeds["mask"][..., None]).sum(1) @ weights
    assert said["value"] == pytest.approx(np.mean(scores.argmax(1) == labels))
    np.savez(tmp_path / "d.npz", **{**arrays, "mask": arrays["mask"][:3]})
    with pytest.raises(UsageError, match=r"d\.npz: expected as many labels as samples"):
        read_dataset(tmp_path / "d.npz")


def test_an_input_of_an_npz_may_be_a_number_for_each_sample(tmp_path):
    """As the lengths of texts or sounds."""
    b = Builder(("N", 3), "lengths")
    b.x.name = "sound"
    lengths = Value("lengths", DType.F32, ("N",))
    b.graph.inputs.append(lengths)
    y = b.add("Mul", b.x, b.add("Unsqueeze", lengths, b.ints(1)))
    graph = b.done(b.add("Softmax", y))
    x, signs = np.eye(3, dtype=np.float32), np.array([1, 1, -1], np.float32)
    np.savez(tmp_path / "d.npz", sound=x, lengths=signs, labels=np.arange(3))
    made = evaluate([Side("a", Predictor(graph))], read_dataset(tmp_path / "d.npz"))
    assert not made.unreadable
    assert made.sides[0].metrics[0].value == pytest.approx(2 / 3)


def test_names_that_are_numbers_are_shifted_like_numbers():
    """A folder per class, called by the class's number, as docs/evaluate.md says."""
    samples = [Sample("a", None, 0), Sample("b", None, 1), Sample("c", None, 2)]
    moved = Dataset("d", "classification", samples, ["0", "10", "2"]).shifted(1)
    assert [s.label for s in moved.samples] == [1, 11, 3] and not moved.classes
    with pytest.raises(UsageError, match="class numbers"):
        Dataset("d", "classification", samples, ["0", "1", "cat"]).shifted(1)


def test_a_negative_number_in_a_list_is_no_name(tmp_path):
    listed = tmp_path / "val.csv"
    listed.write_text("file,label\na.png,-1\nb.png,1\n")
    with pytest.raises(UsageError, match=r"val\.csv: a\.png: label -1 is negative"):
        read_dataset(listed)


def test_a_limit_takes_samples_from_everywhere():
    data = Dataset("d", "classification", [Sample(str(i), None, i) for i in range(10)])
    assert [s.label for s in data.first(4).samples] == [0, 2, 5, 7]
    assert data.first(99) is data and len(data.shifted(1).samples) == 10
    assert read_dataset(data) is data


@pytest.mark.parametrize("shape", [(1, 3, 8, 8), (1, 12, 5), (1, 24), ("N", 3, 8, 3)])
def test_bytes_of_the_inputs_own_shape_are_taken_as_they_are(shape, tmp_path, capsys):
    """An image is (height, width, channels); these are the numbers that the model takes."""
    ort = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(1)
    graph = Graph("bytes")
    graph.inputs = [Value("x", DType.U8, shape)]
    x = graph.add("Flatten", [graph.add("Cast", graph.inputs, {"to": DType.F32}).output]).output
    size = math.prod(shape[1:])
    weights = (rng.standard_normal((size, 4)) * 0.01).astype(np.float32)
    y = graph.add("MatMul", [x, graph.constant(weights)], name="product").output
    graph.outputs = [graph.add("Softmax", [y], name="y").output]
    infer_types(graph)
    path = str(write_onnx(graph, tmp_path / "m.onnx"))
    samples = rng.integers(0, 256, (6, *shape[1:])).astype(np.uint8)
    labels = np.arange(6) % 4
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    wanted = [session.run(None, {"x": sample[None]})[0].argmax() for sample in samples]
    made = lw.open(path).evaluate((samples, labels), ["x86"])
    assert made["x86"].metrics[0].value == accuracy_score(labels, wanted)
    np.savez(tmp_path / "d.npz", x=samples, labels=labels)
    assert main(["evaluate", path, "--data", str(tmp_path / "d.npz")]) == 0
    assert main(["compare", path, "--data", str(tmp_path / "d.npz")]) == 0
    assert "agree on 6 inputs" in capsys.readouterr().out


def test_an_image_with_channels_last_is_prepared_though_it_fits():
    """What the model says of its images holds for arrays as for files."""
    graph = Graph("bytes")
    graph.inputs = [Value("x", DType.U8, (1, 4, 5, 3))]
    graph.outputs = [graph.add("Cast", graph.inputs, {"to": DType.F32}).output]
    infer_types(graph)
    pixels = np.random.default_rng(1).integers(0, 256, (4, 5, 3)).astype(np.uint8)
    for recipe, wanted in (({}, pixels), ({"colour": "bgr"}, pixels[..., ::-1])):
        feeds, size = read_source(Model(graph, metadata={"preprocess": recipe}), pixels)
        np.testing.assert_array_equal(feeds["x"], wanted[None])
        assert size == (5, 4)
