"""One Predictor and several threads, and a fork in the middle of their runs."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, optimize

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
