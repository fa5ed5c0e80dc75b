"""`lite_run --stream`: frames of a folder and of standard input, their order, what is dropped."""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from lite_engine import optimize
from lite_engine._native import runner_path
from lite_engine.pipeline import Pipeline
from PIL import Image

from tests.small_models import classifier

pytestmark = pytest.mark.cpu
rng = np.random.default_rng(8)


def jpeg(number: int, **options) -> bytes:
    """With an EXIF thumbnail, whose markers are those of a JPEG file."""
    file = io.BytesIO()
    image = Image.fromarray(rng.integers(0, 256, (24, 31, 3), np.uint8))
    image.save(file, "JPEG", **options)
    data = file.getvalue()
    inner = b"Exif\0\0" + data[:2000] + b"\xff\xd9"
    return data[:2] + b"\xff\xe1" + (len(inner) + 2).to_bytes(2, "big") + inner + data[2:]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    file = optimize(classifier(), targets=["x86", "arm"])
    return Pipeline([{"model": file, "name": "m"}], "stream").save(
        tmp_path_factory.mktemp("stream") / "stream.lite"
    )


@pytest.fixture(scope="module")
def frames(tmp_path_factory) -> list[Path]:
    folder = tmp_path_factory.mktemp("frames")
    paths = [folder / f"{i:03}.jpg" for i in range(9)]
    for i, path in enumerate(paths):
        path.write_bytes(jpeg(i, progressive=bool(i % 2), quality=40 + 5 * i))
    return paths


def streamed(*words: object, prefix=(), runner=None, stdin: bytes | None = None):
    """(answers, what was told on standard error)"""
    done = subprocess.run(
        [*prefix, str(runner or runner_path()), *map(str, words)], input=stdin,
        capture_output=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode()


def test_every_frame_of_a_folder_in_order(model: Path, frames: list[Path], qemu) -> None:
    pipeline = Pipeline.open(model)
    want = [pipeline.run(path)["answers"]["m"]["items"][0] for path in frames]
    for prefix, runner in (((), None), (qemu, runner_path("aarch64"))):
        got, told = streamed(model, "--stream", frames[0].parent, prefix=prefix, runner=runner)
        assert [line["frame"] for line in got] == list(range(9))
        best = [line["answer"]["answers"]["m"]["items"][0] for line in got]
        assert [b["label"] for b in best] == [w["label"] for w in want]
        assert [b["score"] for b in best] == pytest.approx([w["score"] for w in want], rel=1e-4)
        assert all(line["latency_ms"] > 0 for line in got)
        assert "9 frames, 0 dropped: " in told and "frames/s, latency " in told


def test_motion_jpeg_on_standard_input(model: Path, frames: list[Path]) -> None:
    """Whatever lies between the files is passed over; what was not dropped has its own answer."""
    pipeline = Pipeline.open(model)
    stdin = b"--boundary\r\n\r\n".join(path.read_bytes() for path in frames)
    got, told = streamed(model, "--stream", "-", stdin=b"header" + stdin + b"\xff")
    numbers = [line["frame"] for line in got]
    assert numbers == sorted(set(numbers)) and numbers[-1] == 8  # the newest one always
    for line in got:
        want = pipeline.run(frames[line["frame"]])["answers"]
        assert line["answer"]["answers"]["m"]["items"][0]["label"] == want["m"]["items"][0]["label"]
    assert f"{len(got)} frames, {9 - len(got)} dropped" in told


def test_a_rate_drops_what_is_too_fast(model: Path, frames: list[Path], tmp_path: Path) -> None:
    for i in range(200):
        (tmp_path / f"{i:04}.jpg").write_bytes(frames[i % 9].read_bytes())
    got, told = streamed(model, "--stream", tmp_path, "--fps", 100000)
    assert got[-1]["frame"] == 199 and len(got) < 200
    assert f"{len(got)} frames, {200 - len(got)} dropped" in told


def test_a_damaged_frame_is_an_answer(model: Path, frames: list[Path], tmp_path: Path) -> None:
    (tmp_path / "0.jpg").write_bytes(b"no image")
    (tmp_path / "1.jpg").write_bytes(frames[0].read_bytes())
    got, _ = streamed(model, "--stream", tmp_path)
    assert "image" in got[0]["error"] and "answer" in got[1]


def test_what_cannot_be_streamed_is_one_line(model: Path, tmp_path: Path) -> None:
    single = optimize(classifier(), targets=["x86"]).save(tmp_path / "single.lite")
    (tmp_path / "empty").mkdir()
    for words, why in (
        ((model, "--stream", tmp_path / "none"), "is not a folder"),
        ((model, "--stream", tmp_path / "empty"), "has no frames"),
        ((single, "--stream", tmp_path), "a single model"),
    ):
        done = subprocess.run(
            [str(runner_path()), *map(str, words)], capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 1 and why in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.tsan
@pytest.mark.slow
@pytest.mark.parametrize("words", [(), ("--threads", "4"), ("--fps", "100000")], ids=str)
def test_no_race(model: Path, frames: list[Path], root: Path, words: tuple[str, ...]) -> None:
    """Queue, workers and answers under ThreadSanitizer."""
    done = subprocess.run(
        [str(root / "build/tsan/lite_run"), str(model), "--stream", str(frames[0].parent), *words],
        capture_output=True, text=True, timeout=300, env={"TSAN_OPTIONS": "halt_on_error=1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[:3000]
    assert json.loads(done.stdout.splitlines()[-1])["frame"] == len(frames) - 1
