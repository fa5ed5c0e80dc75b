"""One-layer TFLite models of integer LSTMs (int8 with a cell of 16 bits), and what LiteRT answers.

python -m tests.importers.tflite_int_lstm      records the answers anew (needs ai-edge-litert)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.importers.litert_answers import Made, read, record
from tests.importers.tiny_tflite import TinyModel
from tests.importers.wire import Num, Table

RECORDED = Path(__file__).with_name("tflite_int_lstm.json")
BATCH, STEPS, SIZE, UNITS, OUTPUTS = 2, 9, 11, 19, 7


class _Weights:
    """Constants of one model; each gate has scales of its own."""

    def __init__(self, model: TinyModel, seed: int) -> None:
        self.model, self.rng = model, np.random.default_rng(seed)

    def add(self, dtype: str, shape: Sequence[int], array: Any, scale: float) -> int:
        name = f"w{len(self.model.tensors)}"
        return self.model.tensor(name, dtype, tuple(shape), array, scale=scale)

    def bytes(self, *shape: int) -> int:
        scale = self.rng.uniform(0.004, 0.009)
        return self.add("int8", shape, self.rng.integers(-127, 128, shape), scale)

    def words(self, *shape: int, low: float = -1.0) -> int:
        array = (self.rng.uniform(low, 1, shape) * 32767).astype(np.int16)
        return self.add("int16", shape, array, self.rng.uniform(2e-5, 5e-5))

    def sums(self, *shape: int, most: int = 3000) -> int:
        return self.add("int32", shape, self.rng.integers(-most, most + 1, shape), 2e-5)


def model(
    *, coupled: bool = False, peephole: bool = False, projection: bool = False, bias: bool = True,
    norms: bool = False, cell_clip: float = 0.0, projection_clip: float = 0.0,
    time_major: bool = False, cell_bits: int = 11, seed: int = 1, zero: int = -9,
    hidden_zero: int = 3, inner: tuple[float, int] | None = None, steps: int = STEPS,
    units: int = UNITS, size: int = SIZE, batch: int = BATCH, spread: float = 1.0,
) -> Made:  # fmt: skip
    m = TinyModel()
    w = _Weights(m, seed)
    outputs = OUTPUTS if projection else units
    of_x = spread * 0.021

    def rows(last: int) -> tuple[int, int, int]:
        return (steps, batch, last) if time_major else (batch, steps, last)

    x = m.tensor("x", "int8", rows(size), scale=of_x, zero=5)
    first = int(coupled)
    skip = [-1] * first
    gates = [*skip, *(w.bytes(units, size) for _ in range(first, 4))]
    gates += [*skip, *(w.bytes(units, outputs) for _ in range(first, 4))]
    gates += [*skip, *(w.words(units) for _ in range(first, 3))] if peephole else [-1] * 3
    most = 3_000_000 if norms else 3000
    gates += [*skip, *(w.sums(units, most=most) for _ in range(first, 4))]
    gates.append(w.bytes(outputs, units) if projection else -1)
    gates.append(w.sums(outputs) if projection and bias else -1)
    y_scale = 0.02 if projection else 1 / 128
    h = m.tensor("h", "int8", (batch, outputs), scale=y_scale, zero=zero, variable=True)
    c = m.tensor("c", "int16", (batch, units), scale=2.0**-cell_bits, variable=True)
    scales = [-1] * 4
    if norms:
        scales = [-1 if g < first else w.words(units, low=0.2) for g in range(4)]
    between = [
        m.tensor(f"i{g}", "int16", (0,), scale=0.0009 + 0.0001 * g) if norms
        else m.tensor(f"i{g}", "float32", (0,))
        for g in range(4)
    ]  # fmt: skip
    inner = inner or ((0.0061, hidden_zero) if projection else (y_scale, zero))
    between.append(m.tensor("i4", "int8", (0,), scale=inner[0], zero=inner[1]))
    y = m.tensor("y", "int8", rows(outputs), scale=y_scale, zero=zero)
    options = Table(
        _0=Num("b", 4), _1=Num("f", cell_clip), _2=Num("f", projection_clip),
        _3=Num("?", time_major),
    )  # fmt: skip
    m.op(44, [x, *gates, h, c, *scales], [y], options, kind=71, intermediates=between)
    given = np.random.default_rng(seed + 1).integers(-128, 128, rows(size)).astype(np.int8)
    return m.bytes([x], [y]), given


CASES: dict[str, Callable[[], Made]] = {
    "plain": model,
    "time first": lambda: model(time_major=True, seed=2),
    "what leaves the cell has a scale of its own": lambda: model(inner=(0.0123, 6), seed=6),
    "coupled gates": lambda: model(coupled=True),
    "cell clipped": lambda: model(cell_clip=0.6),
    "cell of 12 bits": lambda: model(cell_bits=12, seed=3),
    "cell of 9 bits": lambda: model(cell_bits=9, spread=3.0, seed=4),
    "projection": lambda: model(projection=True),
    "projection without a bias": lambda: model(projection=True, bias=False, hidden_zero=0),
    "projection, clipped": lambda: model(projection=True, projection_clip=0.9),
    "peepholes": lambda: model(peephole=True),
    "coupled gates, peepholes": lambda: model(coupled=True, peephole=True),
    "layer normalization": lambda: model(norms=True),
    "layer normalization, coupled gates": lambda: model(norms=True, coupled=True),
    "everything": lambda: model(
        peephole=True, projection=True, norms=True, cell_clip=1.1, projection_clip=1.4,
        time_major=True, seed=5,
    ),
    "one unit": lambda: model(units=1, size=1, batch=1, steps=3),
    "wide": lambda: model(units=70, size=130, steps=4, batch=1),
}  # fmt: skip


def recorded() -> dict[str, np.ndarray]:
    return read(RECORDED, np.int8)


if __name__ == "__main__":
    record(RECORDED, CASES)
