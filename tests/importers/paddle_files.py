"""Small Paddle programs for tests: described in Python, encoded as ProgramDesc and parameter files.

The encoders are the tests' own: the reader is checked by something that shares no code with it.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np

from tests.importers.wire import field

TYPES = {"bool": 0, "int16": 1, "int32": 2, "int64": 3, "float16": 4, "float32": 5, "float64": 6,
         "uint8": 20, "int8": 21}  # fmt: skip


def attribute(name: str, value: Any) -> bytes:
    head, first = field(1, name), value[0] if isinstance(value, list) and value else 0
    if isinstance(value, bool):
        return head + field(2, 6) + field(10, value)
    if isinstance(value, int):
        return head + field(2, 0) + field(3, value)
    if isinstance(value, float):
        return head + field(2, 1) + field(4, value)
    if isinstance(value, str):
        return head + field(2, 2) + field(5, value)
    if isinstance(first, str):
        return head + field(2, 5) + b"".join(field(8, v) for v in value)
    if isinstance(first, float):
        return head + field(2, 4) + b"".join(field(7, v) for v in value)
    return head + field(2, 3) + b"".join(field(6, v) for v in value)


def description(dtype: str, dims: tuple[int, ...]) -> bytes:
    return field(1, TYPES[dtype]) + b"".join(field(2, d) for d in dims)


class PaddleProgram:
    """`feed`, `weight`, `op` in order, then `save`."""

    def __init__(self, version: int = 2006002) -> None:
        self.version = version
        self.vars: dict[str, bytes] = {}
        self.ops: list[bytes] = []
        self.weights: dict[str, np.ndarray] = {}
        self.feeds = self.fetches = 0
        self._var("feed", field(1, 9), True)
        self._var("fetch", field(1, 10), True)

    def _var(self, name: str, kind: bytes, persistable: bool) -> None:
        self.vars[name] = field(1, name) + field(2, kind) + field(3, persistable)

    def _dense(self, name: str, dtype: str, dims: tuple[int, ...], persistable: bool) -> None:
        kind = field(1, 7) + field(3, field(1, description(dtype, dims)))
        self._var(name, kind, persistable)

    def feed(self, name: str, dims: tuple[int, ...], dtype: str = "float32") -> str:
        self._dense(name, dtype, dims, False)
        self.op("feed", {"X": "feed"}, {"Out": name}, col=self.feeds)
        self.feeds += 1
        return name

    def weight(self, name: str, array: Any) -> str:
        self.weights[name] = np.ascontiguousarray(array)
        self._dense(name, self.weights[name].dtype.name, self.weights[name].shape, True)
        return name

    def op(self, kind: str, inputs: dict[str, Any], outputs: dict[str, Any], **attrs: Any) -> None:
        def slots(port: int, given: dict[str, Any]) -> bytes:
            lists = {k: v if isinstance(v, list) else [v] for k, v in given.items()}
            return b"".join(
                field(port, field(1, k) + b"".join(field(2, n) for n in names))
                for k, names in lists.items()
            )

        body = slots(1, inputs) + slots(2, outputs) + field(3, kind)
        self.ops.append(body + b"".join(field(4, attribute(k, v)) for k, v in attrs.items()))

    def fetch(self, name: str) -> None:
        self.op("fetch", {"X": name}, {"Out": "fetch"}, col=self.fetches)
        self.fetches += 1

    def encode(self) -> bytes:
        block = field(1, 0) + field(2, -1)
        block += b"".join(field(3, v) for v in self.vars.values())
        block += b"".join(field(4, o) for o in self.ops)
        return field(1, block) + field(4, field(1, self.version))

    def parameters(self) -> bytes:
        return b"".join(record(self.weights[n]) for n in sorted(self.weights))

    def save(self, folder: Path) -> Path:
        path = folder / "inference.pdmodel"
        path.write_bytes(self.encode())
        (folder / "inference.pdiparams").write_bytes(self.parameters())
        return path


def record(array: np.ndarray) -> bytes:
    """One dense tensor record."""
    body = description(array.dtype.name, array.shape)
    return struct.pack("<IQIi", 0, 0, 0, len(body)) + body + array.tobytes()


def small_network() -> PaddleProgram:
    """conv + batch norm + hard swish + pool + fc + softmax on (N, 3, 8, 8)."""
    rng = np.random.default_rng(3)

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(0, 0.5, shape).astype(np.float32)

    p = PaddleProgram()
    x = p.feed("x", (-1, 3, 8, 8))
    w = p.weight("conv.w", normal(8, 3, 3, 3))
    p.op("conv2d", {"Input": x, "Filter": w}, {"Output": "c"}, strides=[2, 2], paddings=[1, 1],
         dilations=[1, 1], groups=1, data_format="NCHW", padding_algorithm="EXPLICIT")  # fmt: skip
    statistics = {"Scale": normal(8), "Bias": normal(8), "Mean": normal(8),
                  "Variance": rng.uniform(0.5, 1.5, 8).astype(np.float32)}  # fmt: skip
    slots = {k: p.weight(f"bn.{k}", v) for k, v in statistics.items()}
    p.op("batch_norm", {"X": "c", **slots}, {"Y": "b"}, epsilon=1e-5, is_test=True)
    p.op("hard_swish", {"X": "b"}, {"Out": "h"})
    p.op("pool2d", {"X": "h"}, {"Out": "p"}, pooling_type="avg", global_pooling=True, ksize=[1, 1])
    p.op("flatten_contiguous_range", {"X": "p"}, {"Out": "f"}, start_axis=1, stop_axis=-1)
    p.op("mul", {"X": "f", "Y": p.weight("fc.w", normal(8, 5))}, {"Out": "m"}, x_num_col_dims=1,
         y_num_col_dims=1)  # fmt: skip
    p.op("elementwise_add", {"X": "m", "Y": p.weight("fc.b", normal(5))}, {"Out": "a"}, axis=1)
    p.op("softmax", {"X": "a"}, {"Out": "y"}, axis=-1)
    p.fetch("y")
    return p
