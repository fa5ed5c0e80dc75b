"""Damaged programs and files never crash the runtime: `lite_fuzz` under the sanitizers.

Each kernel gets programs of its own, so that damage reaches its checks and not only the loader's.
"""

import subprocess

import pytest
from lite_engine.backends.cpu import native
from lite_engine.model_file.program_file import write_program_file

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


def test_damage(root, tmp_path):
    fuzzer = root / "build" / "asan" / "lite_fuzz"
    found = list(groups())
    refused = ran = 0
    for seed, (kernel, plan) in enumerate(found):
        model = write_program_file(plan, tmp_path / f"{kernel}.lite", (native.target(),))
        done = subprocess.run(
            [
                str(fuzzer),
                str(model),
                str(tmp_path / "damaged.lite"),
                str(seed),
                str(TOTAL_MS // len(found)),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            env={
                "ASAN_OPTIONS": "allocator_may_return_null=1:detect_leaks=1",
                "UBSAN_OPTIONS": "print_stacktrace=1",
            },
        )
        assert done.returncode == 0, f"{kernel}, seed {seed}: {done.stderr[-3000:]}"
        words = done.stdout.split()
        refused, ran = refused + int(words[0]), ran + int(words[2])
    # Damage that is always refused would test the loader alone.
    assert refused > 100 and ran > 100, f"{refused} refused, {ran} ran"
