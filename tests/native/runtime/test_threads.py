"""The thread pool and the kernels' partitions under ThreadSanitizer: no two threads touch the same
memory without a barrier between them."""

import subprocess

import pytest
from lite_engine.backends.cpu import native
from lite_engine.model_file.program_file import write_program_file
from lite_engine.plan import make_plan
from lite_engine.plan.turns import turns_of

from ..cases import merged, plans
from ..tiny import load
from . import test_turns

pytestmark = [pytest.mark.cpu, pytest.mark.tsan, pytest.mark.slow]


def run(root, tmp_path, plan, threads: int) -> None:
    runner = root / "build" / "tsan" / "lite_run"
    model = write_program_file(plan, tmp_path / "model.lite", (native.target(),))
    done = subprocess.run(
        [str(runner), str(model), "--threads", str(threads), "--runs", "3"],
        capture_output=True,
        text=True,
        timeout=300,
        env={"TSAN_OPTIONS": "halt_on_error=1"},
    )
    assert done.returncode == 0, done.stderr[:3000]


@pytest.mark.parametrize("threads", [pytest.param(2, marks=pytest.mark.hours), 4])
def test_no_race(root, tmp_path, threads):
    run(root, tmp_path, merged(plans(all_constant=True)), threads)


@pytest.mark.parametrize("make", test_turns.GRAPHS)
def test_no_race_between_turns(root, tmp_path, make, monkeypatch):
    monkeypatch.setattr("lite_engine.plan.samples._CACHE_BYTES", 1 << 20)
    plan = make_plan(make(12), "cpu")
    assert turns_of(plan).end
    for threads in (2, 4):
        assert any("_turns" in s.variant for s in load(plan, threads=threads).steps())
        run(root, tmp_path, plan, threads)
