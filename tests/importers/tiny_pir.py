"""A small program in Paddle 3's form (PIR), as JSON with its parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.importers.paddle_files import record


def _tensor(dims: list[int], kind: str = "f32") -> dict[str, Any]:
    return {"#": "0.t_dtensor", "D": [{"#": f"0.t_{kind}"}, dims, "NCHW", [], 0]}


def attr(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"#": "0.a_array", "D": [attr(v) for v in value]}
    kind = {bool: "bool", int: "i32", float: "f32", str: "str"}[type(value)]
    return {"#": f"0.a_{kind}", "D": value}


def op(kind: str, ins: list[int], outs: dict[int, Any], **attrs: Any) -> dict[str, Any]:
    """`outs`: number → type."""
    return {"#": f"1.{kind}", "I": [{"%": i} for i in ins],
            "O": [{"%": i, "TT": t} for i, t in outs.items()],
            "A": [{"N": k, "AT": attr(v)} for k, v in attrs.items()]}  # fmt: skip


def parameter(number: int, name: str, dims: list[int]) -> dict[str, Any]:
    return {"#": "p", "A": [0, 0, 0, name], "O": {"%": number, "TT": _tensor(dims)}, "OA": [1]}


def program(ops: list[dict[str, Any]]) -> dict[str, Any]:
    return {"base_code": {"magic": "pir", "version": 1},
            "program": {"regions": [{"blocks": [{"ops": ops}]}]}}  # fmt: skip


def small_ops() -> list[dict[str, Any]]:
    """Convolution, relu, reshape, a branch, and two outputs of (1,2,4,4)."""
    wide, flat = _tensor([1, 3, 4, 4]), _tensor([1, 48])
    truth = _tensor([1], "bool")
    body = [op("relu", [5], {20: flat}), op("yield", [20], {})]
    other = [op("tanh", [5], {21: flat}), op("yield", [21], {})]
    branch = op("if", [7], {8: flat})
    branch["regions"] = [{"blocks": [{"args": [], "ops": o}]} for o in (body, other)]
    return [
        parameter(1, "w", [3, 2, 3, 3]),
        op("data", [], {2: _tensor([1, 2, 4, 4])}, name="x"),
        op("conv2d", [2, 1], {3: wide}, strides=[1, 1], paddings=[1, 1], dilations=[1, 1],
           groups=1, data_format="NCHW", padding_algorithm="EXPLICIT"),
        op("full_int_array", [], {4: _tensor([2], "i64")}, value=[1, -1]),
        op("reshape", [3, 4], {5: flat}),
        op("full", [], {6: flat}, value=0.5, shape=[1, 48]),
        op("data", [], {7: truth}, name="flag"),
        branch,
        op("add", [8, 6], {9: flat}),
        op("fetch", [9], {10: flat}, name="y", col=0),
        op("fetch", [3], {11: wide}, name="z", col=1),
    ]  # fmt: skip


def save(folder: Path) -> Path:
    path = folder / "inference.json"
    path.write_text(json.dumps(program(small_ops())))
    weights = np.arange(54, dtype=np.float32).reshape(3, 2, 3, 3)
    (folder / "inference.pdiparams").write_bytes(record(weights))
    return path
