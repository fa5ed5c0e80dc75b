"""Jobs: they run one after the other, tell how far they are, and can be cancelled."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from typing import Any

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import LiteError
from lite_engine.errors import UsageError
from lite_workbench._observe import Later
from lite_workbench.jobs import Cancelled, Job, Work

from tests.workbench.sessions import opened

pytestmark = pytest.mark.cpu


@pytest.fixture
def session() -> lw.Session:
    return opened("x86", "arm", "opencl")


def test_a_job_tells_and_can_be_cancelled(session: lw.Session) -> None:
    states: list[tuple[str, int]] = []
    session.observe(lambda _, job: states.append((job.state, job.done)), "job")

    def endless() -> None:
        for i in range(10**9):
            session.progress(i, 10**9)

    job = session.start("Counting", endless)
    job.cancel()
    with pytest.raises(Cancelled):
        job.wait(10)
    assert states[0] == ("running", 0) and states[-1][0] == "cancelled"
    assert session.start("Short", lambda: 41).wait(10) == 41


def test_work_that_exits_has_failed_and_the_next_begins() -> None:
    """An exit of a thread ends nothing else, and would leave the queue waiting for ever."""
    states: list[tuple[str, str]] = []
    work = Work(lambda job: states.append((job.title, job.state)))
    first = work.start("Leaving", lambda: sys.exit("no more"))
    second = work.start("Short", lambda: 42)
    with pytest.raises(LiteError, match=r"Leaving stopped \(SystemExit: no more"):
        first.wait(10)
    assert second.wait(10) == 42
    assert ("Leaving", "failed") in states and work.jobs == []


@pytest.mark.parametrize("about", ["Quantize", "Deploy"])
def test_a_saved_notebook_shows_no_work_under_way(session: lw.Session, about: str) -> None:
    """Neither the job nor its step's state: nothing goes on there."""
    pytest.importorskip("ipywidgets", reason="pip install 'lite-workbench[lab]'")
    go = threading.Event()
    bench = lw.Workbench(session, step=about)
    before = bench.static_html()
    job = session.start("Counting", lambda: go.wait(10), about)
    try:
        bench.step(about)._show_jobs()
        assert [j["title"] for j in bench.step(about).running.jobs] == ["Counting"]
        now = bench.static_html()
        assert "running" in [s["state"] for s in bench.stepper.steps], "the page shows it"
        # What stands in place of the chart until there is one gives way to the work.
        idle = "<p>Not quantized yet</p>"
        assert now.replace(idle, "") == before.replace(idle, "") and "Counting" not in now
    finally:
        go.set()
        job.wait(10)


def test_jobs_run_one_after_the_other(session: lw.Session) -> None:
    """The second waits for the first; one that waits can be cancelled and never begins; one that
    fails does not hold up the next."""
    go, order = threading.Event(), []
    told: list[tuple[str, str]] = []
    session.observe(lambda _, job: told.append((job.title, job.state)), "job")

    def fail() -> None:
        order.append("second")
        raise UsageError("no")

    first = session.start("First", lambda: (go.wait(10), order.append("first")))
    second, third = session.start("Second", fail), session.start("Third", lambda: order.append("3"))
    fourth = session.start("Fourth", lambda: order.append("fourth"))
    assert session.jobs == [first, second, third, fourth] and session.job is first
    third.cancel()
    with pytest.raises(Cancelled, match="before it began"):
        third.wait(10)
    assert session.jobs == [first, second, fourth]
    go.set()
    fourth.wait(10)
    assert order == ["first", "second", "fourth"] and second.state == "failed"
    assert session.jobs == [] and session.job is fourth
    assert told[:3] == [("First", "running"), ("Second", "waiting"), ("Third", "waiting")]
    assert ("Third", "running") not in told


def test_what_is_left_is_of_what_is_counted_now(monkeypatch: Any) -> None:
    """A second count says nothing of the first's pace, and no count before one more was done."""
    now = [100.0]
    monkeypatch.setattr("lite_workbench.jobs.time.monotonic", lambda: now[0])
    job = Job("Counting", lambda _: None, lambda _: None)
    left = []
    for seconds, done, total in [(7, 1, 4), (2, 2, 4), (2, 3, 4), (90, 0, 0), (50, 1, 100),
                                 (1, 2, 100), (1, 3, 100), (30, 0, 5), (4, 1, 5)]:  # fmt: skip
        now[0] += seconds
        job.progress(done, total)
        left.append(job.left_s)
    assert left == [None, 4, 2, None, None, 98, 97, None, 16]


def test_a_full_bar_is_not_the_end(session: lw.Session) -> None:
    """What was counted is done, and the work goes on: the line says so."""
    counted, go = threading.Event(), threading.Event()

    def work() -> None:
        session.progress(4, 4)
        counted.set()
        go.wait(10)

    job = session.start("Comparing", work)
    assert counted.wait(10)
    assert (job.to_dict()["done"], job.to_dict()["left"]) == (4, "finishing")
    go.set()
    job.wait(10)
    assert job.to_dict()["left"] == ""


def test_a_failed_job_keeps_its_error(session: lw.Session) -> None:
    errors: list = []
    session.observe(lambda _, error: errors.append(error), "error")
    job = session.start("Failing", lambda: session.use("nothing"))
    with pytest.raises(LiteError, match="no version"):
        job.wait(10)
    assert isinstance(errors[0], LiteError)


def test_quantizing_can_be_cancelled_after_its_last_sample(session: lw.Session) -> None:
    images = np.load(lw.shipped("digits_held_back.npz"))["images"][:4]
    totals: list[int] = []

    def told(_: str, job: Any) -> None:
        totals.append(job.total)
        if max(totals) and not job.total:
            job.cancel()

    session.observe(told, "job")
    with pytest.raises(Cancelled, match=r"^Quantizing was cancelled$"):
        session.start("Quantizing", lambda: session.quantize(images, limit=4)).wait(30)
    assert list(session.versions) == ["float"] and session.quantization is None


def test_profile_can_be_cancelled(session: lw.Session) -> None:
    session.set_input(lw.shipped("digits.png"))
    job = session.start("Profiling", lambda: session.profile(backend="x86", runs=10**6))
    job.cancel()
    with pytest.raises(Cancelled):
        job.wait(30)
    assert session.profile(backend="x86", runs=2).runs == 2


def test_what_is_asked_for_later_comes_though_another_thread_asked() -> None:
    """A loop that sleeps does not look at a timer that another thread has set; of a burst one."""
    called, came = [], threading.Event()

    async def wait() -> None:
        loop, end = asyncio.get_running_loop(), asyncio.Event()
        later = Later(0.01, lambda: (called.append("now"), came.set()))

        def ask() -> None:
            time.sleep(0.05)  # the loop sleeps now
            for _ in range(3):
                later.ask()
            called.append("in time" if came.wait(5) else "late")
            loop.call_soon_threadsafe(end.set)

        loop.call_later(0.01, threading.Thread(target=ask).start)
        await end.wait()

    asyncio.run(wait())
    assert called == ["now", "in time"]
