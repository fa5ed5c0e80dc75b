"""Copies between host and device through locked memory, as GPUs with memory of their own get."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any
from unittest import mock

import lite_engine.backends.opencl as opencl
import numpy as np
import pytest
from lite_engine.backends.opencl.device import Device
from lite_engine.plan import make_plan
from lite_engine.runtime.execute import Execution

from tests.opencl.tiny import device
from tests.small_models import Builder

pytestmark = pytest.mark.opencl


def execution(own: Device) -> Execution:
    """y = relu(x) and z = cumulative sum of −y, which the CPU computes between two copies."""
    b = Builder((3, 5, 7))
    y = b.add("Relu", b.x)
    z = b.add("Abs", b.add("CumSum", b.add("Neg", y), b.ints(1)))
    with mock.patch.object(opencl, "open_device", lambda report: own):
        return Execution(make_plan(b.done(y, z), "opencl"), threads=1)


def wanted(x: np.ndarray) -> list[np.ndarray]:
    y = np.maximum(x, 0)
    return [y, np.cumsum(y, 1)]


def same(found: list[np.ndarray], x: np.ndarray) -> None:
    for y, exact in zip(found, wanted(x), strict=True):
        np.testing.assert_allclose(y, exact, rtol=1e-6)


@pytest.fixture
def locking() -> Device:
    return dataclasses.replace(device(), own_memory=True)


def inputs(count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    return [rng.standard_normal((3, 5, 7)).astype(np.float32) for _ in range(count)]


def test_what_a_caller_holds_stays_as_it_is(locking: Device) -> None:
    """More runs than there are blocks for one output, in each of which the input changes after."""
    made, given = execution(locking), inputs(6)
    held = []
    for x in given:
        fed = x.copy()
        held.append(made.run([fed]))
        fed[:] = np.nan
    for found, x in zip(held, given, strict=True):
        same(found, x)
        found[0][:] = 7  # the array is the caller's
    same(made.run([given[0]]), given[0])


def test_memory_that_nobody_holds_is_taken_again(locking: Device) -> None:
    made, places = execution(locking), set[int]()
    for x in inputs(8):
        found = made.run([x])
        same(found, x)
        places.add(found[0].ctypes.data)
        part = found[0][1:].reshape(-1)
        del found
        np.testing.assert_array_equal(part, np.maximum(x, 0)[1:].reshape(-1))
    assert len(places) <= 3


def test_an_array_with_gaps_goes_in(locking: Device) -> None:
    (x,) = inputs(1)
    wide = np.repeat(x, 2, axis=2)[:, :, ::2]
    assert not wide.flags.c_contiguous
    same(execution(locking).run([wide]), x)


def test_copies_are_timed(locking: Device) -> None:
    made, (x,) = execution(locking), inputs(1)
    found = made.run([x])
    times = made.times()
    copied = [t for s, t in zip(made.plan.steps, times, strict=True) if s.op == "Copy"]
    assert len(copied) >= 4 and all(t.end_ns > 0 for t in copied)
    same(found, x)


def test_plain_memory_serves_where_none_can_be_locked(locking: Device) -> None:
    cl, asked = locking.cl, []

    def refusing(context: Any, flags: int, *args: Any, **more: Any) -> Any:
        if flags & cl.mem_flags.ALLOC_HOST_PTR:
            asked.append(flags)
            raise cl.MemoryError("clCreateBuffer", cl.status_code.OUT_OF_HOST_MEMORY)
        return cl.Buffer(context, flags, *args, **more)

    without = dataclasses.replace(locking, cl=SimpleNamespace(**{**vars(cl), "Buffer": refusing}))
    made = execution(without)
    for x in inputs(2):
        same(made.run([x]), x)
    assert asked
