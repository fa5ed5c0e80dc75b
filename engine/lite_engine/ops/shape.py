"""Shape operators: those that only rename axes (views), and those that read shapes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError, UnsupportedOperatorError
from ..ir import Dim, DType, TypeInfo
from ._conditions import separate_axes
from ._core import define_op
from ._helpers import (
    ANY,
    broadcast_shapes,
    known_ints,
    normalise_axes,
    product,
    same_type,
    split_symbol,
    symbol_product,
    symbol_quotient,
    unknown_dims,
)
from ._records import Cost
from ._samples import Draw, Sample

_FREE = Cost(bytes=0)

# ---- views

identity = define_op(
    "Identity",
    transpose_rule="same",
    integer_form="view",
    quantized="follows",
    inputs="x",
    layout="view",
    source="ONNX Identity-25",
)
identity.infer(same_type)
identity.reference(lambda x: x)
identity.cost(lambda x: _FREE)

dropout = define_op(
    "Dropout", inputs="x ratio? training_mode?", outputs="y mask", attrs={"seed": 0}, layout="view",
    attr_inputs=("ratio", "training_mode"), source="ONNX Dropout-22, inference form",
)  # fmt: skip


@dropout.infer
def _(
    x: TypeInfo, ratio: TypeInfo | None, mode: TypeInfo | None, *, n_outputs: int, **_: Any
) -> list[TypeInfo]:
    return [same_type(x), TypeInfo(DType.BOOL, x.shape)][:n_outputs]


@dropout.reference
def _(
    x: np.ndarray, ratio: np.ndarray | None, mode: np.ndarray | None, *, seed: int, n_outputs: int
) -> Any:
    """y = x; the mask is all true"""
    if mode is not None and bool(mode) and (ratio is None or float(ratio) != 0):
        raise UnsupportedOperatorError(
            tr("Dropout in training mode"), fix=tr("export the model for inference")
        )
    return [x, np.ones(x.shape, bool)][:n_outputs]


reshape = define_op(
    "Reshape",
    integer_form="view", quantized="follows",
    inputs="x shape", attrs={"allowzero": 0}, layout="view", attr_inputs=("shape",),
    source="ONNX Reshape-25",
)  # fmt: skip


def _reshaped(dims: tuple[Dim, ...] | None, wanted: list[int], allowzero: int) -> tuple[Dim, ...]:
    """0 copies a dimension, −1 takes what is left."""
    if wanted.count(-1) > 1 or any(d < -1 for d in wanted):
        raise ShapeError(tr("shape {wanted} is not valid", wanted=wanted))
    out: list[Dim] = list(wanted)
    for i, d in enumerate(wanted):
        if d == 0 and not allowzero:
            if dims is not None and i >= len(dims):
                raise ShapeError(
                    tr(
                        "shape {wanted} copies axis {i} of a rank-{tensor} tensor",
                        wanted=wanted,
                        i=i,
                        tensor=len(dims),
                    )
                )
            out[i] = None if dims is None else dims[i]
    if -1 not in wanted:
        return tuple(out)
    at = wanted.index(-1)
    out[at] = None
    if dims is None:
        return tuple(out)
    copied = [i for i, d in enumerate(wanted) if d == 0 and not allowzero]
    left = [d for i, d in enumerate(dims) if i not in copied]
    out[at] = _filled(left, math.prod(d for d in wanted if d > 0 or (d == 0 and allowzero)))
    return tuple(out)


def _filled(dims: Sequence[Dim], over: int) -> Dim:
    """Elements of `dims` over a number: (64,7,7) over 1 is 3136, (9,N,8) over 4 is 18*(N)."""
    pairs = [split_symbol(d) for d in dims]
    times, symbols = math.prod(n for n, _ in pairs), [s for _, s in pairs if s != ""]
    if not symbols:
        return times // over if over else 0
    if len(symbols) > 1 or symbols[0] is None or not over or not times:
        return None
    if times % over == 0:
        return symbol_product(symbols[0], times // over)
    return symbol_quotient(symbols[0], 0, over // times) if over % times == 0 else None


@reshape.infer
def _(x: TypeInfo, shape: TypeInfo, *, allowzero: int) -> TypeInfo:
    wanted = known_ints(shape)
    if wanted is None:
        rank = shape.dims[0] if shape.shape is not None and len(shape.shape) == 1 else None
        return x.with_shape(unknown_dims(rank if isinstance(rank, int) else None))
    out = x.with_shape(_reshaped(x.shape, wanted, allowzero))
    if x.is_static and out.is_static and x.size != out.size:
        raise ShapeError(
            tr("{size} elements do not fill shape {wanted}", size=x.size, wanted=wanted)
        )
    return out


@reshape.reference
def _(x: np.ndarray, shape: np.ndarray, *, allowzero: int) -> np.ndarray:
    """Same elements, another shape; 0 copies a dimension (unless allowzero), −1 is what is left"""
    return x.reshape([int(d or 0) for d in _reshaped(x.shape, [int(d) for d in shape], allowzero)])


reshape.cost(lambda x, shape, **_: _FREE)

squeeze = define_op(
    "Squeeze",
    transpose_rule="squeeze",
    integer_form="view", quantized="follows",
    inputs="x axes?", layout="view", attr_inputs=("axes",), axis_attrs=("axes",),
    source="ONNX Squeeze-25",
)  # fmt: skip


@squeeze.infer
def _(x: TypeInfo, axes: TypeInfo | None) -> TypeInfo:
    if axes is None:
        if not x.is_static:
            return x.with_shape(None)
        return x.with_shape(tuple(d for d in x.dims if d != 1))
    given = known_ints(axes)
    if given is None:
        count = axes.dims[0] if axes.shape else 1
        return x.with_shape(unknown_dims(x.rank - count if isinstance(count, int) else None))
    gone = normalise_axes(given, x.rank)
    for i in gone:
        if isinstance(x.dims[i], int) and x.dims[i] != 1:
            raise ShapeError(tr("axis {i} has size {dims}, not 1", i=i, dims=x.dims[i]))
    return x.with_shape(tuple(d for i, d in enumerate(x.dims) if i not in gone))


@squeeze.reference
def _(x: np.ndarray, axes: np.ndarray | None) -> np.ndarray:
    """Drops axes of size 1"""
    return np.squeeze(x) if axes is None else np.squeeze(x, tuple(int(a) for a in axes.ravel()))


squeeze.cost(lambda x, axes: _FREE)

unsqueeze = define_op(
    "Unsqueeze",
    transpose_rule="unsqueeze",
    integer_form="view", quantized="follows",
    inputs="x axes", layout="view", attr_inputs=("axes",), axis_attrs=("axes",),
    source="ONNX Unsqueeze-25; axes are those of the output",
)  # fmt: skip


@unsqueeze.infer
def _(x: TypeInfo, axes: TypeInfo) -> TypeInfo:
    given = known_ints(axes)
    if given is None:
        count = axes.dims[0] if axes.shape else 1
        return x.with_shape(unknown_dims(x.rank + count if isinstance(count, int) else None))
    new = normalise_axes(given, x.rank + len(given))
    rest = iter(x.dims)
    return x.with_shape(tuple(1 if i in new else next(rest) for i in range(x.rank + len(given))))


@unsqueeze.reference
def _(x: np.ndarray, axes: np.ndarray) -> np.ndarray:
    """Inserts axes of size 1"""
    return np.expand_dims(x, tuple(int(a) for a in axes.ravel()))


unsqueeze.cost(lambda x, axes: _FREE)

flatten = define_op(
    "Flatten",
    integer_form="view",
    quantized="follows",
    inputs="x",
    attrs={"axis": 1},
    layout="view",
    axis_attrs=("axis",),
    source="ONNX Flatten-25",
)


@flatten.infer
def _(x: TypeInfo, *, axis: int) -> TypeInfo:
    at = axis + x.rank if axis < 0 else axis
    if not 0 <= at <= x.rank:
        raise ShapeError(tr("axis {axis} is outside a rank-{rank} tensor", axis=axis, rank=x.rank))

    def joined(dims: tuple[Dim, ...]) -> Dim:
        if len(dims) == 1:
            return dims[0]
        return product(dims) if all(isinstance(d, int) for d in dims) else None

    return x.with_shape((joined(x.dims[:at]), joined(x.dims[at:])))


@flatten.reference
def _(x: np.ndarray, *, axis: int) -> np.ndarray:
    """(d0·…·d(axis−1), the rest)"""
    at = axis + x.ndim if axis < 0 else axis
    return x.reshape(math.prod(x.shape[:at]), math.prod(x.shape[at:]))


flatten.cost(lambda x, **_: _FREE)

transpose = define_op(
    "Transpose",
    integer_form="view",
    quantized="follows",
    inputs="x",
    attrs={"perm": []},
    layout="view",
    source="ONNX Transpose-25",
)


@transpose.infer
def _(x: TypeInfo, *, perm: list[int]) -> TypeInfo:
    order = normalise_axes(perm, x.rank) if perm else list(range(x.rank))[::-1]
    if len(order) != x.rank:
        raise ShapeError(
            tr("perm {perm} does not fit an input of rank {rank}", perm=perm, rank=x.rank)
        )
    return x.with_shape(tuple(x.dims[i] for i in order))


@transpose.reference
def _(x: np.ndarray, *, perm: list[int]) -> np.ndarray:
    """y axis i is x axis perm[i]"""
    return np.transpose(x, perm or None)


# ---- shapes as values

shape = define_op(
    "Shape", inputs="x", attrs={"start": 0, "end": None}, source="ONNX Shape-25", of_shapes=True
)


@shape.infer
def _(x: TypeInfo, *, start: int, end: int | None) -> TypeInfo:
    if x.shape is None:
        return TypeInfo(DType.I64, (None,))
    dims = x.shape[_span(start, end, len(x.shape))]
    known = all(isinstance(d, int) for d in dims)
    return TypeInfo(DType.I64, (len(dims),), np.array(dims, np.int64) if known else None)


def _span(start: int, end: int | None, rank: int) -> slice:
    begin = max(0, start + rank if start < 0 else start)
    stop = rank if end is None else max(0, end + rank if end < 0 else end)
    return slice(begin, stop)


@shape.reference
def _(x: np.ndarray, *, start: int, end: int | None) -> np.ndarray:
    """Dimensions start…end as i64"""
    return np.array(x.shape[_span(start, end, x.ndim)], np.int64)


shape.cost(lambda x, **_: _FREE)

size = define_op("Size", inputs="x", source="ONNX Size-25", of_shapes=True)
size.infer(lambda x: TypeInfo(DType.I64, ()))
size.reference(lambda x: np.array(x.size, np.int64))
size.cost(lambda x: _FREE)

expand = define_op(
    "Expand",
    integer_form="view",
    quantized="follows",
    inputs="x shape",
    attr_inputs=("shape",),
    source="ONNX Expand-13",
)


@expand.infer
def _(x: TypeInfo, shape: TypeInfo) -> TypeInfo:
    wanted = known_ints(shape)
    if wanted is None:
        return x.with_shape(None)
    return x.with_shape(broadcast_shapes(x.dims, tuple(wanted)))


@expand.reference
def _(x: np.ndarray, shape: np.ndarray) -> np.ndarray:
    """Broadcasts x with shape, both ways"""
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(int(d) for d in shape))).copy()


expand.cost(lambda x, shape: Cost())
expand.kernel("cpu", "copy_expand", dtype=ANY)

expand.kernel("opencl", "copy_expand", dtype=ANY, when=separate_axes)


@expand.samples
def _(draw: Draw) -> Iterator[Sample]:
    for shape in ((3, 4, 5), (2, 3, 1, 5), (1,), (2, 3, 4, 5)):
        yield Sample([draw(3, 1, 5), np.array(shape, np.int64)])
