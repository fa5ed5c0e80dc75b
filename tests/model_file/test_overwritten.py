"""A model file that another program writes while it is open: one line, never a signal."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, load, optimize, settings
from lite_engine.errors import ModelFormatError
from lite_engine.model_file import open_model
from lite_engine.pipeline.frames import Frames
from PIL import Image

from tests.small_models import classifier, image

pytestmark = pytest.mark.cpu
FEEDS = image(classifier())


@pytest.fixture
def lite_file(tmp_path: Path) -> Path:
    return optimize(classifier(), targets=["x86", "arm"]).save(tmp_path / "m.lite")


def cut(path: Path) -> None:
    """In place: reading a page beyond the new end would be SIGBUS."""
    os.truncate(path, 16)


def touched(path: Path) -> None:
    """The same size, other bytes."""
    with path.open("r+b") as file:
        file.seek(-64, os.SEEK_END)
        file.write(bytes(64))
    os.utime(path, ns=(1, 1))


def stored(path: Path) -> Predictor:
    return Predictor(path)


def planned(path: Path) -> Predictor:
    return Predictor(path, "reference")


@pytest.mark.parametrize("change", [cut, touched])
@pytest.mark.parametrize("opened", [stored, planned])
def test_a_run_is_refused(opened, change, lite_file: Path) -> None:
    predictor = opened(lite_file)
    predictor.run(FEEDS)
    change(lite_file)
    with pytest.raises(ModelFormatError, match=r"m\.lite: overwritten after it was opened"):
        predictor.run(FEEDS)


@pytest.mark.parametrize("change", [cut, touched])
def test_what_is_read_later_is_refused(change, lite_file: Path, tmp_path: Path) -> None:
    unread, read = open_model(lite_file), open_model(lite_file)
    assert read.graph.nodes
    change(lite_file)
    for use in (
        lambda: unread.graph,
        lambda: read.save(tmp_path / "other.lite"),
        lambda: optimize(read.graph),
        lambda: Predictor(read, "reference").run(FEEDS),
    ):
        with pytest.raises(ModelFormatError, match="overwritten"):
            use()


def test_an_imported_model_is_refused(root: Path, tmp_path: Path) -> None:
    path = shutil.copy(root / "notebooks" / "models" / "digits.onnx", tmp_path)
    graph = load(path)
    cut(Path(path))
    with pytest.raises(ModelFormatError, match=r"digits\.onnx: overwritten"):
        optimize(graph)


@pytest.mark.parametrize("change", [cut, touched])
def test_frames_of_a_file_are_refused(change, tmp_path: Path) -> None:
    path, written = tmp_path / "film.mjpeg", io.BytesIO()
    Image.new("RGB", (64, 64)).save(written, "JPEG")
    path.write_bytes(2 * written.getvalue())
    frames = iter(Frames(path))
    assert next(frames) == written.getvalue()
    change(path)
    with pytest.raises(ModelFormatError, match=r"film\.mjpeg: overwritten"):
        next(frames)


def test_a_file_that_is_replaced_does_no_harm(lite_file: Path) -> None:
    """What our own writers do: another file gets the name."""
    predictor = stored(lite_file)
    wanted = predictor.run(FEEDS)
    optimize(classifier(batch=2), targets=["x86"]).save(lite_file)
    assert np.array_equal(predictor.run(FEEDS)["prob"], wanted["prob"])
    lite_file.unlink()
    assert np.array_equal(predictor.run(FEEDS)["prob"], wanted["prob"])


def test_a_file_in_memory_does_not_change(lite_file: Path) -> None:
    wanted = Predictor(lite_file).run(FEEDS)["prob"]
    with settings.override(LITE_MMAP="0"):
        by_setting = Predictor(lite_file)
    by_argument = Predictor(lite_file, mmap=False)
    reads_later = open_model(lite_file, mmap=False)
    cut(lite_file)
    for predictor in (by_setting, by_argument, Predictor(reads_later)):
        np.testing.assert_allclose(predictor.run(FEEDS)["prob"], wanted, rtol=1e-6)
