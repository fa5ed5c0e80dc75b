"""Some coverage-guided fuzzing of each native reader (tests/fuzz/native.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import native

pytestmark = [pytest.mark.cpu, pytest.mark.fuzzer]


@pytest.mark.parametrize("target", native.TARGETS)
def test_a_short_run(target: str, tmp_path: Path) -> None:
    made = native.fuzz(target, 120, tmp_path / target, runs=10_000)
    print(made)
    assert not made["report"], made
    assert made["runs"] > 1000 and made["corpus"] > made["seeds"], made


@pytest.mark.hours
@pytest.mark.parametrize("target", native.TARGETS)
def test_an_hour(target: str, tmp_path: Path, capsys) -> None:
    made = native.fuzz(target, 3600, tmp_path / target)
    with capsys.disabled():
        print(f"\n{made}")
    assert not made["report"], made
    assert all(share >= 85 for share in made["lines"].values()), made
