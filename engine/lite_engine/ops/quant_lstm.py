"""QLSTM: an LSTM on bytes whose cell has 16 bits, as LiteRT's integer kernel computes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Node, TypeInfo
from . import litert_lstm as fixed
from ._conditions import all_of, constant, of_type
from ._core import REQUIRED, define_op
from ._records import Cost
from ._samples import Draw, Sample
from .litert_functions import rescaled_twice

Array = np.ndarray
#: Steps of the cell are 2^-bits, so that its numbers have 0 … 6 bits before the point.
CELL_BITS = range(9, 16)
_WEIGHTS = ("w", "r", "b", "ratios", "peepholes", "norms", "projection", "projection_bias")

qlstm = define_op(
    "QLSTM",
    inputs="x w r b ratios peepholes? norms? projection? projection_bias?",
    attrs={
        "x_zero": 0, "y_zero": 0, "hidden_zero": 0, "cell_bits": 11, "cell_clip": 0, "y_clip": 0,
        "hidden_ratio": REQUIRED, "projection_ratio": 0.0,
    },
    packed_inputs=_WEIGHTS,
    source="a TFLite UNIDIRECTIONAL_SEQUENCE_LSTM of integers",
    tolerance=0,
)  # fmt: skip


@qlstm.infer
def _(
    x: TypeInfo, w: TypeInfo, r: TypeInfo, b: TypeInfo, ratios: TypeInfo,
    peepholes: TypeInfo | None, norms: TypeInfo | None, projection: TypeInfo | None,
    projection_bias: TypeInfo | None, *, cell_bits: int, **_: Any,
) -> TypeInfo:  # fmt: skip
    if x.rank != 3 or w.rank != 3 or r.rank != 3:
        raise ShapeError(tr("x, w and r have rank 3"))
    if cell_bits not in CELL_BITS:
        raise ShapeError(tr("a cell's steps must be 2^-9 to 2^-15, got 2^-{bits}", bits=cell_bits))
    gates, units, width = w.dims
    outputs = units if projection is None else projection.dims[0]
    wanted = [
        (x.dims[2:], (width,)), (r.dims, (gates, units, outputs)), (b.dims, (gates, units)),
        (ratios.dims, (4, gates)),
    ]  # fmt: skip
    if norms is not None:
        wanted.append((norms.dims, (gates, units)))
    if projection is not None:
        wanted.append((projection.dims, (outputs, units)))
    if projection_bias is not None:
        wanted.append((projection_bias.dims, (outputs,)))
    if peepholes is not None:
        rows = x.dims[1] if peepholes.rank == 3 and peepholes.dims[1] != 1 else 1
        less = gates - 1 if isinstance(gates, int) else gates
        wanted.append((peepholes.dims, (less, rows, units)))
    wrong = [(found, want) for found, want in wanted if tuple(found) != tuple(want)]
    if gates not in (3, 4) or wrong:
        found, want = wrong[0] if wrong else (w.dims, (4, units, width))
        has, needs = list(found), list(want)
        raise ShapeError(
            tr("a part of an LSTM has shape {found}, not {want}", found=has, want=needs)
        )
    return x.with_shape((*x.dims[:2], outputs))


@qlstm.reference
def _(
    x: Array, w: Array, r: Array, b: Array, ratios: Array, peepholes: Array | None,
    norms: Array | None, projection: Array | None, projection_bias: Array | None,
    *, x_zero: int, y_zero: int, hidden_zero: int, cell_bits: int, cell_clip: int, y_clip: int,
    hidden_ratio: float, projection_ratio: float,
) -> Array:  # fmt: skip
    """x (T,B,I) i8, gates input, forget, cell, output in w (G,H,I) i8, r (G,H,O) i8, b (G,H) i32;
    without the first, the input gate is 1 − forget. `ratios` (4,G): of x·w, of the state·r, of
    peephole·cell to a gate's steps, and the scale of `norms` (G,H) i16. peepholes (G−1, B or 1, H)
    i16, projection (O,H) i8."""
    first = 4 - w.shape[0]
    batch, units = x.shape[1], w.shape[1]
    wide = [None if a is None else a.astype(np.int64) for a in (w, r, b, peepholes, norms)]
    w, r, b, peepholes, norms = wide  # type: ignore[assignment]
    h = np.full((batch, r.shape[2]), y_zero, np.int64)
    c = np.zeros((batch, units), np.int64)

    def gate(which: int, xt: Array, seen: Array) -> Array:
        at = which - first
        of_x, of_h, of_c, of_n = (float(v) for v in ratios[:, at])
        sums = (xt - x_zero) @ w[at].T + (b[at] if norms is None else 0)
        v = fixed.saturated(rescaled_twice(sums, of_x))
        v = fixed.saturated(v + rescaled_twice((h - y_zero) @ r[at].T, of_h))
        if peepholes is not None and which != 2:
            part = peepholes[at - (which == 3)] * seen
            v = fixed.saturated(v + rescaled_twice(part, of_c))
        if norms is not None:
            v = fixed.normalized(v, norms[at], b[at], of_n)
        return fixed.tanh(v, 3) if which == 2 else fixed.sigmoid(v)

    y = np.empty((x.shape[0], *h.shape), np.int8)
    for t, xt in enumerate(x.astype(np.int64)):
        forget = gate(1, xt, c)
        let_in = 32767 - forget if first else gate(0, xt, c)
        added = fixed.product(let_in, gate(2, xt, c), 30 - cell_bits)
        c = fixed.saturated(fixed.product(forget, c, 15) + added)
        if cell_clip:
            c = np.clip(c, -cell_clip, cell_clip)
        out = gate(3, xt, c) * fixed.tanh(c, 15 - cell_bits)
        h = np.clip(rescaled_twice(out, hidden_ratio) + hidden_zero, -128, 127)
        if projection is not None:
            sums = (h - hidden_zero) @ projection.astype(np.int64).T
            sums = sums if projection_bias is None else sums + projection_bias
            h = np.clip(rescaled_twice(sums, projection_ratio) + y_zero, -128, 127)
            h = np.clip(h, -y_clip, y_clip) if y_clip else h
        y[t] = h
    return y


@qlstm.cost
def _(x: TypeInfo, w: TypeInfo, r: TypeInfo, *rest: TypeInfo | None, **_: Any) -> Cost:
    rows = x.with_shape(x.dims[:2]).size
    extra = 0 if len(rest) < 5 or rest[4] is None else rest[4].size
    per_row = w.size + r.size + extra
    return Cost(macs=rows * per_row, flops=rows * w.with_shape(w.dims[:2]).size * 30)


def _short_rows(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """Sums of a row fit int32."""
    w, r = types[1], types[2]
    sizes = [t.dims[-1] for t in (w, r) if t is not None]
    most = 1 << 15
    fits = all(isinstance(s, int) and s <= most for s in sizes)
    return fits or tr("a row of its weights has more than {n} numbers", n=most)


qlstm.kernel(
    "cpu", "i8_lstm", dtype="i8",
    when=all_of(constant(*range(1, 9)), of_type(0, 1, 2, 7, dtype="i8"), _short_rows),
    why=tr("steps in numbers of 16 bits"),
)  # fmt: skip


@qlstm.samples
def _(draw: Draw) -> Iterator[Sample]:
    def parts(
        steps: int, batch: int, width: int, units: int, outputs: int = 0, coupled: bool = False,
        peephole: bool = False, norm: bool = False, **attrs: Any,
    ) -> Sample:  # fmt: skip
        gates, last = 4 - coupled, outputs or units

        def ints(most: int, dtype: Any, *shape: int) -> Array:
            return draw.ints(-most, most, *shape, dtype=dtype)

        ratios = np.stack([np.full(gates, v) for v in (0.45, 0.2, 0.11, 3e-5)]).astype(np.float32)
        inputs: list[Array | None] = [
            ints(127, np.int8, steps, batch, width), ints(127, np.int8, gates, units, width),
            ints(127, np.int8, gates, units, last),
            ints(1 << 20 if norm else 2000, np.int32, gates, units), ratios,
            ints(32767, np.int16, gates - 1, 1, units) // 8 if peephole else None,
            np.abs(ints(32767, np.int16, gates, units)) if norm else None,
            ints(127, np.int8, outputs, units) if outputs else None,
            ints(3000, np.int32, outputs) if outputs else None,
        ]  # fmt: skip
        zeros = {"x_zero": 4, "y_zero": -9, "hidden_zero": -3 if outputs else -9}
        ratio = {"hidden_ratio": float(np.float32(2**-23)), "projection_ratio": 0.0017}
        return Sample(inputs, {**zeros, **ratio, **attrs}, constant=tuple(range(1, 9)))

    yield parts(1, 1, 3, 4)
    yield parts(5, 2, 17, 19)
    yield parts(4, 1, 70, 33, cell_bits=15)
    yield parts(4, 3, 5, 16, coupled=True, cell_bits=9, cell_clip=900)
    yield parts(6, 2, 9, 21, outputs=7, y_clip=60)
    yield parts(4, 2, 9, 21, outputs=7, coupled=True, peephole=True)
    yield parts(4, 3, 8, 13, norm=True, peephole=True)
    yield parts(3, 1, 8, 40, norm=True, coupled=True, outputs=5)
