"""Whose memory a result is: the caller's while something refers to it, then a later run's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from lite_engine.backends.cpu.native import NativeProgram

from tests.native.tiny import load, one_step_plan

pytestmark = pytest.mark.cpu

LENGTH = 6000  # 24 kB: more than what is left to the system


def negation(length: int = LENGTH) -> NativeProgram:
    x = np.zeros(length, np.float32)
    return load(one_step_plan("Neg", "f32_unary", [x], [x]))


def filled(value: float, length: int = LENGTH) -> np.ndarray:
    return np.full(length, value, np.float32)


HOLDERS: dict[str, Callable[[np.ndarray], Any]] = {
    "the array": lambda y: y,
    "a part": lambda y: y[-1:],
    "a view of a view": lambda y: y.reshape(60, 100).T[::7, 3:],
    "other bits": lambda y: y.view(np.int32).view(np.float32),
    "a buffer": memoryview,
    "an array of a buffer": lambda y: np.frombuffer(memoryview(y), np.float32),
    "a subclass": lambda y: y.view(np.matrix)[0],
    "an iterator": lambda y: y.flat,
}


@pytest.mark.parametrize("hold", HOLDERS.values(), ids=HOLDERS)
def test_what_is_held_stays(hold: Callable[[np.ndarray], Any]) -> None:
    program, held = negation(), []
    for i in range(6):
        held.append(hold(program.run([filled(i)])[0]))
        for later in range(3):
            program.run([filled(100 + later)])
    for i, y in enumerate(held):
        values = np.asarray(y if isinstance(y, memoryview) else np.array(y))
        assert values.size and (values == -i).all()


def test_what_was_dropped_is_given_out_again() -> None:
    program, places = negation(), set()
    for i in range(8):
        y = program.run([filled(i)])[0]  # the last one is held while the next is computed
        places.add(y.ctypes.data)
        y += 1  # may be written to
    assert len(places) == 2


def test_after_many_held_results_two_are_kept() -> None:
    program = negation()
    held = [program.run([filled(i)])[0] for i in range(5)]
    places = [y.ctypes.data for y in held]
    assert len(set(places)) == 5
    del held
    assert {program.run([filled(9)])[0].ctypes.data for _ in range(4)} <= set(places[-2:])


def test_small_results_are_arrays_of_their_own() -> None:
    (y,) = negation(8).run([filled(3, 8)])
    assert y.flags.owndata and (y == -3).all()
