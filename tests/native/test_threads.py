"""The thread pool and the kernels' partitions under ThreadSanitizer: no two threads touch the same
memory without a barrier between them."""

import subprocess

import numpy as np
import pytest
from lite_engine.backends.cpu import native
from lite_engine.model_file.program_file import write_program_file

from . import test_compute_f32 as f32
from . import test_compute_int8 as int8
from .cases import collected, merged
from .tiny import one_step_plan

pytestmark = [pytest.mark.cpu, pytest.mark.slow]


def plans():
    """Every kernel case as a plan of its own, inputs among the weights."""
    for case in collected():
        yield case.plan(all_constant=True)
    for spec in f32.CONVS:
        op, inputs, attrs, want = f32.conv_case(*spec)
        outputs = [want.astype(np.float32)]
        yield one_step_plan(op, spec[0], inputs, outputs, attrs, range(len(inputs)))
    for spec in int8.CONVS:
        inputs, attrs, want = int8.int_conv_case(*spec)
        yield one_step_plan("QLinearConv", spec[0], inputs, [want], attrs, range(len(inputs)))


@pytest.mark.parametrize("threads", [2, 4])
def test_no_race(root, tmp_path, threads):
    runner = root / "build" / "tsan" / "lite_run"
    if not runner.is_file():
        pytest.skip("build/tsan/lite_run is not built; run `make native-tsan`")
    model = write_program_file(merged(list(plans())), tmp_path / "all.lite", (native.target(),))
    done = subprocess.run(
        [str(runner), str(model), "--threads", str(threads), "--runs", "3"],
        capture_output=True,
        text=True,
        timeout=300,
        env={"TSAN_OPTIONS": "halt_on_error=1"},
    )
    assert done.returncode == 0, done.stderr[:3000]
