"""The store of saved runs when it is busy, full or damaged anywhere: a warning, never an error, and
what was saved before is there where the file still holds it."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from lite_engine.errors import LiteError, UsageError
from lite_engine.history import History
from lite_engine.history import _history as module

from tests.profile.profiles import made_up

MEASURED = made_up([1.0, 2.0])


@pytest.mark.parametrize("lock", ["exclusive", "immediate"])
def test_busy(lock: str, tmp_path: Path, monkeypatch, caplog) -> None:
    """Another process holds the store for longer than anybody waits."""
    monkeypatch.setattr(module, "BUSY_S", 0.05)
    store = History(tmp_path / "runs.sqlite")
    assert store.add(MEASURED) == 1
    with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
        other.execute("pragma locking_mode = exclusive" if lock == "exclusive" else "select 1")
        other.execute(f"begin {lock}")
        assert store.add(MEASURED) is None and "locked" in caplog.text
        with pytest.raises(LiteError, match=r"runs\.sqlite: saved runs cannot be used \(.*locked"):
            store.tag(1, "mine")
    assert store.add(MEASURED) == 2 and len(store.list()) == 2


def test_full(tmp_path: Path, monkeypatch, caplog) -> None:
    store = History(tmp_path / "runs.sqlite")
    assert store.add(MEASURED) == 1
    connect = sqlite3.connect

    def small(*args, **kwargs):
        db = connect(*args, **kwargs)
        db.execute("pragma max_page_count = 1")  # no less than it has: not one page more
        return db

    monkeypatch.setattr(module.sqlite3, "connect", small)
    numbers = [store.add(MEASURED) for _ in range(30)]
    assert None in numbers and "full" in caplog.text
    monkeypatch.undo()
    assert len(store.list()) == 1 + sum(n is not None for n in numbers)
    assert store.add(MEASURED) is not None


@pytest.mark.parametrize("seed", range(3))
def test_damaged_anywhere(seed: int, tmp_path: Path) -> None:
    path, rng = tmp_path / "runs.sqlite", random.Random(seed)
    for _ in range(3):
        History(path).add(MEASURED)
    good = path.read_bytes()
    for _ in range(40):
        bad = bytearray(good)
        for _ in range(rng.choice((1, 20, 400))):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        path.write_bytes(bad[: rng.choice((len(bad), rng.randrange(len(bad))))])
        store = History(path)
        for run in store.list():
            try:
                store.get(run.id)
            except UsageError as error:
                assert "\n" not in str(error)
        assert store.add(MEASURED) is not None or path.exists()
        for left in tmp_path.glob("runs.sqlite*"):
            left.unlink()
