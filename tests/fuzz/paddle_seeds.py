"""Seeds for the fuzz targets of Paddle's formats, as in importer_seeds.py."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from lite_engine.importers import load
from lite_engine.importers.naive_buffer.header import HEADER_BYTES
from lite_engine.model_file.naive_buffer import write_nb

from tests.importers import nb_files, paddle_files, tiny_pir
from tests.importers.wire import field

from .importer_seeds import Seed

# ---- programs with their parameters


def _program() -> paddle_files.PaddleProgram:
    return paddle_files.small_network()


def _separate(folder: Path) -> tuple[Path, list[str]]:
    """A file for each parameter; one has levels of detail, one is of bfloat16."""
    program = _program()
    program.op("scale", {"X": "y"}, {"Out": "z"}, scale=2.0, bias=0.0, bias_after_scale=True)
    program.op("concat", {"X": ["y", "z"]}, {"Out": "j"}, axis=1, shape_text=["a", "b"],
               scales=[0.5, 2.0])  # fmt: skip
    program.fetch("j")
    (folder / "__model__").write_bytes(program.encode())
    for name, array in program.weights.items():
        (folder / name).write_bytes(paddle_files.record(array))
    bias = program.weights["fc.b"]
    body = field(1, 22) + field(2, 5)
    head = struct.pack("<IQQQIi", 0, 1, 8, 0, 0, len(body))
    bits = (bias.view(np.uint32) >> 16).astype("<u2")
    (folder / "fc.b").write_bytes(head + body + bits.tobytes())
    return folder, ["__model__", "fc.b", "fc.w"]


def _missing_parameter(folder: Path) -> tuple[Path, list[str]]:
    _separate(folder)
    (folder / "conv.w").unlink()
    return folder, ["__model__"]


def _negative(folder: Path) -> tuple[Path, list[str]]:
    path = _program().save(folder)
    body = field(1, 5) + field(2, -1)
    (folder / "inference.pdiparams").write_bytes(bytes(16) + np.int32(len(body)).tobytes() + body)
    return path, ["inference.pdiparams"]


def _left_over(folder: Path) -> tuple[Path, list[str]]:
    path = _program().save(folder)
    with (folder / "inference.pdiparams").open("ab") as file:
        file.write(b"left over")
    return path, ["inference.pdiparams"]


def _odd_attributes(folder: Path) -> tuple[Path, list[str]]:
    program = _program()
    program.op("leaky_relu", {"X": "y"}, {"Out": "k"}, alpha="much")
    program.fetch("k")
    return program.save(folder), ["inference.pdmodel"]


def _odd_axes(folder: Path) -> tuple[Path, list[str]]:
    program = _program()
    program.op("squeeze2", {"X": "y"}, {"Out": "k"}, axes=["one"])
    program.fetch("k")
    return program.save(folder), ["inference.pdmodel"]


def _unversioned(folder: Path) -> tuple[Path, list[str]]:
    path = _program().save(folder)
    path.write_bytes(path.read_bytes().removesuffix(field(4, field(1, 2006002))))
    return path, ["inference.pdmodel"]


def _many_axes(folder: Path) -> tuple[Path, list[str]]:
    program = _program()
    program.feed("many", (1,) * 70)
    return program.save(folder), ["inference.pdmodel"]


def _pir(ops: Callable[[], list[dict[str, Any]]]) -> Seed:
    """The small program with other operators before its outputs."""

    def make(folder: Path) -> tuple[Path, list[str]]:
        path = tiny_pir.save(folder)
        base = tiny_pir.small_ops()
        path.write_text(json.dumps(tiny_pir.program([*base[:-2], *ops(), *base[-2:]])))
        return path, ["inference.json"]

    return make


def _flat(size: int = 48, kind: str = "f32") -> dict[str, Any]:
    return tiny_pir._tensor([1, size], kind)


def _list(*kinds: dict[str, Any]) -> dict[str, Any]:
    return {"#": "0.t_vec", "D": list(kinds)}


def _combined() -> list[dict[str, Any]]:
    """Lists of tensors, put together and taken apart in each way; attributes of rare kinds."""
    op = tiny_pir.op

    def builtin(kind: str, ins: list[int], outs: dict[int, Any], **attrs: Any) -> dict[str, Any]:
        return {**op(kind, ins, outs, **attrs), "#": f"0.{kind}"}

    cut = op("split", [30, 33, 34], {35: _list(_flat(48), _flat(48))})
    rare = op("scale", [9, 34], {40: _flat()}, bias=0.5, bias_after_scale=True)
    rare["A"] += [
        {"N": "dtype", "AT": {"#": "0.a_dtype", "D": "float32"}},
        {"N": "kind", "AT": {"#": "0.a_dtype", "D": "no such type"}},
        {"N": "place", "AT": {"#": "0.a_place", "D": [0, 0, ""]}},
        {"N": "most", "AT": {"#": "0.a_f32", "VD": "INF"}},
        {"N": "empty", "AT": {"#": "0.a_f32"}},
    ]
    return [
        builtin("combine", [8, 9], {31: _list(_flat(), _flat())}),
        op("full", [], {34: tiny_pir._tensor([1], "i32")}, value=1, shape=[1]),
        op("concat", [31, 34], {30: _flat(96)}),
        op("full_int_array", [], {33: tiny_pir._tensor([2], "i64")}, value=[48, 48]),
        cut,
        builtin("split", [35], {36: _flat(), 37: _flat()}),
        builtin("slice", [35], {38: _flat()}, index=1),
        builtin("shadow_output", [38], {}, output_name="o"),
        rare,
    ]


def _loop(condition: int = 7) -> list[dict[str, Any]]:
    loop = tiny_pir.op("while", [condition, 9], {50: _flat()})
    body = [tiny_pir.op("relu", [51], {52: _flat()}), tiny_pir.op("yield", [7, 52], {})]
    loop["regions"] = [{"blocks": [{"args": [{"#": 51, "TT": _flat()}], "ops": body}]}]
    return [loop]


def _bodied() -> list[dict[str, Any]]:
    bad = tiny_pir.op("relu", [9], {60: _flat()})
    return [{**bad, "regions": [{"blocks": []}]}]


_PIR: dict[str, Callable[[], list[dict[str, Any]]]] = {
    "lists": _combined,
    "loop": _loop,
    "loop_pairs": lambda: [{**_loop()[0], "I": [{"%": 7}]}],
    "body": _bodied,
    "computed": lambda: [tiny_pir.op("reshape", [9, 8], {61: _flat()}),
                         tiny_pir.op("topk", [9, 8], {62: _flat(), 63: _flat(48, "i64")})],
    "no_inputs": lambda: [{**tiny_pir.op("slice", [], {64: _flat()}, index=0), "#": "0.slice"}],
    "index": lambda: [{**tiny_pir.op("slice", [9], {64: _flat()}, index=7), "#": "0.slice"}],
    "rank": lambda: [tiny_pir.op("relu", [9], {65: tiny_pir._tensor([1] * 70)})],
}  # fmt: skip

# ---- naive buffer


def _nb(change: Callable[[bytes], bytes], convert: Callable[[bytes], bytes] = bytes) -> Seed:
    def make(folder: Path) -> tuple[Path, list[str]]:
        path = write_nb(load(_program().save(folder)), folder / "m.nb")
        path.write_bytes(change(convert(path.read_bytes())))
        return path, ["m.nb"]

    return make


def _after_topology(data: bytes, changed: bytes) -> bytes:
    """Other bytes where the parameters begin."""
    at = HEADER_BYTES + int.from_bytes(data[HEADER_BYTES - 8 : HEADER_BYTES], "little")
    return data[:at] + changed + data[at + len(changed) :]


SEEDS: dict[str, Seed] = {
    "paddle_separate": _separate,
    "paddle_missing": _missing_parameter,
    "paddle_negative": _negative,
    "paddle_left_over": _left_over,
    "paddle_attributes": _odd_attributes,
    "paddle_axes": _odd_axes,
    "paddle_version": _unversioned,
    "paddle_rank": _many_axes,
    **{f"pir_{name}": _pir(ops) for name, ops in _PIR.items()},
    "nb_short": _nb(lambda data: data[:5]),
    "nb_cut_0": _nb(lambda data: data[:10], nb_files.meta_0),
    "nb_newer": _nb(lambda data: b"\x09\0" + data[2:]),
    "nb_parameters": _nb(lambda data: _after_topology(data, b"\1")),
    "nb_renamed": _nb(lambda data: b"fc.x".join(data.rsplit(b"fc.b", 1))),
}
