"""Damaged programs and files never crash the runtime: `lite_fuzz` under the sanitizers.

Each kernel gets programs of its own, so that damage reaches its checks and not only the loader's.
"""

import subprocess

import numpy as np
import pytest
from lite_engine.backends.cpu import native
from lite_engine.model_file.program_file import write_program_file

from . import test_compute_f32 as f32
from . import test_compute_int8 as int8
from .cases import collected, merged
from .tiny import one_step_plan

pytestmark = pytest.mark.cpu
TOTAL_MS = 20_000


def groups():
    """Per kernel one plan of up to four different small cases."""
    by_kernel = {}
    for case in collected():
        if sum(a.nbytes for a in case.inputs if a is not None) < 20_000:
            by_kernel.setdefault(case.kernel, []).append(case.plan())
    for spec in f32.CONVS:
        op, inputs, attrs, want = f32.conv_case(*spec)
        plan = one_step_plan(
            op, spec[0], inputs, [want.astype(np.float32)], attrs, range(1, len(inputs))
        )
        by_kernel.setdefault(spec[0], []).append(plan)
    for spec in int8.CONVS:
        inputs, attrs, want = int8.int_conv_case(*spec)
        plan = one_step_plan("QLinearConv", spec[0], inputs, [want], attrs, range(1, len(inputs)))
        by_kernel.setdefault(spec[0], []).append(plan)
    for kernel, plans in sorted(by_kernel.items()):
        yield kernel, merged(plans[:: max(1, len(plans) // 4)][:4])


def test_damage(root, tmp_path):
    fuzzer = root / "build" / "asan" / "lite_fuzz"
    if not fuzzer.is_file():
        pytest.skip("build/asan/lite_fuzz is not built; run `make native-asan`")
    plans = list(groups())
    refused = ran = 0
    for seed, (kernel, plan) in enumerate(plans):
        model = write_program_file(plan, tmp_path / f"{kernel}.lite", (native.target(),))
        done = subprocess.run(
            [
                str(fuzzer),
                str(model),
                str(tmp_path / "damaged.lite"),
                str(seed),
                str(TOTAL_MS // len(plans)),
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
