"""`.lite` files: the same back, the same bytes, and nothing hostile gets through."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.backends.opencl.profile import PROFILES
from lite_engine.errors import LiteError, ModelFormatError, ShapeError, VersionError
from lite_engine.files import LITE_MAGIC
from lite_engine.ir import from_text, to_text
from lite_engine.model_file import read_model, with_shapes
from lite_engine.model_file._container import read_container, write_container
from lite_workbench.cli import main

from tests.small_models import attention, classifier, image


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    model = optimize(
        classifier(),
        targets="x86,arm,opencl",
        precision="opencl=fp16",
        metadata={"labels": ["a", "b"], "preprocess": {"mean": [127.5], "std": [127.5]}},
    )
    return model.save(tmp_path / "m.lite")


def test_round_trip(saved: Path) -> None:
    model = read_model(saved)
    again = optimize(classifier())
    assert to_text(model.graph) == to_text(again.graph)
    assert model.targets == ["x86", "arm", "opencl"] and model.precision("opencl") == "fp16"
    assert model.metadata["labels"] == ["a", "b"]
    assert str(model.journal) == str(again.journal)
    feeds = image(model.graph)
    a = Predictor(saved, "reference").run(feeds)
    b = Predictor(again, "reference").run(feeds)
    np.testing.assert_array_equal(a["prob"], b["prob"])


def test_what_travels_is_shown(saved: Path, capsys) -> None:
    assert main(["info", str(saved)]) == 0
    said = capsys.readouterr().out
    assert re.search(r"^  preprocess  mean 127.5; std 127.5$", said, re.M)
    assert re.search(r"^  labels      2: a, b$", said, re.M)


def test_same_input_same_bytes(saved: Path, tmp_path: Path) -> None:
    other = optimize(
        classifier(),
        targets="x86,arm,opencl",
        precision="opencl=fp16",
        metadata={"labels": ["a", "b"], "preprocess": {"mean": [127.5], "std": [127.5]}},
    ).save(tmp_path / "n.lite")
    a, b = saved.read_bytes(), other.read_bytes()
    assert a.replace(b'"name":"m"', b"") == b.replace(b'"name":"n"', b"") or a == b


def test_a_further_target_costs_little(tmp_path: Path) -> None:
    """Weights are kept once: a second target adds its program only."""
    graph = classifier()
    graph.nodes[0].inputs[1].const = np.zeros((16, 3, 3, 3), np.float32)
    one = optimize(graph, targets="x86").save(tmp_path / "one.lite")
    two = optimize(graph, targets="x86,arm,opencl").save(tmp_path / "two.lite")
    a, b = read_container(one), read_container(two)
    assert bytes(a["WEIGHTS"]) == bytes(b["WEIGHTS"])
    assert set(b) - set(a) == {"PROG.arm", *(f"OCL.{i}" for i in range(len(PROFILES)))}


def test_nothing_is_left_when_writing_fails(tmp_path: Path) -> None:
    with pytest.raises(LiteError, match="cannot be written"):
        optimize(attention()).save(tmp_path / "no" / "m.lite")
    assert list(tmp_path.iterdir()) == []


def test_newer_version_is_named(saved: Path) -> None:
    data = bytearray(saved.read_bytes())
    data[len(LITE_MAGIC)] = 99
    saved.write_bytes(data)
    with pytest.raises(VersionError, match="version 99"):
        read_model(saved)


def test_damage_gives_one_clear_error(saved: Path) -> None:
    """Truncation at many lengths, and bit flips: ModelFormatError or an equal model, never a
    crash."""
    good, rng = saved.read_bytes(), random.Random(1)
    for length in [*range(0, 200, 7), *rng.sample(range(len(good)), 30)]:
        saved.write_bytes(good[:length])
        with pytest.raises((ModelFormatError, VersionError)):
            read_model(saved)
    for _ in range(200):
        bad = bytearray(good)
        bad[rng.randrange(len(bad))] ^= 1 << rng.randrange(8)
        saved.write_bytes(bad)
        try:
            read_model(saved)
        except (ModelFormatError, VersionError):
            continue


def test_sections_are_checked_beyond_their_checksums(saved: Path) -> None:
    """Damage inside GRAPH and META with a right checksum still gives ModelFormatError."""
    rng, refused = random.Random(2), 0
    good = {tag: bytes(data) for tag, data in read_container(saved).items()}
    for tag in ("GRAPH", "META", "WINDEX"):
        for _ in range(150):
            bad = bytearray(good[tag])
            bad[rng.randrange(len(bad))] = rng.randrange(256)
            write_container(saved, {**{t: [d] for t, d in good.items()}, tag: [bytes(bad)]})
            try:
                read_model(saved)
            except (ModelFormatError, VersionError):
                refused += 1
    assert refused > 100  # a changed letter of a name is no damage


def test_compressed_sections(tmp_path: Path) -> None:
    """They come back whole; damaged, endless or differently stored ones are refused."""
    import zlib

    text, path = b"a text " * 999, tmp_path / "file"
    write_container(path, {"META": [text], "GRAPH": [text]}, compressed=("META", "GRAPH"))
    assert path.stat().st_size < 300
    assert {tag: bytes(data) for tag, data in read_container(path).items()} == {
        "META": text, "GRAPH": text,
    }  # fmt: skip
    good = path.read_bytes()
    offset, size = (int.from_bytes(good[24 + i * 8 : 32 + i * 8], "little") for i in (0, 1))
    for stream in (good[offset : offset + size][:-5] + bytes(5), bytes(size)):
        bad = bytearray(good)
        bad[offset : offset + size] = stream
        for row in (16, 48):
            bad[row + 24 : row + 28] = zlib.crc32(stream).to_bytes(4, "little")
        path.write_bytes(bad)
        with pytest.raises(ModelFormatError, match=r"damaged|cut off"):
            read_container(path)["META"]
    bad = bytearray(good)
    bad[16 + 28] = 2
    path.write_bytes(bad)
    with pytest.raises(VersionError, match="newer form of storage"):
        read_container(path)


def test_equal_sections_lie_once(tmp_path: Path) -> None:
    data = random.Random(1).randbytes(5000)
    path = write_container(tmp_path / "file", {"PROG.x86": [data], "PROG.arm": [data]})
    assert path.stat().st_size < 5300
    assert [bytes(s) for s in read_container(path).values()] == [data, data]


def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    """Renaming over a device or a pipe would take it away."""
    import os

    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(LiteError, match="not a regular file"):
        optimize(classifier(), targets="x86").save(pipe)
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]


def test_fixed_sizes_are_optimised_for(tmp_path: Path) -> None:
    """`--shape` on a file with open sizes does what it does on the model it came from."""
    open_sizes = from_text(
        'graph "g" {\ninput x: f32[1,2,h,w]\n'
        '"p": p = AveragePool(x) {kernel_shape=[6, 6]}\n"y": y = Relu(p)\noutput y\n}'
    )
    path = optimize(open_sizes, targets=["x86"]).save(tmp_path / "open.lite")
    fixed = with_shapes(read_model(path), {"x": (1, 2, 6, 6)})
    assert [n.op for n in read_model(path).graph.nodes] == ["AveragePool", "Relu"]
    assert [n.op for n in fixed.graph.nodes] == ["GlobalAveragePool", "Relu"]
    with pytest.raises(ShapeError, match="got shape 2×2×6×6"):
        with_shapes(fixed, {"x": (2, 2, 6, 6)})
