"""No kernel reads what nobody wrote: results do not depend on what memory held before.

A fresh program has zeros in its arena and its scratch, which hide such a read. Here they hold NaN
and all-one bits of an earlier run, or the values of other kernels. valgrind sees nothing of it: it
takes fresh pages of the system for written ones.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from platform import machine

import numpy as np
import pytest
from lite_engine._native import runner_path
from lite_engine.backends.cpu import native
from lite_engine.errors import LiteError
from lite_engine.model_file.program_file import write_program_file
from lite_engine.plan.model import Plan

from ..cases import merged, plans
from ..tiny import isas, load

pytestmark = pytest.mark.cpu
MOST_BYTES = 20_000


def small(every: int = 1) -> list[Plan]:
    return [p for p in plans() if sum(t.nbytes for t in p.tensors) < MOST_BYTES][::every]


def feeds(plan: Plan, seed: int) -> list[np.ndarray]:
    """Floats of one seed; integers, which may be indices, are zeros."""
    rng = np.random.default_rng(seed)
    return [
        rng.standard_normal(t.dims).astype(t.dtype.np)
        if t.dtype.is_float and t.dtype.np.kind == "f"
        else np.zeros(t.dims, t.dtype.np)
        for t in (plan.tensors[i] for i in plan.inputs)
    ]


def dirt(like: Sequence[np.ndarray]) -> list[np.ndarray]:
    """NaN in floats, all bits set in bytes."""
    return [
        np.full_like(a, np.nan) if a.dtype.kind == "f"
        else np.full_like(a, np.iinfo(a.dtype).max) if a.dtype.itemsize == 1 and a.dtype.kind == "u"
        else a
        for a in like
    ]  # fmt: skip


def same(one: Sequence[np.ndarray], two: Sequence[np.ndarray]) -> bool:
    return all(a.tobytes() == b.tobytes() for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("isa", isas())
def test_an_earlier_run_leaves_no_trace(isa: str) -> None:
    wrong, tried = [], 0
    for plan in small():
        given = feeds(plan, 1)
        try:
            fresh = load(plan, max_isa=isa).run(given)
            used = load(plan, max_isa=isa)
        except LiteError:  # these inputs are not for this kernel: sizes, indices
            continue
        try:
            used.run(dirt(given))
        except LiteError:
            continue
        tried += 1
        if not same(fresh, used.run(given)):
            wrong.append((plan.steps[0].kernel, plan.steps[0].op, plan.steps[0].attrs))
    assert not wrong, (len(wrong), wrong[:5])
    assert tried > 1000


def test_other_kernels_in_the_same_memory_leave_no_trace() -> None:
    chosen, alone = [], []
    for plan in small(5):
        try:
            alone.append(load(plan).run(feeds(plan, 1)))
        except LiteError:
            continue
        chosen.append(plan)
    whole = load(merged(chosen))
    given = [a for plan in chosen for a in feeds(plan, 1)]
    whole.run(dirt(given))
    got = iter(whole.run(given))
    for plan, wanted in zip(chosen, alone, strict=True):
        found = [next(got) for _ in wanted]
        assert same(wanted, found), (plan.steps[0].kernel, plan.steps[0].attrs)


@pytest.mark.hours
@pytest.mark.parametrize("isa", [isa for isa in isas() if "512" not in isa and "amx" not in isa])
def test_memcheck(isa: str, tmp_path) -> None:
    """valgrind over every small case: bad accesses, jumps by what nobody wrote, lost memory."""
    if shutil.which("valgrind") is None:
        pytest.skip("no valgrind; sudo apt-get install valgrind")
    path = write_program_file(merged(small()), tmp_path / "all.lite", (native.target(),))
    runner = runner_path(machine(), opencl=True)  # the other one is static
    done = subprocess.run(
        ["valgrind", "-q", "--error-exitcode=9", "--leak-check=full",
         "--errors-for-leak-kinds=definite", runner, path, "--backend", "cpu", "--max-isa", isa,
         "--output", tmp_path / "out"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
