"""Frames through a pipeline in its session and in the Run step: rates, shares, what is kept."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipywidgets", reason="pip install 'lite-workbench[lab]'")

import lite_workbench as lw
import numpy as np
from lite_engine.errors import UsageError
from lite_engine.pipeline import Pipeline
from lite_engine.runtime import host_target
from lite_workbench.jobs import Cancelled
from lite_workbench.workbench import states_of
from PIL import Image

from tests.workbench.sessions import click, settle

pytestmark = pytest.mark.cpu


def digit(number: int, form: str) -> bytes:
    with np.load(lw.shipped("digits_held_back.npz")) as held:
        image = held["images"][number]
    file = io.BytesIO()
    Image.fromarray(image.reshape(image.shape[:2])).save(file, form)
    return file.getvalue()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Any) -> Path:
    """Two stages, seven frames of which one is damaged, and four as Motion JPEG."""
    monkeypatch.chdir(tmp_path)
    stages = [{"model": str(lw.shipped("digits.onnx")), "name": name} for name in ("one", "two")]
    (tmp_path / "two.json").write_text(json.dumps({"name": "two", "stages": stages}))
    (tmp_path / "frames").mkdir()
    for i in range(7):
        data = b"no image" if i == 3 else digit(i, "PNG")
        (tmp_path / "frames" / f"{i}.png").write_bytes(data)
    (tmp_path / "film.mjpeg").write_bytes(b"".join(digit(i, "JPEG") for i in range(4)))
    return tmp_path


def test_a_session_streams_a_folder_and_motion_jpeg(folder: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("lite_workbench.pipelines.streaming._TOLD_S", 0)
    session: Any = lw.open("two.json")
    told: list[Any] = []
    session.observe(lambda _, made: told.append(made), "stream")
    made = session.stream("frames", host_target())
    assert [m.answered for m in told] == [1, 2, 3, 4, 5, 6, 7, 7]
    assert told[-1] == made == session.streamed
    assert (made.total, made.answered, made.dropped, made.failed) == (7, 7, 0, 1)
    assert 0 < made.median_ms <= made.worst_ms and made.per_second > 0
    alone = Pipeline.open("two.json")
    assert made.number == 6 and made.answer == alone.run("frames/6.png", host_target())
    assert made.drawn == alone.drawn()
    assert [(s["name"], s["pictures"]) for s in made.times["stages"]] == [
        ("one", "1"),
        ("two", "1"),
    ]
    assert sum(s["ms"] for s in made.times["stages"]) < made.times["total_ms"]
    assert "drawn" not in repr(made)
    film = session.stream(folder / "film.mjpeg", host_target(), fps=500)
    assert film.answered + film.dropped == film.total == 4 and film.number == 3
    assert session.code[-1] == (
        f"streamed = session.stream({str(folder / 'film.mjpeg')!r}, backend={host_target()!r}, "
        "fps=500)"
    )
    with pytest.raises(UsageError, match="there are no frames"):
        session.stream("none")
    assert session.streamed == film


def test_what_there_was_stays_when_it_is_cancelled(folder: Path) -> None:
    session: Any = lw.open("two.json")
    answered, stopped = threading.Event(), threading.Event()
    progress = session.progress

    def held(done: int, total: int) -> None:
        answered.set()
        assert stopped.wait(30)
        progress(done, total)

    session.progress = held
    job = session.start("stream", lambda: session.stream("frames", host_target()))
    assert answered.wait(30)
    job.cancel()
    stopped.set()
    with pytest.raises(Cancelled):
        job.wait(30)
    assert session.streamed.answered == 1 and session.streamed.note == "1 of 7 frames"


def test_the_run_step_streams(folder: Path) -> None:
    bench = lw.Workbench("two.json")
    step: Any = bench.step("Run")
    assert step.rates.layout.display == "none" and step.frames.layout.display == "none"
    assert [b["id"] for b in step.header.buttons] == ["other", "stream", "run"]
    click(step.header, "stream")
    assert step.frames.layout.display is None
    for fps, why in (("x", "not a number"), ("0", "must be above 0 and at most 1000")):
        click(step.frames, "submit", values={"frames": "none", "fps": fps})
        assert step.frames.errors == {"frames": "no such file or folder", "fps": why}
    click(step.frames, "submit", values={"frames": "frames", "fps": ""})
    settle(bench.session)
    assert step.frames.layout.display == "none" and not step.pending
    assert step.rates.title.startswith("frames, float on ")
    assert step.rates.note == "every frame answered"
    assert list(step.rates.rows[0].values())[3:] == ["7", "0", "1"]
    assert [row["0"] for row in step.shares.rows] == ["decode", "one", "two", "total"]
    assert step.frame.title == "Frame 6 of frames" and step.frame.image[:4] == b"\x89PNG"
    assert states_of(bench.session)["Run"][1].endswith("frames/s")
    click(step.frames, "submit", values={"frames": "film.mjpeg", "fps": "500"})
    settle(bench.session)
    assert step.rates.note == "sent at 500 frames/s, the newest wins"
    again: Any = lw.Workbench(bench.session).step("Run")  # the last result is there
    assert again.rates.title == step.rates.title
