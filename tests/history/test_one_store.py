"""Two notebooks and the command line on one file of saved runs, which another program keeps
locking: nothing is lost, nothing is damaged, and what each of them reads is whole."""

from __future__ import annotations

import json
import multiprocessing
import os
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("IPython", reason="pip install 'lite-workbench[lab]'")
from IPython.core.interactiveshell import InteractiveShell
from lite_engine import optimize
from lite_engine.history import History
from lite_workbench.cli import main

from tests.small_models import classifier

pytestmark = pytest.mark.cpu


def notebook(name: str, model: str, runs: int) -> None:
    """A kernel of its own, whose cells profile, tag what they have, and look at it."""
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "lite_workbench")
    shell.user_ns["model"] = model
    for i in range(runs):
        cell = f"%lite profile {{model}} --backend reference --runs 1 --tag {name}-{i}"
        done = shell.run_cell(cell)
        assert done.success and done.result is not None
        listed = shell.run_cell("%lite runs list --limit 1000")
        assert listed.success and len(listed.result.runs) > i
        shown = shell.run_cell(f"%lite runs show {name}-{i}")
        assert shown.success and shown.result.run.tag == f"{name}-{i}"


def command_line(name: str, model: str, runs: int) -> None:
    made = Path(model).with_name(f"{name}.json")
    for i in range(runs):
        arguments = ["profile", model, "--backend", "reference", "--runs", "1"]
        assert main([*arguments, "--json", str(made)]) == 0
        number = json.loads(made.read_text())["run"]
        assert main(["runs", "tag", str(number), f"{name}-{i}"]) == 0


def locker(path: str, ready: Any, stop: Any) -> None:
    """Holds the file for itself again and again, for less long than a writer waits."""
    while not stop.is_set():
        with closing(sqlite3.connect(path, timeout=10)) as db:
            db.execute("begin immediate")
            ready.set()
            time.sleep(0.05)
            db.rollback()
        time.sleep(0.01)


def quiet(work: Callable[..., None], log: str, *given: Any) -> None:
    """A process's output to a file, so that a failure can be read."""
    with Path(log).open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        sys.stdout, sys.stderr = file, file
        work(*given)


@pytest.mark.parametrize("runs", [4, pytest.param(150, marks=pytest.mark.hours)])
def test_three_programs_on_one_store(
    runs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))
    model = str(optimize(classifier()).save(tmp_path / "m.lite"))
    store = History()
    assert store.list() == [] and store.path.parent == tmp_path
    fork = multiprocessing.get_context("fork")
    ready, stop = fork.Event(), fork.Event()
    holding = fork.Process(target=locker, args=(str(store.path), ready, stop))
    works = {"one": notebook, "two": notebook, "shell": command_line}
    workers = {
        name: fork.Process(target=quiet, args=(work, f"{tmp_path}/{name}", name, model, runs))
        for name, work in works.items()
    }
    holding.start()
    assert ready.wait(30)
    for worker in workers.values():
        worker.start()
    for worker in workers.values():
        worker.join(60 + 20 * runs)
    stop.set()
    holding.join(30)
    for name, worker in workers.items():
        assert worker.exitcode == 0, (name, (tmp_path / name).read_text()[-2000:])
        assert "left out" not in (tmp_path / name).read_text()
    kept = store.list(limit=10_000)
    assert Counter(run.tag for run in kept) == {f"{n}-{i}": 1 for n in works for i in range(runs)}
    for run in kept:
        assert store.get(run.id)[1].layers
    with closing(sqlite3.connect(store.path)) as db:
        assert db.execute("pragma integrity_check").fetchall() == [("ok",)]
    assert not [path for path in tmp_path.iterdir() if "damaged" in path.name]
