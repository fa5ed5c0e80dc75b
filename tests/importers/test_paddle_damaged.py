"""Damaged and hostile Paddle and naive buffer files give one of our errors: no crash, no hang.

Cuts everywhere and hand-made lies about sizes; random damage is in test_damaged_files.py. Importing
stays within bounded time and memory because every size is checked against the file's own length.
"""

from __future__ import annotations

import json
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from lite_engine.errors import LiteError, ModelFormatError, VersionError
from lite_engine.importers import load
from lite_engine.importers.paddle.params import read_record
from lite_engine.model_file.naive_buffer import write_nb

from tests.importers import tiny_pir
from tests.importers.paddle_files import PaddleProgram, record, small_network
from tests.importers.wire import field


def outcome(path: Path) -> str:
    """Reads a file that may be damaged; anything but a LiteError fails the test."""
    try:
        load(path)
    except LiteError as error:
        assert "\n" not in str(error)
        return type(error).__name__
    return "read"


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return small_network().save(tmp_path)


@pytest.fixture
def nb(saved: Path, tmp_path: Path) -> Path:
    return write_nb(load(saved), tmp_path / "m.nb")


@pytest.mark.parametrize("kind", ["program", "parameters", "nb"])
def test_cut_files(saved: Path, nb: Path, kind: str) -> None:
    cut = {"program": saved, "parameters": saved.with_suffix(".pdiparams"), "nb": nb}[kind]
    data = cut.read_bytes()
    for size in range(0, len(data) - 1, max(1, len(data) // 60)):
        cut.write_bytes(data[:size])
        assert outcome(nb if kind == "nb" else saved) != "read"


def _lying_record(**change: int) -> bytes:
    body = field(1, 5) + field(2, change.get("dim", 4))
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


def test_levels_of_detail_are_passed_over() -> None:
    """Each has its size in bytes, and its offsets."""
    body = field(1, 5) + field(2, 2)
    levels = struct.pack("<QQQQQ", 2, 16, 1, 2, 0)
    data = struct.pack("<I", 0) + levels + struct.pack("<Ii", 0, len(body)) + body
    array, at = read_record(memoryview(data + np.float32([3, 4]).tobytes()), 0, "w")
    assert array.tolist() == [3, 4] and at == len(data) + 8


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
        body = field(1, body)
    path = tmp_path / "deep.pdmodel"
    path.write_bytes(field(1, field(1, 0) + field(2, -1) + body))
    assert outcome(path) == "ModelFormatError"


def test_meta_versions_to_come(nb: Path) -> None:
    data = nb.read_bytes()
    nb.write_bytes(struct.pack("<H", 3) + data[2:])
    with pytest.raises(VersionError, match="meta version 3"):
        load(nb)


def _pir(change: Callable[[list[dict]], None]) -> str:
    ops = tiny_pir.small_ops()
    change(ops)
    return json.dumps(tiny_pir.program(ops))


CONV, BRANCH = 2, 7  # places in tiny_pir.small_ops


@pytest.mark.parametrize("change", [
    lambda ops: ops.clear(),
    lambda ops: ops[CONV].update({"I": [{"%": 77}, {"%": 1}]}),
    lambda ops: ops[CONV].update({"O": 5}),
    lambda ops: ops[1].update({"A": []}),
    lambda ops: ops[-1].update({"I": []}),
    lambda ops: ops[CONV].update({"#": "1.no_such_operator"}),
    lambda ops: ops[CONV].update({"regions": [{"blocks": []}]}),
    lambda ops: ops[BRANCH].update({"regions": [{"blocks": []}]}),
    lambda ops: ops[BRANCH].update({"#": "1.while", "regions": [{"blocks": [{"ops": 3}]}]}),
])  # fmt: skip
def test_damaged_pir(tmp_path: Path, change: Callable[[list[dict]], None]) -> None:
    path = tiny_pir.save(tmp_path)
    assert outcome(path) == "read"
    path.write_text(_pir(change))
    assert outcome(path) in ("ModelFormatError", "UnsupportedOperatorError")


@pytest.mark.parametrize(("change", "message"), [
    (lambda ops: ops[CONV].update({"O": 5}), r"ops\[2\]\.O: expected a list, found an integer '5'"),
    (lambda ops: ops[CONV]["A"][0].pop("N"), r"ops\[2\]\.A\[0\]: 'N' is missing"),
    (lambda ops: ops[CONV]["A"][3]["AT"].update({"D": "x"}), "its attribute 'groups' is 'x'"),
    (lambda ops: ops[0].update({"A": [0, 0, 0]}), r"expected at least 4 items, found 3"),
    (lambda ops: ops[3]["A"][0]["AT"].update({"D": []}) or ops[3]["A"].clear(), "'value'"),
    (lambda ops: ops[CONV].update({"#": "9.init__"}), "'init__' is not supported"),
    (lambda ops: ops[5]["A"][1]["AT"]["D"][0].update({"D": 1 << 70}), "not valid tensor data"),
    (lambda ops: ops[BRANCH]["regions"].pop(), r"regions: expected 2 items, found 1"),
])  # fmt: skip
def test_damaged_pir_says_where(
    tmp_path: Path, change: Callable[[list[dict]], object], message: str
) -> None:
    path = tiny_pir.save(tmp_path)
    path.write_text(_pir(change))
    with pytest.raises(LiteError, match=message) as found:
        load(path)
    assert str(path) in str(found.value)
    assert "Error" not in str(found.value)


def test_pir_nested_too_deeply(tmp_path: Path) -> None:
    path = tiny_pir.save(tmp_path)
    start = path.read_text()[:-1]
    path.write_text(start + ', "more": ' + "[" * 100_000 + "]" * 100_000 + "}")
    with pytest.raises(ModelFormatError, match="nested too deeply"):
        load(path)


def _one(kind: str, shape: tuple[int, ...] = (1, 4, 6, 6), **attrs: object) -> PaddleProgram:
    p = PaddleProgram()
    p.feed("x", shape)
    p.feed("y", (4,))
    p.op(kind, {"X": "x", "Y": "y", "Input": "x", "FpnRois": "x"}, {"Out": "z", "Y": "z"}, **attrs)
    p.fetch("z")
    return p


@pytest.mark.parametrize(("program", "message"), [
    (_one("elementwise_add", axis=-(1 << 30)), "at least 0, got -1073741824"),
    (_one("elementwise_add", axis="x"), "its attribute 'axis' is 'x'"),
    (_one("elementwise_add", axis=[1]), "its attribute 'axis' is a list"),
    (_one("relu6", threshold="high"), "its attribute 'threshold' is 'high'"),
    (_one("shuffle_channel", (4,), group=2), "axis 1 is outside x, which has rank 1"),
    (_one("unfold", kernel_sizes=[1 << 30, 1 << 30]), "windows of"),
    (_one("instance_norm", (1, (1 << 31) - 1, 2, 2)), None),
    (_one("fill_constant", shape=[2], str_value="12x"), "fills with '12x'"),
    (_one("assign_value", shape=[3], fp32_values=[1.0, 2.0]), "2 values do not fill shape"),
    (_one("distribute_fpn_proposals"), "1 to 16 levels, found 0"),
])  # fmt: skip
def test_attributes_that_lie(tmp_path: Path, program: PaddleProgram, message: str | None) -> None:
    """One line that names operator and fault, and neither hours nor gigabytes on the way."""
    path = program.save(tmp_path)
    tracemalloc.start()
    if message is None:
        load(path)
    else:
        with pytest.raises(LiteError, match=message) as found:
            load(path)
        assert "Error" not in str(found.value)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6


def test_pir_of_containers_alone(tmp_path: Path) -> None:
    """Three bytes of text make a hundred of Python: such a program is refused before parsing."""
    path = tiny_pir.save(tmp_path)
    start = path.read_text()[:-1]
    path.write_text(start + ', "more": [' + "{}," * 9_000_000 + "{}]}")
    tracemalloc.start()
    assert outcome(path) == "ModelFormatError"
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.2 * path.stat().st_size
