"""Images and arrays that are not what they say: refused in one line, before they cost anything."""

from __future__ import annotations

import struct
import subprocess
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from lite_engine import arrays
from lite_engine.arrays import read_arrays
from lite_engine.errors import CalibrationError, LiteError, ShapeError, UsageError
from lite_engine.images import open_image
from lite_engine.model_file import Model
from lite_engine.quantize.samples import read_samples
from lite_engine.runtime.inputs import read_feeds
from lite_workbench.evaluate.formats import arrays as labeled_arrays
from PIL import Image

from tests.small_models import classifier

EPS = b"""%!PS-Adobe-3.0 EPSF-3.0
%%BoundingBox: 0 0 8 8
0 0 8 8 rectfill
showpage
"""


def test_an_image_cannot_start_a_program(tmp_path: Path, monkeypatch) -> None:
    """PIL hands EPS to Ghostscript, whatever the file's name is."""
    started = tmp_path / "started"
    script = tmp_path / "gs"
    script.write_text(f"#!/bin/sh\n: > {started}\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", str(script))
    image = tmp_path / "photo.png"
    image.write_bytes(EPS)
    with Image.open(image) as opened, pytest.raises((OSError, subprocess.CalledProcessError)):
        opened.load()
    assert started.exists(), "PIL alone starts it: the test can see a program"
    started.unlink()
    with pytest.raises(UsageError, match=r"photo\.png: not an image"):
        open_image(image)
    assert not started.exists()


def _png(width: int, height: int) -> bytes:
    """A PNG that says its size and holds one row."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    body = zlib.compress(bytes(width + 1))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [10_000, 30_000])
def test_an_image_too_large_to_decode(side: int, tmp_path: Path, recwarn) -> None:
    """Above PIL's warning (10000²) and above its error (30000²): nothing is allocated."""
    image = tmp_path / "bomb.png"
    image.write_bytes(_png(side, side))
    tracemalloc.start()
    with pytest.raises(UsageError, match=r"bomb\.png: not an image that can be read"):
        open_image(image)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < side * side / 4 and not recwarn.list


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "BMP", "GIF", "WEBP", "PPM"])
def test_every_format_that_is_meant_opens(kind: str, tmp_path: Path) -> None:
    path = tmp_path / f"image.{kind.lower()}"
    Image.fromarray(np.zeros((4, 6, 3), np.uint8)).save(path, kind)
    assert open_image(path).size == (6, 4)


def _zeros(path: Path, name: str, shape: tuple[int, ...]) -> Path:
    """An `.npz` with an array of zeros that was never in memory."""
    header = repr({"descr": "<f4", "fortran_order": False, "shape": shape}).encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
            file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
            for _ in range(int(np.prod(shape)) // (1 << 20)):
                file.write(bytes(4 << 20))
    return path


def test_zeros_without_end_are_refused_where_any_shape_fits(tmp_path, monkeypatch) -> None:
    """Calibration and labeled data take arrays of any number of samples."""
    path = _zeros(tmp_path / "data.npz", "images", (16, 1 << 20))
    monkeypatch.setattr(arrays, "MOST_INFLATED_BYTES", 1 << 25)
    with pytest.raises(UsageError, match=r"data\.npz: not a .npz file .*its arrays need 0 GiB"):
        read_arrays(path)


def _wav(frames: bytes, fmt: bytes = struct.pack("<HHIIHH", 1, 1, 16000, 32000, 2, 16)) -> bytes:
    chunks = b"fmt " + struct.pack("<I", len(fmt)) + fmt
    chunks += b"data" + struct.pack("<I", len(frames) + 7) + frames  # says more than there is
    return b"RIFF" + struct.pack("<I", len(chunks) + 4) + b"WAVE" + chunks


@pytest.mark.parametrize(
    "file, data",
    [
        ("odd.wav", _wav(bytes(7))),
        ("size.wav", b"RIFF\x24\0\0\0WAVEdata\xff\xff\xff\xff"),
        ("chunk.wav", b"RIFF\xff\xff\xff\x7fWAVELIST\xff\xff\xff\xff"),
        ("token.npy", b"\x93NUMPY\x01\x00\x20\x00{'descr': '<f4', 'shape': (1, 5\n\n"),
        ("type.npy", b"\x93NUMPY\x01\x00\x3c\x00" + b"{'descr': [5], 'fortran_order': False,"
         b" 'shape': (1, 5)}".ljust(59) + b"\n"),
        ("secret.npz", None),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)  # fmt: skip
def test_damage_that_its_library_does_not_expect(file: str, data: bytes, tmp_path) -> None:
    path = tmp_path / file
    if data is None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("x.npy", b"")
        data = path.read_bytes().replace(b"PK\x03\x04\x14\0\0", b"PK\x03\x04\x14\0\1")
        data = data.replace(b"PK\x01\x02\x14\x03\x14\0\0", b"PK\x01\x02\x14\x03\x14\0\1")
    path.write_bytes(data)
    model = Model(classifier())
    model.graph.inputs[0].shape = (1, 5)
    with pytest.raises(LiteError) as raised:
        read_feeds(model, [path])
    assert file in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize("name, error", [("x", ShapeError), ("other", UsageError)])
def test_an_array_is_refused_by_its_header(name: str, error: type[LiteError], tmp_path) -> None:
    """256 MiB of zeros in a file of a few hundred kB."""
    path = _zeros(tmp_path / "feeds.npz", name, (64, 1 << 20))
    model = Model(classifier())
    model.graph.inputs[0].name = "x"
    tracemalloc.start()
    with pytest.raises(error, match=r"feeds\.npz: '(x|other)'"):
        read_feeds(model, [path])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20


def test_samples_are_refused_by_their_headers(tmp_path) -> None:
    """The same of calibration, whose arrays hold any number of samples, and of labeled data."""
    graph = classifier()
    calibration = _zeros(tmp_path / "samples.npz", graph.inputs[0].name, (64, 1 << 20))
    labeled = _zeros(tmp_path / "labeled.npz", "images", (64, 1 << 20))
    with zipfile.ZipFile(labeled, "a") as archive, archive.open("labels.npy", "w") as file:
        np.lib.format.write_array(file, np.zeros(63, np.int64))
    tracemalloc.start()
    with pytest.raises(CalibrationError, match=r"samples\.npz: .* has shape .64, 1048576., but"):
        read_samples(calibration, graph)
    with pytest.raises(UsageError, match=r"labeled\.npz: expected as many labels as samples"):
        labeled_arrays.open(labeled, None, None)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16 << 20
