"""The thread pool and the kernels' partitions under ThreadSanitizer: no two threads touch the same
memory without a barrier between them."""

import subprocess

import pytest
from lite_engine.backends.cpu import native
from lite_engine.model_file.program_file import write_program_file

from ..cases import merged, plans

pytestmark = [pytest.mark.cpu, pytest.mark.tsan, pytest.mark.slow]


@pytest.mark.parametrize("threads", [pytest.param(2, marks=pytest.mark.hours), 4])
def test_no_race(root, tmp_path, threads):
    runner = root / "build" / "tsan" / "lite_run"
    whole = merged(plans(all_constant=True))
    model = write_program_file(whole, tmp_path / "all.lite", (native.target(),))
    done = subprocess.run(
        [str(runner), str(model), "--threads", str(threads), "--runs", "3"],
        capture_output=True,
        text=True,
        timeout=300,
        env={"TSAN_OPTIONS": "halt_on_error=1"},
    )
    assert done.returncode == 0, done.stderr[:3000]
