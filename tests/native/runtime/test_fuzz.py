"""Damaged programs and files never crash the runtime: `lite_fuzz` under the sanitizers.

Each kernel gets programs of its own, so that damage reaches its checks and not only the loader's.
"""

import subprocess

import pytest
from lite_engine.backends.cpu import native
from lite_engine.model_file.program_file import write_program_file
from lite_engine.plan import make_plan
from lite_engine.plan.turns import turns_of

from tests.small_models import Builder

from ..cases import merged, plans

pytestmark = [pytest.mark.cpu, pytest.mark.asan]
TOTAL_MS = 4_000


def groups():
    """Per kernel one plan of up to four different small cases."""
    by_kernel = {}
    for plan in plans():
        if sum(t.nbytes for t in plan.tensors) < 20_000:
            by_kernel.setdefault(plan.steps[0].kernel, []).append(plan)
    for kernel, cases in sorted(by_kernel.items()):
        yield kernel, merged(cases[:: max(1, len(cases) // 4)][:4])


def damage(root, tmp_path, name: str, plan, seed: int, ms: int) -> tuple[int, int]:
    """(refused, ran)."""
    model = write_program_file(plan, tmp_path / f"{name}.lite", (native.target(),))
    fuzzer = root / "build" / "asan" / "lite_fuzz"
    done = subprocess.run(
        [fuzzer, model, tmp_path / "damaged.lite", str(seed), str(ms)],
        capture_output=True,
        text=True,
        timeout=120,
        env={
            "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=1",
            "UBSAN_OPTIONS": "print_stacktrace=1",
        },
    )
    assert done.returncode == 0, f"{name}, seed {seed}: {done.stderr[-3000:]}"
    words = done.stdout.split()
    return int(words[0]), int(words[2])


def test_damage(root, tmp_path):
    found = list(groups())
    counts = [
        damage(root, tmp_path, kernel, plan, seed, TOTAL_MS // len(found))
        for seed, (kernel, plan) in enumerate(found)
    ]
    refused, ran = (sum(column) for column in zip(*counts, strict=True))
    # Damage that is always refused would test the loader alone.
    assert refused > 100 and ran > 100, f"{refused} refused, {ran} ran"


def test_damage_to_turns(root, tmp_path, monkeypatch):
    """Steps that take turns over samples, with slices of a buffer and values that others read."""
    monkeypatch.setattr("lite_engine.plan.samples._CACHE_BYTES", 0)
    monkeypatch.setattr("lite_engine.plan.samples._STEP_BYTES", -(1 << 20))
    b = Builder((4, 4, 6, 5), "turns")
    left, right = (b.conv(b.x, 4, 8, k, name=f"conv{k}") for k in (1, 3))
    y = b.add("Relu", b.add("Concat", left, right, axis=1))
    y = b.add("MaxPool", b.conv(y, 16, 4, 1), kernel_shape=[2, 2])
    plan = make_plan(b.done(b.add("ReduceSum", y, b.ints(0, 2)), y), "cpu")
    turns = turns_of(plan)
    assert turns.end - turns.first > 4 and turns.kept
    refused, ran = damage(root, tmp_path, "turns", plan, 1, TOTAL_MS // 2)
    assert refused > 100 and ran > 100, f"{refused} refused, {ran} ran"
