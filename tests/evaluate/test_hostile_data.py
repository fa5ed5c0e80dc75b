"""Data sets of strangers: one clear line, nothing read outside of their folder."""

from __future__ import annotations

from pathlib import Path

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.errors import UsageError
from lite_workbench.cli import main
from lite_workbench.evaluate import Side, evaluate, read_dataset, reading
from lite_workbench.evaluate.dataset import Dataset, Sample

from tests.small_models import Builder

pytestmark = pytest.mark.cpu
MODEL = str(lw.shipped("digits.onnx"))


def said(capsys, *words: object) -> str:
    assert main(["evaluate", MODEL, "--data", *map(str, words)]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1, err
    return err[7:].strip()


@pytest.mark.parametrize("name", ["/etc/passwd.png", "../x.png", "a/../../x.png", "C:\\x.png",
                                  "..\\x.png", "\\\\host\\x.png"])  # fmt: skip
def test_files_outside_of_the_folder_are_refused(name, tmp_path, capsys):
    (tmp_path / "list.txt").write_text(f"{name} 3\n")
    line = said(capsys, tmp_path / "list.txt")
    assert "is outside of" in line and line.startswith(f"{tmp_path / 'list.txt'}:1: ")


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda p: p / "nothing", "no such file or folder"),
        (lambda p: p, "not a data set in a known layout"),
        (lambda p: written(p / "l.txt", "x.png\n"), "expected a file and its label, found 'x.png'"),
        (lambda p: written(p / "l.txt", "\n\n"), "the data set has no samples"),
        (lambda p: written(p / "l.txt", b"\xff\xfe\x00"), "not readable as UTF-8 text"),
        (lambda p: written(p / "l.txt", "x.png 12\n"), "label 12, but the model has 10 classes"),
        (lambda p: written(p / "l.npz", "PK"), "not a .npz file that can be read"),
        (lambda p: folder(p / "set" / "cat"), "the folder of a class holds no image"),
        (lambda p: arrays(p / "l.npz", labels=[1]), "expected an array `images`"),
        (lambda p: arrays(p / "l.npz", images=np.zeros((2, 8, 8)), labels=[1]), "as many labels"),
        (lambda p: arrays(p / "l.npz", images=np.zeros((1, 8, 8)), labels=[-1]), "negative"),
        (lambda p: arrays(p / "l.npz", images=np.zeros((1, 8, 8)), labels=[0.5]), "float64"),
        (lambda p: bytes_of(p / "l.npz", 3, 8, 8), "(3, 8, 8) is neither input image (f32[1×1×32"),
        (lambda p: bytes_of(p / "l.npz", 0, 8), "(0, 8) is neither input image"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(make, what, tmp_path, capsys):
    assert what in said(capsys, make(tmp_path))


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("l.txt", "{name} 3\n"),
        ("l.json", '{{"images": [{{"id": 1, "file_name": "{name}"}}], '
         '"annotations": [{{"image_id": 1, "category_id": 1, "bbox": [0, 0, 9, 9]}}], '
         '"categories": [{{"id": 1, "name": "cat"}}]}}'),
        ("l.xml", "<annotation><filename>{name}</filename><object><name>cat</name><bndbox>"
         "<xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox></object>"
         "</annotation>"),
    ],
)  # fmt: skip
def test_names_that_no_file_can_have(file, text, tmp_path, capsys):
    written(tmp_path / file, text.format(name="é" * 300 + ".png"))
    assert main(
        ["evaluate", MODEL, "--data", str(tmp_path if file == "l.xml" else tmp_path / file)]
    )
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1, err
    assert "File name too long" in err or "no such file" in err, err[-200:]


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path.parent


def bytes_of(path: Path, *shape: int) -> Path:
    """Two samples of bytes."""
    return arrays(path, images=np.zeros((2, *shape), np.uint8), labels=[0, 1])


def arrays(path: Path, **named: object) -> Path:
    np.savez(path, **{name: np.asarray(value) for name, value in named.items()})
    return path


@pytest.mark.parametrize(
    "text",
    ["file,label\na.png,Egyptian cat\nb.png,dog\n",
     "label,split,path\nEgyptian cat,x,a.png\ndog,x,b.png",
     '"a.png","Egyptian cat"\n"b.png","dog"\n', "Image;Class\na.png;Egyptian cat\nb.png;dog\n",
     "# made by hand\n\na.png, Egyptian cat\nb.png, dog", "a.png\tEgyptian cat\nb.png\tdog\n"],
)  # fmt: skip
def test_csv_files_as_programs_write_them(text, tmp_path):
    data = read_dataset(written(tmp_path / "list.csv", text))
    assert [(s.name, data.classes[s.label]) for s in data.samples] == [
        ("a.png", "Egyptian cat"), ("b.png", "dog")]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "what"),
    [("a.png\n", "expected a file and its label, found 'a.png'"),
     ("a.png,\n", "expected a file and its label, found 'a.png,'"),
     ("x,y\nq,1\n", "l.csv:2: expected a file and its label, found 'q,1'"),
     ('a.png,"b\n', "not a CSV file"), ("file,label\n", "the data set has no samples"),
     ("file,label\n../a.png,b\n", "is outside of")],
)  # fmt: skip
def test_damaged_csv_files_are_one_line(text, what, tmp_path, capsys):
    assert what in said(capsys, written(tmp_path / "l.csv", text))


def test_labels_of_several_words_stand_behind_a_tab_or_comma(tmp_path):
    path = written(tmp_path / "l.lst", "a.png\tEgyptian cat\nmy dog.png, brown dog\na,b.png cat\n")
    data = read_dataset(path)
    assert [(s.name, data.classes[s.label]) for s in data.samples] == [
        ("a.png", "Egyptian cat"), ("my dog.png", "brown dog"), ("a,b.png", "cat")]  # fmt: skip


def test_a_damaged_image_is_left_out_and_listed(digit_folders, tmp_path, capsys):
    good = (digit_folders / "list.txt").read_text().splitlines()[:5]
    for line in good:
        path = tmp_path / line.split()[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes((digit_folders / line.split()[0]).read_bytes())
    (tmp_path / "bad.png").write_bytes(b"\x89PNG nothing")
    (tmp_path / "list.txt").write_text("\n".join(["bad.png 1", *good, "missing.png 2"]))
    assert main(["evaluate", MODEL, "--data", str(tmp_path / "list.txt")]) == 0
    out = capsys.readouterr().out
    assert "5 samples" in out and out.count("left out: ") == 2
    assert "bad.png: not an image that can be read" in out and "missing.png: no such file" in out
    (tmp_path / "list.txt").write_text("bad.png 1\n")
    assert "no sample of 1 can be read" in said(capsys, tmp_path / "list.txt")


def test_a_huge_file_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "MAX_BYTES", 10)
    (tmp_path / "list.txt").write_text("a.png 1\n" * 10)
    with pytest.raises(UsageError, match="of annotations, found"):
        read_dataset(tmp_path / "list.txt")


def test_other_things_are_no_data_set():
    with pytest.raises(UsageError, match="a int is not a data set"):
        read_dataset(3)


@pytest.mark.parametrize("points", ["[]", "[[1, 2], [3]]", "[[1, 2], 3]", "[[1, 1e999]]"])
def test_a_region_of_other_points_is_one_line(points, tmp_path):
    (tmp_path / "r.txt").write_text(f'a.png\t[{{"transcription": "a", "points": {points}}}]\n')
    with pytest.raises(UsageError, match=r"r.txt:1.*expected (points|a list)"):
        read_dataset(tmp_path / "r.txt", task="regions")


def test_names_of_classes_may_be_bytes_of_another_encoding(tmp_path):
    path = arrays(tmp_path / "l.npz", images=np.zeros((2, 8, 8)), labels=[b"a", b"\xff"])
    assert list(read_dataset(path).classes) == ["a", "\ufffd"]


@pytest.mark.parametrize("wrap", [lambda x: {"x": x}, lambda x: x], ids=["feeds", "alone"])
def test_lists_are_inputs_and_uneven_ones_are_left_out(wrap):
    b = Builder((1, 4), "lists")
    graph = b.done(b.add("Softmax", b.add("MatMul", b.x, b.weights(4, 3))))
    row = [0.5, -1.0, 2.0, 3.0]
    samples = [Sample("even", wrap(row), 0), Sample("uneven", wrap([[1.0, 2.0], [3.0]]), 0)]
    made = evaluate([Side("a", Predictor(graph))], Dataset("d", "classification", samples))
    ((name, why),) = made.unreadable
    assert (made.samples, name) == (1, "uneven") and "cannot be read as an array" in why
