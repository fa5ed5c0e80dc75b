"""Files with a name per line: labels and vocabularies, as editors and other programs write them."""

from __future__ import annotations

from pathlib import Path

import pytest
from lite_engine.errors import UsageError
from lite_engine.lines import MOST_BYTES, read_labels
from lite_engine.pipeline import Pipeline
from lite_engine.runtime.texts import Tokenizer
from lite_workbench.evaluate import read_dataset

from tests.small_models import classifier

pytestmark = pytest.mark.cpu
#: Letters at which `str.splitlines` splits; the alphabets of readers of text have some of them.
SPLITTERS = ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e"]
LETTERS = ["a", *SPLITTERS, " ", "b"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("last", [True, False])
def test_one_label_per_line(tmp_path: Path, mark: str, end: str, last: bool) -> None:
    text = mark + end.join(LETTERS) + end * last
    (tmp_path / "labels.txt").write_bytes(text.encode())
    assert read_labels(tmp_path / "labels.txt") == LETTERS


def test_empty_lines_are_labels_and_an_empty_file_has_none(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_bytes(b"a\n\nb\n\n")
    assert read_labels(tmp_path / "labels.txt") == ["a", "", "b", ""]
    (tmp_path / "labels.txt").write_bytes(b"")
    assert read_labels(tmp_path / "labels.txt") == []


@pytest.mark.parametrize(
    ("data", "why"), [(b"\xff\xfea", "utf-8"), (b"a" * (MOST_BYTES + 1), "4 MiB")]
)
def test_what_holds_no_labels_is_refused(tmp_path: Path, data: bytes, why: str) -> None:
    (tmp_path / "labels.txt").write_bytes(data)
    with pytest.raises(UsageError, match=why) as caught:
        read_labels(tmp_path / "labels.txt")
    assert "labels cannot be read" in str(caught.value) and "\n" not in str(caught.value)


def test_a_pipeline_reads_them_alike(tmp_path: Path) -> None:
    names = ["a", "\u2028", "\x0c", *"defghij"]
    (tmp_path / "labels.txt").write_bytes(("\ufeff" + "\r\n".join(names) + "\r\n").encode())
    made = Pipeline([{"model": classifier(), "name": "a", "labels": tmp_path / "labels.txt"}])
    assert made.parts[0].labels == tuple(names)


def test_a_vocabulary_counts_lines(tmp_path: Path) -> None:
    pieces = ["[PAD]", "[UNK]", "\u2028", "[CLS]", "[SEP]", "a"]
    (tmp_path / "vocab.txt").write_bytes(("\ufeff" + "\r\n".join(pieces) + "\r\n").encode())
    found = Tokenizer.open(tmp_path / "vocab.txt").vocabulary
    assert found == {piece: number for number, piece in enumerate(pieces)}


@pytest.mark.parametrize("letter", SPLITTERS)
def test_a_text_of_a_data_set_is_not_cut(tmp_path: Path, letter: str) -> None:
    (tmp_path / "list.tsv").write_bytes(f"\ufeffa.png\tone{letter}two\r\nb.png\tthree\r\n".encode())
    assert [s.label for s in read_dataset(tmp_path / "list.tsv").samples] == [
        f"one{letter}two", "three"]  # fmt: skip


@pytest.mark.parametrize("letter", SPLITTERS)
def test_a_class_of_a_table_is_not_cut(tmp_path: Path, letter: str) -> None:
    text = f"\ufeffa.png,one{letter}two\r\nb.png,three\r\n"
    (tmp_path / "list.csv").write_bytes(text.encode())
    assert read_dataset(tmp_path / "list.csv").classes == [f"one{letter}two", "three"]
