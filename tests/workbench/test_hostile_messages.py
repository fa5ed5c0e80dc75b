"""Messages that no page sends are refused or answered, and the workbench works afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import lite_workbench as lw
import pytest
import traitlets
from lite_widgets import DifferencePane

from tests.workbench.sessions import click, opened

pytestmark = pytest.mark.cpu


@pytest.mark.parametrize("count", [250, pytest.param(30_000, marks=pytest.mark.hours)])
def test_a_storm(count: int, root: Path, capsys) -> None:
    path = os.pathsep.join([str(root), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-m", "tests.workbench.hostile_messages", str(count)], cwd=root,
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
    )  # fmt: skip
    made = json.loads(done.stdout.splitlines()[-1]) if done.stdout else {}
    assert done.returncode == 0 and made["messages"] == count, made or done.stderr[-2000:]
    assert made["widgets"] > 20 and {"taken", "refused"} <= set(made["ends"]), made
    with capsys.disabled():
        print(f"\n{made}")


def test_clicks_that_nothing_stands_behind() -> None:
    """Undo, though nothing was done; buttons of the top bar and the code without their payload."""
    bench = lw.Workbench(opened("x86"))
    click(bench.top, "undo")
    click(bench.top, "undo")
    assert "nothing to undo" in bench.top.note
    for widget, action in ((bench.top, "cancel"), (bench.code, "insert")):
        bench.top.note = ""
        click(widget, action)
        assert bench.top.note.startswith("KeyError"), action
    bench.close()


def test_a_run_that_is_not_in_the_list() -> None:
    """Which earlier profile a page wants, before there is one and of none that it was told."""
    bench = lw.Workbench(opened("x86"))
    step = bench.step("Profile")
    for said in ("../x", "0", "-1", "1" * 5000):
        step.changes.set_state({"against": said})
    assert step.changes.change is None
    bench.close()


@pytest.mark.parametrize("said", ["x", ["a"], [[1], [1, 2]], {}, 10**400, b"odd"])
def test_a_picture_of_no_numbers(said: Any) -> None:
    with pytest.raises(traitlets.TraitError):
        DifferencePane().set_state({"map": said})
