"""One-layer TFLite models of every LSTM variant, and what LiteRT answers.

python -m tests.importers.tflite_lstm      records the answers anew (needs ai-edge-litert)
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.importers.litert_answers import Made, read, record
from tests.importers.tiny_tflite import TinyModel
from tests.importers.wire import Num, Table

RECORDED = Path(__file__).with_name("tflite_lstm.json")
BATCH, STEPS, SIZE, UNITS, OUTPUTS = 2, 5, 6, 8, 4


class _Weights:
    """Random weights; where `in_bytes` those of int8 that LiteRT reads beside float activations."""

    def __init__(self, model: TinyModel, seed: int, in_bytes: bool) -> None:
        self.model, self.rng = model, np.random.default_rng(seed)
        self.in_bytes = in_bytes

    def __call__(self, *shape: int, narrow: bool = True) -> int:
        name = f"w{len(self.model.tensors)}"
        if self.in_bytes and narrow:
            numbers, scale = self.rng.integers(-127, 128, shape), self.rng.uniform(0.004, 0.012)
            return self.model.tensor(name, "int8", shape, numbers, scale=scale)
        return self.model.tensor(name, "float32", shape, self.rng.normal(0, 0.7, shape))

    def cell(
        self, coupled: bool, peephole: bool, projection: bool, projection_bias: bool
    ) -> list[int]:
        outputs = OUTPUTS if projection else UNITS
        gates = [-1] if coupled else []
        count = 4 - len(gates)
        return [
            *gates, *(self(UNITS, SIZE) for _ in range(count)),
            *gates, *(self(UNITS, outputs) for _ in range(count)),
            *((*gates, *(self(UNITS) for _ in range(count - 1))) if peephole else (-1, -1, -1)),
            *gates, *(self(UNITS, narrow=False) for _ in range(count)),
            self(OUTPUTS, UNITS) if projection else -1,
            self(OUTPUTS, narrow=False) if projection_bias else -1,
        ]  # fmt: skip

    def state(self, size: int, batch: int = BATCH) -> int:
        name = f"s{len(self.model.tensors)}"
        return self.model.tensor(name, "float32", (batch, size), variable=True)


def _shape(time_major: bool, last: int, batch: int = BATCH) -> tuple[int, int, int]:
    return (STEPS, batch, last) if time_major else (batch, STEPS, last)


def forward(
    *, coupled: bool = False, peephole: bool = False, projection: bool = False,
    projection_bias: bool = False, norms: bool = False, cell_clip: float = 0.0,
    projection_clip: float = 0.0, time_major: bool = False, activation: int = 4,
    in_bytes: bool = False, asymmetric: bool = True,
) -> Made:  # fmt: skip
    m = TinyModel()
    weights = _Weights(m, 7, in_bytes)
    x = m.tensor("x", "float32", _shape(time_major, SIZE))
    cell = weights.cell(coupled, peephole, projection, projection_bias)
    outputs = OUTPUTS if projection else UNITS
    states = [weights.state(outputs), weights.state(UNITS)]
    scales = [-1] * 4
    if norms:
        scales = [-1 if coupled and g == 0 else weights(UNITS, narrow=False) for g in range(4)]
    y = m.tensor("y", "float32", _shape(time_major, outputs))
    options = Table(
        _0=Num("b", activation), _1=Num("f", cell_clip), _2=Num("f", projection_clip),
        _3=Num("?", time_major), _4=Num("?", in_bytes and asymmetric),
    )  # fmt: skip
    m.op(44, [x, *cell, *states, *scales], [y], options, kind=71)
    return m.bytes([x], [y]), _given(time_major)


def both(
    *, merge: bool, peephole: bool = False, coupled: bool = False, in_bytes: bool = False,
    asymmetric: bool = True,
) -> Made:  # fmt: skip
    """Of one series: LiteRT 2.3 mixes up the states of several where it merges the outputs."""
    m = TinyModel()
    weights = _Weights(m, 8, in_bytes)
    x = m.tensor("x", "float32", _shape(False, SIZE, 1))
    cells = [weights.cell(coupled, peephole, False, False) for _ in range(2)]
    states = [weights.state(UNITS, 1) for _ in range(4)]
    ys = [m.tensor("y", "float32", _shape(False, 2 * UNITS if merge else UNITS, 1))]
    if not merge:
        ys.append(m.tensor("z", "float32", _shape(False, UNITS, 1)))
    options = Table(
        _0=Num("b", 4), _3=Num("?", merge), _4=Num("?", 0), _5=Num("?", in_bytes and asymmetric)
    )
    m.op(52, [x, *cells[0], *cells[1], *states, *[-1] * 9], ys, options, kind=69)
    return m.bytes([x], ys), _given(False, 1)


def _given(time_major: bool, batch: int = BATCH) -> np.ndarray:
    rng = np.random.default_rng(3)
    return rng.normal(0, 1, _shape(time_major, SIZE, batch)).astype(np.float32)


CASES: dict[str, Callable[[], Made]] = {
    "plain": forward,
    "time major": lambda: forward(time_major=True),
    "coupled gates": lambda: forward(coupled=True),
    "peepholes": lambda: forward(peephole=True),
    "coupled gates, peepholes": lambda: forward(coupled=True, peephole=True),
    "projection": lambda: forward(projection=True),
    "projection with a bias": lambda: forward(projection=True, projection_bias=True),
    "projection, clipped": lambda: forward(projection=True, projection_clip=0.3),
    "cell clipped": lambda: forward(cell_clip=0.4),
    "layer normalization": lambda: forward(norms=True),
    "layer normalization, coupled gates": lambda: forward(norms=True, coupled=True),
    "everything": lambda: forward(
        peephole=True, projection=True, projection_bias=True, norms=True, cell_clip=0.5,
        projection_clip=0.4, time_major=True,
    ),
    "relu cell": lambda: forward(activation=1, cell_clip=3.0),
    "bidirectional": lambda: both(merge=False),
    "bidirectional, merged": lambda: both(merge=True),
    "bidirectional, peepholes": lambda: both(merge=True, peephole=True),
    "dynamic": lambda: forward(in_bytes=True),
    "dynamic, coupled gates, peepholes": lambda: forward(
        in_bytes=True, coupled=True, peephole=True
    ),
    "dynamic, everything": lambda: forward(
        in_bytes=True, peephole=True, projection=True, projection_bias=True, norms=True,
        cell_clip=0.5, projection_clip=0.4, time_major=True,
    ),
    "dynamic, bidirectional": lambda: both(merge=True, in_bytes=True),
    "dynamic, symmetric ranges": lambda: forward(in_bytes=True, asymmetric=False),
    "dynamic, symmetric ranges, everything": lambda: forward(
        in_bytes=True, asymmetric=False, peephole=True, projection=True, projection_bias=True,
        norms=True, cell_clip=0.5, projection_clip=0.4, time_major=True,
    ),
    "dynamic, symmetric ranges, bidirectional": lambda: both(
        merge=True, in_bytes=True, asymmetric=False
    ),
}  # fmt: skip


def recorded() -> dict[str, np.ndarray]:
    return read(RECORDED, np.float32)


if __name__ == "__main__":
    record(RECORDED, CASES)
