"""Reading and writing at computed places: Gather*, Scatter*, OneHot, Compress."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Dim, Node, TypeInfo
from ._conditions import all_of, of_type, separate_axes
from ._core import define_op
from ._helpers import ANY, normalise_axis, same_type
from ._records import Cost
from ._samples import Draw, Sample

# Indices that are constants have to be places of the data. Those that are computed may be out of
# range, which ONNX leaves open: such a place reads zeros and is not written, on every backend.


def _check_places(indices: TypeInfo, size: Dim) -> None:
    """Raises ShapeError for a constant index outside −size…size−1."""
    if indices.const is None or not isinstance(size, int) or not indices.const.size:
        return
    low, high = int(indices.const.min()), int(indices.const.max())
    if low < -size or high >= size:
        raise ShapeError(
            tr(
                "index {high} is outside an axis of {size} elements",
                high=high if high >= size else low,
                size=size,
            )
        )


def _places(indices: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices counted from the front (0 where out of range), and whether they are in range."""
    at = np.where(indices < 0, indices + size, indices)
    good = (at >= 0) & (at < size)
    return np.where(good, at, 0).astype(np.intp, copy=False), good


gather = define_op(
    "Gather",
    transpose_rule="gather",
    weights={0: 0},
    integer_form="view",
    quantized="follows",
    inputs="x indices",
    attrs={"axis": 0},
    source="ONNX Gather-13",
)


@gather.infer
def _(x: TypeInfo, indices: TypeInfo, *, axis: int) -> TypeInfo:
    at = normalise_axis(axis, x.rank)
    _check_places(indices, x.dims[at])
    return x.with_shape((*x.dims[:at], *indices.dims, *x.dims[at + 1 :]))


@gather.reference
def _(x: np.ndarray, indices: np.ndarray, *, axis: int) -> np.ndarray:
    """y[…, i, …] = x[…, indices[i], …] along axis; negative indices count from the end"""
    axis %= x.ndim
    at, good = _places(indices, x.shape[axis])
    if good.all():
        return np.take(x, at, axis)
    if not x.shape[axis]:
        return np.zeros((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype)
    good = good.reshape(*good.shape, *[1] * (x.ndim - axis - 1))
    return np.where(good, np.take(x, at, axis), np.zeros((), x.dtype))


gather.cost(lambda *_, **__: Cost())
gather.kernel("cpu", "copy_gather", dtype=ANY)

gather_elements = define_op(
    "GatherElements", inputs="x indices", attrs={"axis": 0}, source="ONNX GatherElements-13"
)


@gather_elements.infer
def _(x: TypeInfo, indices: TypeInfo, *, axis: int) -> TypeInfo:
    _check_places(indices, x.dims[normalise_axis(axis, x.rank)])
    return x.with_shape(indices.shape)


@gather_elements.reference
def _(x: np.ndarray, indices: np.ndarray, *, axis: int) -> np.ndarray:
    """y[i,j,k] = x[indices[i,j,k], j, k] for axis 0"""
    window = tuple(
        slice(None) if i == axis % x.ndim else slice(0, d) for i, d in enumerate(indices.shape)
    )
    if not x.shape[axis]:
        return np.zeros(indices.shape, x.dtype)
    at, good = _places(indices, x.shape[axis])
    return np.where(good, np.take_along_axis(x[window], at, axis), np.zeros((), x.dtype))


gather_elements.kernel("cpu", "copy_gather_elements", dtype=ANY)
gather_elements.kernel(
    "opencl", "gather_elements", dtype=ANY, when=all_of(of_type(1, dtype="i64,i32"), separate_axes)
)


def _check_tuples(indices: TypeInfo, sizes: tuple[Dim, ...]) -> None:
    """`_check_places` for the last axis of `indices`, which has a place per axis of the data."""
    if indices.const is not None:
        for k, size in enumerate(sizes):
            _check_places(TypeInfo.of(indices.const[..., k]), size)


def _tuples(indices: np.ndarray, sizes: tuple[int, ...]) -> tuple[list[np.ndarray], np.ndarray]:
    """`_places` for the last axis of `indices`: one array per axis, and where all are in range."""
    pairs = [_places(indices[..., k], sizes[k]) for k in range(indices.shape[-1])]
    good = np.ones(indices.shape[:-1], bool)
    for _, fits in pairs:
        good &= fits
    return [at for at, _ in pairs], good


gather_nd = define_op(
    "GatherND", inputs="x indices", attrs={"batch_dims": 0}, source="ONNX GatherND-13"
)


@gather_nd.infer
def _(x: TypeInfo, indices: TypeInfo, *, batch_dims: int) -> TypeInfo:
    depth = indices.dims[-1]
    if not isinstance(depth, int):
        return x.with_shape(None)
    _check_tuples(indices, x.dims[batch_dims : batch_dims + depth])
    return x.with_shape((*indices.dims[:-1], *x.dims[batch_dims + depth :]))


@gather_nd.reference
def _(x: np.ndarray, indices: np.ndarray, *, batch_dims: int) -> np.ndarray:
    """y[…] = x[batch, indices[…, :]]"""
    batch = indices.shape[:batch_dims]
    grids = np.meshgrid(*[np.arange(d) for d in batch], indexing="ij")
    extra = indices.ndim - 1 - batch_dims
    leading = tuple(g.reshape(*batch, *[1] * extra) for g in grids)
    at, good = _tuples(indices, x.shape[batch_dims:])
    y = x[(*leading, *at)] if x.size else np.zeros(good.shape + x.shape[batch_dims + len(at) :])
    return np.where(good.reshape(*good.shape, *[1] * (y.ndim - good.ndim)), y, 0).astype(x.dtype)


gather_nd.kernel("cpu", "copy_gather_nd", dtype=ANY)


def _few_axes(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """At most six axes have a place each in an index: what the device's kernel takes."""
    indices = types[1]
    assert indices is not None
    depth = indices.dims[-1]
    return (isinstance(depth, int) and depth <= 6) or tr("more than six axes")


gather_nd.kernel(
    "opencl", "gather_nd", dtype=ANY, when=all_of(of_type(1, dtype="i64,i32"), _few_axes)
)


# ---- scatter


def _combine(y: np.ndarray, at: Any, updates: np.ndarray, reduction: str) -> None:
    """y[at] = updates, or y[at] (+ · max min)= updates, with repeated places."""
    if reduction == "none":
        y[at] = updates
        return
    ufuncs = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
    if reduction not in ufuncs:
        raise ShapeError(tr("the reduction {reduction!r} is not known", reduction=reduction))
    ufuncs[reduction].at(y, at, updates)


scatter_elements = define_op(
    "ScatterElements", inputs="x indices updates", attrs={"axis": 0, "reduction": "none"},
    carries=slice(0, 3, 2), source="ONNX ScatterElements-18",
)  # fmt: skip


@scatter_elements.infer
def _(x: TypeInfo, indices: TypeInfo, updates: TypeInfo, *, axis: int, **_: Any) -> TypeInfo:
    if x.shape is not None:
        _check_places(indices, x.dims[normalise_axis(axis, x.rank)])
    return same_type(x)


@scatter_elements.reference
def _(
    x: np.ndarray, indices: np.ndarray, updates: np.ndarray, *, axis: int, reduction: str
) -> np.ndarray:
    """y[indices[i,j,k], j, k] = updates[i,j,k] for axis 0"""
    y = x.copy()
    at: list[np.ndarray] = list(np.indices(indices.shape, sparse=True))
    axis %= x.ndim
    at[axis], good = _places(indices, x.shape[axis])
    places = tuple(np.broadcast_to(a, indices.shape)[good] for a in at)
    _combine(y, places, updates[good], reduction)
    return y


def _no_reduction(node: Node, types: list[TypeInfo | None]) -> bool | str:
    return node.attrs.get("reduction", "none") == "none" or tr("it has a reduction")


scatter_elements.kernel("cpu", "copy_scatter_elements", dtype=ANY, when=_no_reduction)

scatter_nd = define_op(
    "ScatterND", inputs="x indices updates", attrs={"reduction": "none"}, carries=slice(0, 3, 2),
    source="ONNX ScatterND-18",
)  # fmt: skip


@scatter_nd.infer
def _(x: TypeInfo, indices: TypeInfo, updates: TypeInfo, **_: Any) -> TypeInfo:
    if x.shape is not None and indices.const is not None:
        _check_tuples(indices, x.dims[: indices.const.shape[-1]])
    return same_type(x)


@scatter_nd.reference
def _(x: np.ndarray, indices: np.ndarray, updates: np.ndarray, *, reduction: str) -> np.ndarray:
    """y[indices[…, :]] = updates[…]"""
    y = x.copy()
    at, good = _tuples(indices, x.shape)
    _combine(y, tuple(a[good] for a in at), updates[good], reduction)
    return y


scatter_nd.kernel("cpu", "copy_scatter_nd", dtype=ANY, when=_no_reduction)

tensor_scatter = define_op(
    "TensorScatter", inputs="past update write_indices?", attrs={"axis": -2, "mode": "linear"},
    source="ONNX TensorScatter-24",
)  # fmt: skip
tensor_scatter.infer(same_type)


@tensor_scatter.reference
def _(
    past: np.ndarray, update: np.ndarray, starts: np.ndarray | None, *, axis: int, mode: str
) -> np.ndarray:
    """A cache updated: `update` is written from starts[b] on along axis, per batch element b"""
    y = np.moveaxis(past.copy(), axis, 1)
    new = np.moveaxis(update, axis, 1)
    for b in range(y.shape[0]):
        at = (0 if starts is None else int(starts[b])) + np.arange(new.shape[1])
        y[b, at % y.shape[1] if mode == "circular" else at] = new[b]
    return np.moveaxis(y, 1, axis).copy()


# ---- one-hot, compress

one_hot = define_op(
    "OneHot", inputs="indices depth values", attrs={"axis": -1}, source="ONNX OneHot-11"
)


@one_hot.infer
def _(indices: TypeInfo, depth: TypeInfo, values: TypeInfo, *, axis: int) -> TypeInfo:
    at = normalise_axis(axis, indices.rank + 1)
    n: Dim = None if depth.const is None else int(depth.const.ravel()[0])
    return TypeInfo(values.dtype, (*indices.dims[:at], n, *indices.dims[at:]))


@one_hot.reference
def _(indices: np.ndarray, depth: np.ndarray, values: np.ndarray, *, axis: int) -> np.ndarray:
    """values[1] at the index, cut to a whole number, along a new axis, values[0] elsewhere"""
    n = int(depth.ravel()[0])
    at = axis % (indices.ndim + 1)
    indices = indices.astype(np.int64, copy=False)
    wanted = np.where(indices < 0, indices + n, indices)
    choices = np.arange(n).reshape([-1 if i == at else 1 for i in range(indices.ndim + 1)])
    hit = np.expand_dims(wanted, at) == choices
    return np.where(hit, values[1], values[0]).astype(values.dtype)


one_hot.kernel("cpu", "copy_one_hot", dtype=ANY)

compress = define_op(
    "Compress", inputs="x condition", attrs={"axis": None}, source="ONNX Compress-11"
)


@compress.infer
def _(x: TypeInfo, condition: TypeInfo, *, axis: int | None) -> TypeInfo:
    kept: Dim = None if condition.const is None else int(np.count_nonzero(condition.const))
    if axis is None:
        return x.with_shape((kept,))
    at = normalise_axis(axis, x.rank)
    return x.with_shape((*x.dims[:at], kept, *x.dims[at + 1 :]))


@compress.reference
def _(x: np.ndarray, condition: np.ndarray, *, axis: int | None) -> np.ndarray:
    """The slices along axis (elements when no axis) where condition holds"""
    return np.compress(condition, x, axis)


array_feature_extractor = define_op(
    "ArrayFeatureExtractor", inputs="x indices", source="ai.onnx.ml ArrayFeatureExtractor-1"
)
array_feature_extractor.infer(
    lambda x, y: x.with_shape((*(x.dims[:-1] or (1,)), y.size if y.is_static else None))
)
array_feature_extractor.reference(lambda x, y: np.atleast_2d(np.take(x, y.ravel(), -1)))

gather.kernel("opencl", "copy_gather", dtype=ANY, when=of_type(1, dtype="i64,i32"))


@gather.samples
def _(draw: Draw) -> Iterator[Sample]:
    for axis in (0, 1, -1):
        for dtype in (np.int32, np.int64):
            yield Sample([draw(4, 5, 17), draw.ints(-4, 4, 2, 3, dtype=dtype)], {"axis": axis})
    yield Sample([draw(4, 5), np.array(2)], {"axis": 1})


@gather_elements.samples
def _(draw: Draw) -> Iterator[Sample]:
    for axis in (0, 1, -1):
        shape = [4, 5, 6]
        shape[axis] = 3
        yield Sample([draw(4, 5, 6), draw.ints(-4, 4, *shape)], {"axis": axis})


@gather_nd.samples
def _(draw: Draw) -> Iterator[Sample]:
    yield Sample([draw(4, 5, 6), draw.ints(0, 4, 7, 2)])
    yield Sample([draw(3, 7, 5), draw.ints(-5, 5, 2, 4, 3)])
    yield Sample([draw(4, 5, 6), draw.ints(-5, 5, 4, 3, 1)], {"batch_dims": 1})


@scatter_elements.samples
def _(draw: Draw) -> Iterator[Sample]:
    at = np.stack([draw.rng.permutation(4) for _ in range(5)], 1)[:3, :, None]
    yield Sample([draw(4, 5, 6), at.astype(np.int64), draw(3, 5, 1)])


@scatter_nd.samples
def _(draw: Draw) -> Iterator[Sample]:
    yield Sample([draw(4, 5, 6), np.array([[0, 1], [3, 4], [2, 2]]), draw(3, 6)])


@one_hot.samples
def _(draw: Draw) -> Iterator[Sample]:
    for axis in (-1, 0, 1):
        at = draw.ints(0 if draw.dtype.np.kind in "ub" else -4, 4, 2, 3, dtype=draw.dtype.np)
        yield Sample([at, np.array([4]), np.array([0, 1], np.float32)], {"axis": axis})
