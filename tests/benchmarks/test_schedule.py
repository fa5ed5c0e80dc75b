"""The turns that engines take, with engines that only count their bursts."""

from __future__ import annotations

from typing import Any

from benchmarks.schedule import LEAST_ROUNDS, run_in_turn


class Counting:
    """Notes its bursts in a list that all engines share; fails after some of them."""

    def __init__(self, name: str, bursts: list[str], fails_after: int = 99) -> None:
        self.name, self.bursts, self.left = name, bursts, fails_after

    def ask(self, **command: Any) -> dict[str, Any]:
        self.bursts.append(self.name)
        self.left -= 1
        return {"ms": [float(10 + self.left)]} if self.left >= 0 else {"error": "died"}


def test_every_engine_has_its_rounds_in_no_time() -> None:
    bursts: list[str] = []
    rows: dict[str, dict[str, Any]] = {"a": {}, "b": {}}
    run_in_turn({name: Counting(name, bursts) for name in rows}, rows, seconds=0)
    warm_up, turns = bursts[:2], bursts[2:]
    assert warm_up == ["a", "b"]
    assert turns == (["a", "b", "b", "a"] * LEAST_ROUNDS)[: 2 * LEAST_ROUNDS]
    assert rows["a"]["runs"] == rows["b"]["runs"] == LEAST_ROUNDS
    assert rows["a"]["min_ms"] == 10 + 99 - 1 - LEAST_ROUNDS


def test_an_engine_that_dies_leaves_the_others_their_rounds() -> None:
    bursts: list[str] = []
    rows: dict[str, dict[str, Any]] = {"a": {}, "b": {}}
    run_in_turn({"a": Counting("a", bursts, fails_after=3), "b": Counting("b", bursts)}, rows, 0)
    assert rows["a"] == {"error": "died"}
    assert rows["b"]["runs"] == LEAST_ROUNDS
