"""Numbers and names that a Session is given wrongly: refused where they are given, by what is
wrong and how to fix it, and what was set before stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine.errors import UsageError

pytestmark = pytest.mark.cpu


@pytest.fixture(scope="module")
def session() -> lw.Session:
    made = lw.open(lw.shipped("digits.onnx"))
    made.convert(targets=["x86"])
    return made


@pytest.mark.parametrize("threads", [0, -1, 257, "two", 1.5, True])
def test_threads_are_checked_when_they_are_set(session: lw.Session, threads: Any) -> None:
    session.threads = 1
    with pytest.raises(UsageError, match="threads must be between 1 and 256, got "):
        session.threads = threads
    assert session.threads == 1
    session.threads = np.int64(2)
    assert session.profile("x86", runs=1).threads == 2
    session.threads = None


@pytest.mark.parametrize("tolerance", [-1, "a", float("nan"), float("inf"), True])
def test_a_tolerance_is_a_number_of_0_or_more(session: lw.Session, tolerance: Any) -> None:
    with pytest.raises(UsageError, match=r"tolerance must be a number of 0 or more, got .*1e-3"):
        session.compare("x86", "reference", tolerance=tolerance)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"threads": [0]}, "threads must be between 1 and 256, got 0"),
        ({"threads": [1, 257]}, "threads must be between 1 and 256, got 257"),
        ({"batches": [0]}, "batches must be whole numbers of 1 or more, got 0"),
        ({"batches": [1.5]}, "batches must be whole numbers of 1 or more, got 1.5"),
        ({"streams": [-1]}, "streams must be whole numbers of 1 or more, got -1"),
        ({"rounds": 0}, "rounds must be whole numbers of 1 or more, got 0"),
    ],
)
def test_a_sweep_measures_nothing_with_wrong_numbers(
    session: lw.Session, given: dict[str, Any], says: str, monkeypatch: Any
) -> None:
    from lite_workbench.sweep import run

    monkeypatch.setattr(run, "measure_group", lambda *_: pytest.fail("it began to measure"))
    with pytest.raises(UsageError, match=says):
        session.sweep(**given)


def test_a_function_takes_lists(session: lw.Session) -> None:
    """What a session makes a list of, `sweep` itself would take apart."""
    from lite_workbench.sweep import run

    threads: Any = 2
    with pytest.raises(UsageError, match=r"threads must be a list .*, got 2; write threads=\[2\]"):
        run.sweep(session.model, threads=threads)


def test_a_sweep_without_choices_is_one_line_of_code() -> None:
    session = lw.open(lw.shipped("digits.onnx"))
    session.convert(targets=["x86"])
    made = session.sweep(rounds=1)
    assert [c.choice.batch for c in made.cells] == [1]  # the file's own
    assert session.code[-1] == "sweep = session.sweep()" and session.sweeps == [made]


@pytest.mark.parametrize("path", ["", ".", "/"])
def test_a_file_to_write_has_a_name(session: lw.Session, path: str) -> None:
    with pytest.raises(UsageError, match=r"expected the name of a file .* out/model\.lite"):
        session.export(path)
    with pytest.raises(UsageError, match=r"expected the name of a file .* out/model\.ipynb"):
        session.notebook(Path(path))


@pytest.mark.parametrize("runs", [0, -3, "a", 2.5])
def test_a_profile_has_one_run_or_more(session: lw.Session, runs: Any) -> None:
    with pytest.raises(UsageError, match=f"runs must be a whole number of 1 or more, got {runs!r}"):
        session.profile("x86", runs=runs)


@pytest.mark.parametrize("limit", [0, -1, 2.5])
def test_an_evaluation_has_one_sample_or_more(session: lw.Session, limit: Any) -> None:
    says = f"limit must be a whole number of 1 or more, got {limit}"
    with pytest.raises(UsageError, match=says):
        session.evaluate(lw.shipped("digits_held_back.npz"), limit=limit)
