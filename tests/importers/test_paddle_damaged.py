"""Damaged and hostile Paddle and naive buffer files give one of our errors: no crash, no hang.

Cuts at every structure's border, seeded byte flips, and hand-made lies about sizes. Importing stays
within a bounded time and memory because every size is checked against the file's own length.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from lite_engine.errors import LiteError, ModelFormatError, VersionError
from lite_engine.importers import load
from lite_engine.importers.paddle.params import read_record
from lite_engine.model_file.naive_buffer import write_nb

from tests.importers.paddle_files import PaddleProgram, chunk, number, record, small_network

FLIPS = 80


def outcome(path: Path) -> str:
    """Reads a file that may be damaged; anything but a LiteError fails the test."""
    try:
        load(path)
    except LiteError as error:
        assert "\n" not in str(error)
        return type(error).__name__
    return "read"


def flipped(data: bytes, seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 6))):
        out[int(rng.integers(len(out)))] = int(rng.integers(256))
    return bytes(out)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return small_network().save(tmp_path)


@pytest.fixture
def nb(saved: Path, tmp_path: Path) -> Path:
    return write_nb(load(saved), tmp_path / "m.nb")


def test_flipped_programs(saved: Path) -> None:
    data = saved.read_bytes()
    seen = set()
    for seed in range(FLIPS):
        saved.write_bytes(flipped(data, seed))
        seen.add(outcome(saved))
    assert "ModelFormatError" in seen


def test_flipped_parameters(saved: Path) -> None:
    path = saved.with_suffix(".pdiparams")
    data = path.read_bytes()
    for seed in range(FLIPS):
        path.write_bytes(flipped(data, seed))
        outcome(saved)


def test_flipped_naive_buffers(nb: Path) -> None:
    data = nb.read_bytes()
    head = len(data) // 2
    for seed in range(FLIPS):
        nb.write_bytes(flipped(data[:head], seed) + data[head:])
        outcome(nb)


@pytest.mark.parametrize("kind", ["program", "parameters", "nb"])
def test_cut_files(saved: Path, nb: Path, kind: str) -> None:
    cut = {"program": saved, "parameters": saved.with_suffix(".pdiparams"), "nb": nb}[kind]
    data = cut.read_bytes()
    for size in range(0, len(data) - 1, max(1, len(data) // 60)):
        cut.write_bytes(data[:size])
        assert outcome(nb if kind == "nb" else saved) != "read"


def _lying_record(**change: int) -> bytes:
    body = number(1, 5) + number(2, change.get("dim", 4))
    return struct.pack(
        "<IQIi", change.get("version", 0), change.get("levels", 0), 0, change.get("size", len(body))
    ) + body + b"\0" * 16  # fmt: skip


@pytest.mark.parametrize("change", [
    {"dim": 1 << 62}, {"dim": -1}, {"levels": 1 << 63}, {"size": 1 << 30}, {"size": -4},
    {"version": 7},
])  # fmt: skip
def test_records_that_lie(change: dict[str, int]) -> None:
    with pytest.raises(ModelFormatError):
        read_record(memoryview(_lying_record(**change)), 0, "w")


def test_honest_record() -> None:
    array, at = read_record(memoryview(record(np.ones((2, 3), np.float32))), 0, "w")
    assert array.shape == (2, 3) and at == len(record(np.ones((2, 3), np.float32)))


def test_parameter_names_stay_in_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "secret").write_bytes(record(np.ones(3, np.float32)))
    p = PaddleProgram()
    p.feed("x", (3,))
    p.weight("../secret", np.ones(3, np.float32))
    p.op("elementwise_add", {"X": "x", "Y": "../secret"}, {"Out": "y"})
    p.fetch("y")
    (folder / "__model__").write_bytes(p.encode())
    with pytest.raises(ModelFormatError, match="outside the model's folder"):
        load(folder)


def test_deep_nesting(tmp_path: Path) -> None:
    body = b""
    for _ in range(400):
        body = chunk(1, body)
    path = tmp_path / "deep.pdmodel"
    path.write_bytes(chunk(1, number(1, 0) + number(2, -1) + body))
    assert outcome(path) == "ModelFormatError"


def test_meta_versions_to_come(nb: Path) -> None:
    data = nb.read_bytes()
    nb.write_bytes(struct.pack("<H", 3) + data[2:])
    with pytest.raises(VersionError, match="meta version 3"):
        load(nb)


def _pir(change: Callable[[dict], None] = lambda tree: None) -> str:
    kind = {"#": "0.t_dtensor", "D": [{"#": "0.t_f32"}, [2], "NCHW", [], 0]}
    text = {"#": "0.a_str"}
    ops = [
        {"#": "1.data", "I": [], "O": [{"%": 1, "TT": kind}],
         "A": [{"N": "name", "AT": {**text, "D": "x"}}]},
        {"#": "1.relu", "I": [{"%": 1}], "O": [{"%": 2, "TT": kind}], "A": []},
        {"#": "1.fetch", "I": [{"%": 2}], "O": [{"%": 3, "TT": kind}],
         "A": [{"N": "name", "AT": {**text, "D": "y"}},
               {"N": "col", "AT": {"#": "0.a_i32", "D": 0}}]},
    ]  # fmt: skip
    tree = {"base_code": {"magic": "pir", "version": 1},
            "program": {"regions": [{"blocks": [{"ops": ops}]}]}}  # fmt: skip
    change(tree)
    return json.dumps(tree)


def _ops(tree: dict) -> list[dict]:
    return tree["program"]["regions"][0]["blocks"][0]["ops"]


@pytest.mark.parametrize("change", [
    lambda t: t["program"].pop("regions"),
    lambda t: t["program"].update(regions=[]),
    lambda t: _ops(t)[1].update({"I": [{"%": 77}]}),
    lambda t: _ops(t)[1].update({"O": 5}),
    lambda t: _ops(t)[0].update({"A": []}),
    lambda t: _ops(t)[2].update({"I": []}),
    lambda t: _ops(t)[1].update({"#": "1.no_such_operator"}),
    lambda t: _ops(t)[1].update({"regions": [{"blocks": []}]}),
    lambda t: _ops(t)[1].update({"#": "1.if", "regions": [{"blocks": []}]}),
    lambda t: _ops(t)[1].update({"#": "1.while", "regions": [{"blocks": [{"ops": 3}]}]}),
])  # fmt: skip
def test_damaged_pir(tmp_path: Path, change: Callable[[dict], None]) -> None:
    path = tmp_path / "inference.json"
    path.write_text(_pir())
    assert outcome(path) == "read"
    path.write_text(_pir(change))
    assert outcome(path) in ("ModelFormatError", "UnsupportedOperatorError")


def test_cut_pir(tmp_path: Path) -> None:
    path = tmp_path / "inference.json"
    path.write_text(_pir()[:-20])
    assert outcome(path) == "ModelFormatError"
