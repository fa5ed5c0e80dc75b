"""Counted campaigns of damaged files (tests/fuzz/mutants.py): what is told, and that they go on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("onnx", reason="pip install onnx")

from . import mutants
from .guided import Reader


def _one_file(folder: Path) -> Iterator[tuple[Path, Path]]:
    (folder / "good").write_text("one two three")
    yield folder / "good", folder / "good"


def _read(path: Path) -> str:
    if b"two" not in path.read_bytes():
        raise KeyError("two")
    return "read"


def test_a_fault_is_told_with_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(mutants.READERS, "fake", Reader(_one_file, _read, ()))
    made = mutants.stretch("fake", 60, 0, tmp_path)
    (fault,) = made["bad"]
    assert fault.startswith("KeyError at test_mutants.py:") and made["mutants"] >= 60
    file, _, data = made["bad"][fault].partition(": ")
    assert file == "good" and b"two" not in bytes.fromhex(data)
    assert 0 < made["seen"]["read"] < made["mutants"]


def test_a_campaign_goes_on_where_it_stopped(monkeypatch, tmp_path: Path) -> None:
    seeds = list[tuple[str, int, int]]()

    def stretch(name: str, count: int, seed: int, folder: Path) -> mutants.Line:
        seeds.append((name, count, seed))
        bad = {"KeyError": ""} if name == "pir" and seed == 1 else {}
        return {"name": name, "digest": "", "mutants": count, "seen": {}, "bad": bad}

    assert mutants.READERS.keys() >= set(mutants.MODELS)
    assert len({mutants.digest(name) for name in mutants.MODELS}) == len(mutants.MODELS) - 1
    monkeypatch.setattr(mutants, "one_process", stretch)
    monkeypatch.setattr(mutants, "STRETCH", 10)
    assert not mutants.campaign(["caffe"], 15, tmp_path)
    assert seeds == [("caffe", 10, 0), ("caffe", 5, 1)]
    seeds.clear()
    assert mutants.campaign(["caffe", "pir"], 25, tmp_path)
    assert seeds == [("pir", 10, 0), ("pir", 10, 1), ("caffe", 10, 2)]
    *_, caffe, pir = mutants.table(tmp_path)
    assert caffe.startswith("| `caffe` | 25 ") and pir.endswith("| 1 |")


@pytest.mark.hours
def test_ten_times_the_first_hour(tmp_path: Path) -> None:
    """47,630 files of seven formats, 136,640 ONNX graphs."""
    assert not mutants.campaign([m for m in mutants.MODELS if "onnx" not in m], 6805, tmp_path)
    assert not mutants.campaign(["onnx"], 20_000, tmp_path)
    assert not mutants.campaign(["onnx_operators"], 116_640, tmp_path)
