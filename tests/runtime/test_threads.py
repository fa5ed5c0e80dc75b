"""One Predictor and several threads, and a fork in the middle of their runs."""

from __future__ import annotations

import os
import signal
import threading
import time
import weakref
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, backends, optimize
from lite_engine.runtime import forks

from tests.small_models import classifier, image

pytestmark = pytest.mark.cpu


@pytest.fixture
def shared(tmp_path: Path) -> Predictor:
    return Predictor(optimize(classifier()).save(tmp_path / "m.lite"), threads=2)


def _inputs(predictor: Predictor) -> tuple[list[dict], list[np.ndarray]]:
    """Four different pictures, and what the reference makes of each."""
    first = image(predictor.graph)
    feeds = [{name: array * factor for name, array in first.items()} for factor in (1, -1, 2, 3)]
    reference = Predictor(predictor.model, "reference")
    return feeds, [reference.run(f)["prob"] for f in feeds]


def test_threads_take_turns(shared: Predictor) -> None:
    feeds, wanted = _inputs(shared)
    wrong: list[str] = []

    def work(number: int) -> None:
        for i in range(100):
            at = i * number % 4
            try:
                got = shared.run(feeds[at], taps=["pool"] if i == 50 else ())["prob"]
                np.testing.assert_allclose(got, wanted[at], rtol=1e-4, atol=1e-6)
            except Exception as error:  # noqa: BLE001 - told by the thread that asserts
                wrong.append(str(error))

    workers = [threading.Thread(target=work, args=(n,)) for n in (1, 2, 3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong, f"{len(wrong)} of 300: {wrong[0]}"


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_plans_are_forgotten_while_threads_run(shared: Predictor) -> None:
    """They are made again; before, the predictor was of no use afterwards."""
    feeds, wanted = _inputs(shared)
    wrong: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(40):
                at = (i + number) % 4
                got = shared.run(feeds[at], taps=["pool"])["prob"]
                np.testing.assert_allclose(got, wanted[at], rtol=1e-4, atol=1e-6)
                if number == 0:
                    shared.forget_plans()
        except Exception as error:  # noqa: BLE001 - told by the thread that asserts
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_fork_while_another_thread_runs(shared: Predictor) -> None:
    feeds, wanted = _inputs(shared)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            shared.run(feeds[0])

    worker = threading.Thread(target=work)
    worker.start()
    try:
        for _ in range(10):
            if (child := os.fork()) == 0:
                signal.alarm(10)  # a child that waits for a thread it has not ends here
                good = np.allclose(shared.run(feeds[1])["prob"], wanted[1], rtol=1e-4, atol=1e-6)
                os._exit(0 if good else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        worker.join()


class Turn:
    """A lock that says what was done with it; taking it may begin something else."""

    def __init__(self, name: str, told: list[str], meanwhile: Turn | None = None) -> None:
        self.name, self.told, self.meanwhile = name, told, meanwhile

    def acquire(self) -> None:
        self.told.append(f"take {self.name}")
        if self.meanwhile:  # another thread, on which this one waits, opens a Predictor
            worker = threading.Thread(target=forks.watch, args=(self.meanwhile,))
            worker.start()
            worker.join(timeout=5)
            assert not worker.is_alive(), "opening a Predictor waits for the fork that waits for it"

    def release(self) -> None:
        self.told.append(f"give {self.name}")


def test_a_fork_waits_for_predictors_opened_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "_turns", weakref.WeakSet())
    told: list[str] = []
    second = Turn("second", told)
    first = Turn("first", told, meanwhile=second)
    forks.watch(first)
    forks._before_fork()
    try:
        assert told == ["take first", "take second"]
    finally:
        forks._after_fork()
    assert sorted(told[2:]) == ["give first", "give second"]


def test_threads_that_ask_at_once_get_one_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_made", {})
    made: list[object] = []
    both_wait = threading.Barrier(2)

    class Slow:
        def __init__(self) -> None:
            made.append(self)
            time.sleep(0.05)  # a thread that may come in does so now

    from lite_engine.backends import reference

    monkeypatch.setattr(reference, "ReferenceBackend", Slow)

    def ask() -> None:
        both_wait.wait()
        backends.get_backend("reference")

    workers = [threading.Thread(target=ask) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(made) == 1
