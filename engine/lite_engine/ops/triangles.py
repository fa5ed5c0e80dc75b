"""Trilu and ReverseSequence."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import TypeInfo
from ._core import define_op
from ._helpers import (
    ANY,
    same_type,
)
from ._samples import Draw, Sample, ints

# ---- triangles, orders, crops

trilu = define_op(
    "Trilu", inputs="x k?", attrs={"upper": 1}, attr_inputs=("k",), carries=slice(1),
    source="ONNX Trilu-14",
)  # fmt: skip


@trilu.infer
def _(x: TypeInfo, k: TypeInfo | None, *, upper: int) -> TypeInfo:
    if x.shape is not None and x.rank < 2:
        raise ShapeError(tr("expected an input of rank 2 or more, found {rank}", rank=x.rank))
    return x


@trilu.reference
def _(x: np.ndarray, k: np.ndarray | None, *, upper: int) -> np.ndarray:
    """The upper (or lower) triangle of the last two axes, k diagonals off"""
    diagonal = 0 if k is None else int(k.ravel()[0])
    return np.triu(x, diagonal) if upper else np.tril(x, diagonal)


trilu.kernel("cpu", "copy_trilu", dtype=ANY)


reverse_sequence = define_op(
    "ReverseSequence", inputs="x sequence_lens", attrs={"batch_axis": 1, "time_axis": 0},
    source="ONNX ReverseSequence-10",
)  # fmt: skip
reverse_sequence.infer(same_type)


@reverse_sequence.reference
def _(x: np.ndarray, lengths: np.ndarray, *, batch_axis: int, time_axis: int) -> np.ndarray:
    """The first lengths[b] steps of each batch element in reverse order"""
    moved = np.moveaxis(x, (batch_axis, time_axis), (0, 1)).copy()
    for b, n in enumerate(lengths):
        moved[b, :n] = moved[b, :n][::-1]
    return np.moveaxis(moved, (0, 1), (batch_axis, time_axis)).copy()


@trilu.samples
def _(draw: Draw) -> Iterator[Sample]:
    for upper in (0, 1):
        for k in (-2, 0, 3, 100):
            yield Sample([draw(2, 5, 7), ints(k)], {"upper": upper})
