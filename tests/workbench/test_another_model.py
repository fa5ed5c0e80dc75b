"""Another model is opened while the first is at work: nothing goes on out of sight."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("ipywidgets", reason="pip install 'lite-workbench[lab]'")

import lite_workbench as lw
from lite_engine import settings
from lite_engine.progress import tell
from lite_workbench.jobs import Cancelled, Job

pytestmark = pytest.mark.cpu


def endless(begun: threading.Event) -> None:
    """Work that ends when it is cancelled."""
    for i in range(10**6):
        tell("measuring", i, 10**6)
        begun.set()
        time.sleep(0.001)


def await_end(jobs: list[Job]) -> None:
    for job in jobs:
        with contextlib.suppress(Cancelled):
            job.wait(60)


def test_the_same_model_goes_on(session: lw.Session) -> None:
    bench, begun = lw.Workbench(session, step="Run"), threading.Event()
    job = bench.step("Run").start("Running on x86", lambda: endless(begun))
    assert begun.wait(10)
    bench.load(session)
    assert not job.ended
    job.cancel()
    await_end([job])


def test_what_was_begun_on_the_model_before_is_cancelled_and_said_to_be(
    session: lw.Session,
) -> None:
    bench, other = lw.Workbench(session, step="Run"), lw.open(session.path)
    begun, step = threading.Event(), bench.step("Run")
    jobs = [step.start("Running on x86", lambda: endless(begun)),
            step.begin("Comparing", lambda: None, "Compare")]  # fmt: skip
    assert begun.wait(10)
    bench.load(other)
    await_end(jobs)
    assert [job.state for job in jobs] == ["cancelled", "cancelled"]
    assert bench.top.note == "Running on x86 + Comparing: cancelled" and bench.top.jobs == []


def test_what_python_began_goes_on(session: lw.Session) -> None:
    """Whoever began it has the job."""
    bench, begun = lw.Workbench(session), threading.Event()
    job = session.start("Measuring", lambda: endless(begun), "Profile")
    assert begun.wait(10)
    bench.load(lw.open(session.path))
    assert not job.ended and bench.top.note == ""
    job.cancel()
    await_end([job])


def test_what_was_done_just_before_is_kept(tmp_path: Path) -> None:
    """Not only once nothing has changed for a while: by then it is another model's turn."""
    model = Path(shutil.copy(lw.shipped("digits.onnx"), tmp_path / "first.onnx"))

    async def changed() -> None:
        bench = lw.Workbench(model)
        bench.session.convert(targets=["x86"])
        bench.load(lw.open(lw.shipped("digits.onnx")))
        while True:
            try:
                assert lw.restore(model).targets == ["x86"]
                return
            except lw.LiteError:
                await asyncio.sleep(0.01)

    with settings.override(LITE_CACHE_DIR=str(tmp_path / "cache")):
        asyncio.run(asyncio.wait_for(changed(), 60))
