"""Frames through a pipeline: order, the newest frame wins, errors, rates."""

from __future__ import annotations

import io
import threading

import numpy as np
import pytest
from lite_engine import optimize
from lite_engine.errors import UsageError
from lite_engine.pipeline import Frames, Pipeline, Stream, feed
from lite_workbench.cli import main
from PIL import Image

from tests.small_models import classifier

from .pipes import png

pytestmark = pytest.mark.cpu
rng = np.random.default_rng(3)


@pytest.fixture(scope="module")
def pipeline() -> Pipeline:
    return Pipeline([{"model": optimize(classifier())}], "stream")


def frames(count: int) -> list[bytes]:
    return [png(rng.integers(0, 256, (30, 30, 3), np.uint8)) for _ in range(count)]


class Gated(Pipeline):
    """Its model waits for a gate, and tells when it was reached."""

    def runners(self, backend="auto", **options):
        (run,) = super().runners(backend, **options)
        self.gate, self.reached = threading.Event(), threading.Semaphore(0)

        def gated(array):
            self.reached.release()
            assert self.gate.wait(30)
            return run(array)

        return [gated]


def test_answers_are_those_of_run_and_in_order(pipeline) -> None:
    given = frames(8)
    with Stream(pipeline, waiting=8, workers=3) as stream:
        assert [stream.put(frame) for frame in given] == list(range(8))
        found = [*stream.close()]
    assert [f.number for f in found] == list(range(8))
    assert [f.answer for f in found] == [pipeline.run(frame) for frame in given]
    assert stream.rates.answered == 8 and stream.rates.dropped == 0
    assert stream.rates.per_second > 0 and all(f.latency_ms > 0 for f in found)


def test_the_newest_frame_wins() -> None:
    gated = Gated([{"model": optimize(classifier())}], "gated")
    given = frames(6)
    with Stream(gated, waiting=2, workers=1) as stream:
        stream.put(given[0])
        assert gated.reached.acquire(timeout=30)  # the first one is in the model
        for frame in given[1:]:
            stream.put(frame)
        assert list(stream.ready()) == []  # and nothing waits for it
        gated.gate.set()
        found = stream.close()
    assert [f.number for f in found] == [0, 4, 5]
    assert stream.rates.dropped == 3


def test_without_drop_it_waits_for_room(pipeline) -> None:
    given = frames(12)
    with Stream(pipeline, waiting=1, workers=2) as stream:
        for frame in given:
            stream.put(frame, drop=False)
        found = stream.close()
    assert [f.answer for f in found] == [pipeline.run(frame) for frame in given]
    assert stream.rates.dropped == 0


def test_the_verb_streams_a_folder(tmp_path, capsys) -> None:
    (tmp_path / "frames").mkdir()
    for i, frame in enumerate([*frames(4), b"no image"]):
        (tmp_path / "frames" / f"{i}.png").write_bytes(frame)
    path = str(optimize(classifier()).save(tmp_path / "m.lite"))
    assert main(["pipeline", path, "--stream", str(tmp_path / "frames")]) == 0
    said = capsys.readouterr().out
    assert [f"frame {i}: " in said for i in range(6)] == [True] * 5 + [False]
    assert "frame 4: the image" in said and "5 frames, 0 dropped: " in said
    assert main(["pipeline", path, "--stream", str(tmp_path / "none")]) == 2
    assert "there are no frames" in capsys.readouterr().err


def test_a_later_answer_waits_for_an_earlier_frame() -> None:
    """Two workers are in the model at the same time."""
    gated = Gated([{"model": optimize(classifier())}], "gated")
    with Stream(gated, workers=2) as stream:
        gated.gate.clear()
        for frame in frames(2):
            stream.put(frame)
        gated.gate.set()
        assert [f.number for f in stream.close()] == [0, 1]


def test_a_damaged_frame_is_an_answer_and_a_broken_model_ends_the_stream(pipeline) -> None:
    good = frames(1)[0]
    with Stream(pipeline) as stream:
        stream.put(b"no image")
        stream.put(good)
        bad, fine = stream.close()
        assert bad.answer is None and "image" in str(bad.error)
        assert fine.error is None and fine.answer == pipeline.run(good)
        with pytest.raises(UsageError, match="closed"):
            stream.put(good)

    class Broken(Pipeline):
        def runners(self, backend="auto", **options):
            return [lambda array: 1 / 0]

    broken = Broken([{"model": optimize(classifier())}], "broken")
    with Stream(broken) as stream:
        stream.put(good)
        with pytest.raises(ZeroDivisionError):
            stream.close()


@pytest.mark.parametrize("options", [{"waiting": 0}, {"workers": 65}])
def test_limits_are_refused(pipeline, options) -> None:
    with pytest.raises(UsageError, match="between 1 and 64"):
        Stream(pipeline, **options)


def jpeg(number: int, **options) -> bytes:
    """With an EXIF thumbnail, whose markers are those of a JPEG file."""
    file = io.BytesIO()
    Image.fromarray(rng.integers(0, 256, (24, 31, 3), np.uint8)).save(file, "JPEG", **options)
    data = file.getvalue()
    inner = b"Exif\0\0" + data[:2000] + b"\xff\xd9"
    return data[:2] + b"\xff\xe1" + (len(inner) + 2).to_bytes(2, "big") + inner + data[2:]


def test_frames_of_a_folder_and_of_a_motion_jpeg_file(tmp_path) -> None:
    given = [jpeg(i, progressive=bool(i % 2), restart_marker_blocks=i) for i in range(6)]
    (tmp_path / "frames").mkdir()
    (tmp_path / "frames" / ".hidden").write_bytes(b"no frame")
    for i, data in enumerate(given):
        (tmp_path / "frames" / f"{i}.jpg").write_bytes(data)
    film = tmp_path / "film.mjpeg"
    film.write_bytes(b"head" + b"--boundary\r\n\r\n".join(given) + given[0][:-3])  # one is cut off
    for path in (tmp_path / "frames", film):
        frames = Frames(path)
        assert len(frames) == 6 and list(frames) == given
    damaged = tmp_path / "damaged.mjpeg"
    damaged.write_bytes(b"\xff\xd8\xff\xe1\0\x04abx" + given[1])
    assert list(Frames(damaged)) == [b"\xff\xd8\xff\xe1\0\x04ab", given[1]]
    (tmp_path / "empty").mkdir()
    (tmp_path / "none").write_bytes(b"")
    (tmp_path / "text").write_bytes(b"not a film")
    for name in ("empty", "none", "text", "missing"):
        with pytest.raises(UsageError, match="there are no frames"):
            Frames(tmp_path / name)


def test_a_stream_is_fed_and_the_last_frame_is_drawn(pipeline, tmp_path) -> None:
    for i, data in enumerate(given := frames(5)):
        (tmp_path / f"{i}.png").write_bytes(data)
    with Stream(pipeline) as stream:
        found = list(feed(stream, Frames(tmp_path), draw_s=1000))
    assert [f.answer for f in found] == [pipeline.run(data) for data in given]
    assert [bool(f.drawn) for f in found] == [True, False, False, False, True]
    assert found[-1].drawn == pipeline.drawn()
    assert all(f.times["total_ms"] > 0 for f in found)


def test_a_frame_that_is_dropped_hands_on_that_it_is_drawn() -> None:
    gated = Gated([{"model": optimize(classifier())}], "gated")
    given = frames(4)
    with Stream(gated, waiting=1, workers=1) as stream:
        stream.put(given[0])
        assert gated.reached.acquire(timeout=30)
        stream.put(given[1], draw=True)
        for frame in given[2:]:
            stream.put(frame)
        gated.gate.set()
        first, last = stream.close()
    assert (first.number, first.drawn) == (0, b"") and last.number == 3
    assert last.drawn.startswith(b"\x89PNG")
