"""QLookup: any function of one 8-bit number as a table of 256 answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import DType, TypeInfo
from ._conditions import byte_output
from ._core import REQUIRED, define_op
from ._records import Cost
from ._samples import Draw, Sample

qlookup = define_op(
    "QLookup",
    inputs="x",
    attrs={"table": REQUIRED, "output_dtype": ""},
    layout="elementwise",
    source="ours",
    tolerance=0,
)


@qlookup.infer
def _(x: TypeInfo, *, table: Sequence[int], output_dtype: str) -> TypeInfo:
    if x.dtype not in (DType.I8, DType.U8) or len(table) != 256:
        raise ShapeError(
            tr(
                "needs an 8-bit input and 256 entries, got {dtype} and {count}",
                dtype=x.dtype,
                count=len(table),
            )
        )
    return x.with_dtype(DType(output_dtype) if output_dtype else x.dtype)


@qlookup.reference
def _(x: np.ndarray, *, table: Sequence[int], output_dtype: str) -> np.ndarray:
    """y = table[x − lowest value of x's type]; entry 0 answers −128 of i8 and 0 of u8"""
    dtype = DType(output_dtype).np if output_dtype else x.dtype
    index = x.astype(np.int16) - np.iinfo(x.dtype).min
    return np.asarray(table, dtype)[index]


@qlookup.cost
def _(x: TypeInfo, *, table: Sequence[int], output_dtype: str) -> Cost:
    return Cost(flops=x.size)


qlookup.kernel(
    "cpu", "i8_table", dtype="i8,u8", accepts_pitch=True, in_place=True, when=byte_output
)
qlookup.kernel("opencl", "i8_table", dtype="i8,u8", when=byte_output)


@qlookup.samples
def _(draw: Draw) -> Iterator[Sample]:
    for answer in (DType.I8, DType.U8):
        table = Draw(answer, "table").full(256).tolist()
        every = np.arange(256).astype(draw.dtype.np)
        for x in (every, every.reshape(4, 64), draw.full(2, 3, 5, 19)):
            yield Sample([x], {"table": table, "output_dtype": str(answer)})
