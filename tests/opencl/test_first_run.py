"""The first run of a model: it says how far it is, can be cancelled, and can be made ahead."""

from __future__ import annotations

import io
import json

import pytest
from lite_engine import Predictor, optimize
from lite_engine.backends.opencl.device import choose, open_device
from lite_engine.progress import listening, tell
from lite_engine.runtime.inputs import random_feeds
from lite_workbench.cli import main
from lite_workbench.jobs import Cancelled, Job, Work
from lite_workbench.progress_line import ProgressLine

from tests.small_models import Builder


def graph(alpha: float):
    """Two layers whose program nobody else has: a function with its own constant."""
    b = Builder((1, 16, 6, 6))
    y = b.add("LeakyRelu", b.x, name="one", alpha=alpha)
    return b.done(b.add("LeakyRelu", y, name="other", alpha=2 * alpha))


@pytest.mark.opencl
def test_it_says_how_far_it_is() -> None:
    told: list[tuple[str, int, int]] = []
    made = graph(0.0123)
    predictor = Predictor(made, "opencl")
    with listening(lambda *event: told.append(event)):
        predictor.run(random_feeds(made))
        compiled = [(done, total) for what, done, total in told if what == "compiling kernels"]
        first = [(done, total) for what, done, total in told if what == "first run of layers"]
        assert compiled == [(1, 2), (2, 2)]
        steps = len(predictor.plan().steps)
        assert first == [(i + 1, steps) for i in range(steps)]
        told.clear()
        predictor.run(random_feeds(made))
        Predictor(made, "opencl").execution()  # this process has the programs
    assert not told


@pytest.mark.opencl
def test_it_can_be_cancelled() -> None:
    def cancel(what: str, done: int, total: int) -> None:
        raise Cancelled("enough")

    made = graph(0.0456)
    predictor = Predictor(made, "opencl")
    with listening(cancel), pytest.raises(Cancelled):
        predictor.run(random_feeds(made))
    assert set(predictor.run(random_feeds(made))) == set(predictor.output_names)


def test_a_job_shows_what_the_engine_does() -> None:
    told: list[dict] = []

    def work(job: Job) -> None:
        job._told -= 1  # changes are shown ten times a second at most
        job.engine_progress("compiling kernels", 3, 12)

    job = Job("Running", work, lambda job: told.append(job.to_dict()))
    assert job.claim()
    job.begin()
    job.wait()
    shown = {(t["title"], t["state"], t["done"], t["total"]) for t in told}
    assert ("Running: compiling kernels", "running", 3, 12) in shown
    job.engine_progress("compiling kernels", 12, 12)
    assert job.to_dict()["title"] == "Running"


def test_a_terminal_shows_one_line() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for stream, wanted in (
        (Terminal(), "\rcompiling kernels: 1 of 2\x1b[K\r\x1b[K"), (io.StringIO(), ""),
    ):  # fmt: skip
        line = ProgressLine(stream)
        with listening(line):
            tell("compiling kernels", 1, 2)
            tell("compiling kernels", 2, 2)
        line.wipe()
        assert stream.getvalue() == wanted
    tell("nobody listens", 1, 2)


def test_a_session_listens() -> None:
    work = Work(lambda job: None)
    job = work.start("Running", lambda: tell("compiling kernels", 3, 12))
    job.wait()
    assert (job.doing, job.done, job.total) == ("compiling kernels", 3, 12)
    tell("compiling kernels", 4, 12)  # in another thread, and after the work
    assert job.done == 3


@pytest.mark.opencl
def test_the_next_process_finds_the_kernels(tmp_path, monkeypatch, capsys) -> None:
    """`lite convert --warm`, and then a run in this process that builds no other program."""
    source = optimize(graph(0.0987), targets=["opencl"]).save(tmp_path / "source.lite")
    out = tmp_path / "m.lite"
    words = ["convert", str(source), "-o", str(out), "--targets", "opencl", "--warm"]
    assert main([*words, "--json", "-"]) == 0
    warmed = json.loads(capsys.readouterr().out)["warmed"]
    assert warmed["shares"]["opencl"]["layers"] == 2
    assert warmed["device"].startswith(choose().name)
    before = open_device(choose()).programs.compiled
    assert main(["run", str(out), "--backend", "opencl"]) == 0
    assert open_device(choose()).programs.compiled == before
    assert main([*words]) == 0 and "2 layers ran on OpenCL" in capsys.readouterr().out


def test_warm_is_for_opencl(tmp_path, capsys) -> None:
    source = optimize(graph(0.5), targets=["x86"]).save(tmp_path / "source.lite")
    assert (
        main(["convert", str(source), "-o", str(tmp_path / "m.lite"), "--targets", "x86", "--warm"])
        == 2
    )
    assert "add opencl to --targets" in capsys.readouterr().err
