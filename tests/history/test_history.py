"""History: kept, listed, tagged; a damaged store is set aside; many writers at once."""

from __future__ import annotations

import logging
import multiprocessing
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from lite_engine.errors import UsageError
from lite_engine.history import History

from tests.profile.profiles import made_up


def test_kept_and_found(tmp_path) -> None:
    history = History(tmp_path / "runs.sqlite")
    first = history.add(made_up([1.0, 2.0]), "a.onnx")
    second = history.add(made_up([1.0, 3.0]), "a.onnx", tag="after")
    assert [r.id for r in history.list()] == [second, first]
    run, profile = history.get("after")
    assert run.id == second and profile.to_dict() == made_up([1.0, 3.0]).to_dict()
    history.tag(first, "before")
    assert history.get("before")[0].id == first
    assert history.list(model="other") == []


def test_an_unknown_run(tmp_path) -> None:
    with pytest.raises(UsageError, match="there is no run 7"):
        History(tmp_path / "runs.sqlite").get(7)


@pytest.mark.parametrize("kept", ["", "null", "[]", '{"layers": [null]}', '{"layers": {"a": 1}}'])
def test_a_damaged_run(tmp_path, kept: str) -> None:
    history = History(tmp_path / "runs.sqlite")
    history.add(made_up([1.0]), "a.onnx")
    with closing(sqlite3.connect(tmp_path / "runs.sqlite")) as db:
        db.execute("update runs set profile = ?", (kept,))
        db.commit()
    with pytest.raises(
        UsageError,
        match=r"^run 1 can no longer be read \(.*save a new one: `lite profile MODEL`$",
    ):
        history.get(1)


def test_a_damaged_store_costs_nothing(tmp_path, caplog) -> None:
    path = tmp_path / "runs.sqlite"
    path.write_bytes(b"this was a database once" * 100)
    history = History(path)
    with caplog.at_level(logging.WARNING):
        assert history.add(made_up([1.0])) == 1
    assert "set aside" in caplog.text
    assert len(history.list()) == 1
    assert [p for p in tmp_path.iterdir() if "damaged" in p.name]


def test_a_damaged_store_that_cannot_be_renamed(tmp_path, monkeypatch, caplog) -> None:
    """A folder that is read-only: root may write there, so the refusal is made here."""
    path = tmp_path / "runs.sqlite"
    path.write_bytes(b"this was a database once" * 100)

    def refuse(self, target):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "rename", refuse)
    with caplog.at_level(logging.WARNING):
        assert History(path).add(made_up([1.0])) is None
    assert "damaged and left out" in caplog.text


def test_a_cut_store_costs_nothing(tmp_path) -> None:
    """What a full disk or a copy that was interrupted leaves of a real store."""
    path = tmp_path / "runs.sqlite"
    for _ in range(30):
        History(path).add(made_up([1.0] * 20))
    whole = path.read_bytes()
    for size in (1, 100, 4096, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        added = History(path).add(made_up([2.0]))
        assert added is None or History(path).get(added)[1].total_ms["min"] == 2.0


def test_a_number_is_no_tag(tmp_path) -> None:
    """It could not be found again: numbers name runs."""
    history = History(tmp_path / "runs.sqlite")
    run = history.add(made_up([1.0]))
    with pytest.raises(UsageError, match="numbers name runs"):
        history.tag(run, "12")


def test_a_folder_that_cannot_be_written(tmp_path) -> None:
    (tmp_path / "file").write_text("no folder")
    history = History(tmp_path / "file" / "runs.sqlite")
    assert history.add(made_up([1.0])) is None and history.list() == []


def _write(path: str, count: int) -> None:
    history = History(path)
    for _ in range(count):
        assert history.add(made_up([1.0])) is not None


def test_two_notebooks_at_once(tmp_path) -> None:
    path = Path(tmp_path / "runs.sqlite")
    workers = [
        multiprocessing.get_context("fork").Process(target=_write, args=(str(path), 20))
        for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [w.exitcode for w in workers] == [0, 0]
    assert len(History(path).list(limit=100)) == 40


def test_a_tag_used_again_names_the_newest(tmp_path) -> None:
    history = History(tmp_path / "runs.sqlite")
    runs = [history.add(made_up([float(i + 1)]), tag="mine") for i in range(3)]
    assert history.get("mine")[0].id == runs[-1]
