"""Some coverage-guided fuzzing of each native reader (tests/fuzz/native.py)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from . import native

pytestmark = pytest.mark.cpu
COUNTING = "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done"


@pytest.mark.parametrize("work, left", [("sleep 0.2", 0), (COUNTING, 1)])
def test_waiting_is_not_work(work: str, left: int, tmp_path: Path) -> None:
    """An input that was too slow only because the machine was busy is no finding."""
    target = tmp_path / "target"
    target.write_text(f"#!/bin/sh\n{work}\n")
    target.chmod(0o755)
    (tmp_path / "timeout-1").write_text("")
    inputs = list(tmp_path.glob("timeout-*"))
    assert native.too_much_work(target, inputs, os.environ, most=0.03) == bool(left)
    assert len(list(tmp_path.glob("timeout-*"))) == left


@pytest.mark.fuzzer
@pytest.mark.parametrize("target", native.TARGETS)
def test_a_short_run(target: str, tmp_path: Path) -> None:
    made = native.fuzz(target, 120, tmp_path / target, runs=10_000)
    print(made)
    assert not made["report"], made
    assert made["runs"] > 1000 and made["corpus"] > made["seeds"], made


@pytest.mark.fuzzer
@pytest.mark.hours
@pytest.mark.parametrize("target", native.TARGETS)
def test_an_hour(target: str, tmp_path: Path, capsys) -> None:
    made = native.fuzz(target, 3600, tmp_path / target)
    with capsys.disabled():
        print(f"\n{made}")
    assert not made["report"], made
    assert all(share >= 85 for share in made["lines"].values()), made
