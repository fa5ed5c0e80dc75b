"""Which stage differs between two backends, and what that does to the answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from lite_engine import optimize
from lite_engine.pipeline import Pipeline, answer_changes, compare
from lite_engine.runtime import host_target
from lite_workbench.cli import main

from tests.small_models import classifier

pytestmark = pytest.mark.cpu


class Faulty(Pipeline):
    """Its backend "faulty" spoils what one model gives: by a little, or so that it matters."""

    spoils: Sequence[tuple[int, float]] = ()

    def runners(self, backend="auto", **options):
        made = super().runners(host_target(), **options)
        for index, by in self.spoils if backend == "faulty" else ():
            made[index] = _spoilt(made[index], by)
        return made


def _spoilt(run, by):
    return lambda array: [x + by * np.arange(x.size, dtype=x.dtype) for x in run(array)]


def two() -> Faulty:
    model = optimize(classifier())
    stages = [{"model": model, "name": "first"}, {"model": model, "name": "second"}]
    return Faulty(stages, "two")


def test_the_stage_that_changes_the_answer_is_named(photo) -> None:
    pipeline = two()
    pipeline.spoils = [(0, 1e-7), (1, 1.0)]
    made = compare(pipeline, photo, host_target(), "faulty")
    first, second = made.stages
    assert (first.calls, second.calls) == (1, 1)
    assert 0 < first.rel_l2 < 1e-5 and not first.effect
    assert second.max_abs == pytest.approx(9) and made.first is second
    (change,) = made.changes
    assert change == second.effect[0] and change.endswith("→ class 9")
    assert change.startswith("second 1: class ")


def test_equal_backends_give_one_answer(photo) -> None:
    made = compare(two(), photo, host_target(), "same")
    assert not made.changes and made.first is None
    assert [s.max_abs for s in made.stages] == [0, 0]
    assert "same answer" in repr(made)


def test_real_backends_agree(photo, capsys, tmp_path) -> None:
    path = optimize(classifier()).save(tmp_path / "m.lite")
    words = ["pipeline", str(path), "--image", str(photo), "--backend", host_target()]
    assert main([*words, "--compare", "reference"]) == 0
    said = capsys.readouterr().out
    assert f"reference gives the same answer as {host_target()}" in said
    assert "looks like the family classification" in said
    assert main(["pipeline", str(path), "--compare", "reference"]) == 2


def test_every_kind_of_change_is_a_line() -> None:
    box = {"label": "a", "box": [1, 2, 30, 40], "score": 0.9}
    inner = {"read": {"kind": "text", "text": "AB", "confidence": 0.9}}
    before = {"answers": {"d": {"kind": "boxes", "items": [{**box, "answers": inner}, box]}}}
    after = {"answers": {"d": {"kind": "boxes", "items": [
        {**box, "box": [1, 2, 33.5, 40],
         "answers": {"read": {"kind": "text", "text": "AC", "confidence": 0.9}}},
    ]}}}  # fmt: skip
    assert answer_changes(before, before) == []
    assert answer_changes(before, after) == [
        "d: 2 → 1 found", "d 1: moved by 3.5 pixels", 'd 1 read: "AB" → "AC"',
    ]  # fmt: skip
    assert answer_changes(before, {"answers": {}}) == ["d: no boxes"]
    other = {"answers": {"d": {"kind": "boxes", "items": [{**box, "label": "b"}, box]}}}
    assert answer_changes(before, other)[0] == "d 1: a → b"
