"""The turns that engines take, with engines that only count their bursts."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import schedule, table
from benchmarks.schedule import BURSTS_NEAR, LEAST_ROUNDS, run_in_turn


class Counting:
    """Notes its bursts in a list that all engines share; fails after some of them."""

    def __init__(self, name: str, bursts: list[str], fails_after: int = 99) -> None:
        self.name, self.bursts, self.left = name, bursts, fails_after

    def ask(self, **command: Any) -> dict[str, Any]:
        self.bursts.append(self.name)
        self.left -= 1
        return {"ms": [100 + self.left / 100]} if self.left >= 0 else {"error": "died"}


class Noisy:
    """A burst is quick once in four times, else slower by a tenth and always another time."""

    def __init__(self) -> None:
        self.bursts = 0

    def ask(self, **command: Any) -> dict[str, Any]:
        self.bursts += 1
        return {"ms": [10.0 if self.bursts % 4 == 0 else 11 + self.bursts]}


def test_every_engine_has_its_rounds_in_no_time() -> None:
    bursts: list[str] = []
    rows: dict[str, dict[str, Any]] = {"a": {}, "b": {}}
    run_in_turn({name: Counting(name, bursts) for name in rows}, rows, seconds=0)
    warm_up, turns = bursts[:2], bursts[2:]
    assert warm_up == ["a", "b"]
    assert turns == (["a", "b", "b", "a"] * LEAST_ROUNDS)[: 2 * LEAST_ROUNDS]
    assert rows["a"]["runs"] == rows["b"]["runs"] == LEAST_ROUNDS
    assert rows["a"]["min_ms"] == 100 + (99 - 1 - LEAST_ROUNDS) / 100


def test_an_engine_that_dies_leaves_the_others_their_rounds() -> None:
    bursts: list[str] = []
    rows: dict[str, dict[str, Any]] = {"a": {}, "b": {}}
    run_in_turn({"a": Counting("a", bursts, fails_after=3), "b": Counting("b", bursts)}, rows, 0)
    assert rows["a"] == {"error": "died"}
    assert rows["b"]["runs"] == LEAST_ROUNDS


def test_turns_go_on_until_the_least_time_was_reached_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(10**6))
    monkeypatch.setattr(schedule.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(schedule.time, "sleep", lambda seconds: None)
    rows: dict[str, dict[str, Any]] = {"a": {}}
    run_in_turn({"a": Noisy()}, rows, seconds=LEAST_ROUNDS)
    assert rows["a"]["runs"] == 4 * BURSTS_NEAR - 1  # the warm-up was the first burst
    assert rows["a"]["reached"] and table.settled(rows)


def test_patience_ends_and_the_row_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(10**6))
    monkeypatch.setattr(schedule.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(schedule.time, "sleep", lambda seconds: None)
    rows: dict[str, dict[str, Any]] = {"a": {}}
    run_in_turn({"a": Noisy()}, rows, seconds=1)
    assert rows["a"]["runs"] == schedule.PATIENCE
    assert not rows["a"]["reached"] and not table.settled(rows)
