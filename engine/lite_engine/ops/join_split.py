"""Parts of a tensor, and tensors joined: Slice, Split, Concat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Dim, TypeInfo
from ._conditions import separate_axes
from ._core import REQUIRED, define_op
from ._helpers import ANY, known_ints, normalise_axes, normalise_axis, slice_of, unknown_dims
from ._records import Cost
from ._samples import Draw, Sample, ints

_MOVE = Cost()

# ---- Slice

slice_op = define_op(
    "Slice",
    transpose_rule="slice",
    integer_form="view", quantized="follows",
    inputs="x starts ends axes? steps?", layout="axis",
    attr_inputs=("starts", "ends", "axes", "steps"), axis_attrs=("axes",),
    source="ONNX Slice-13; importers always give axes",
)  # fmt: skip


#: An end that no size reaches: exporters write it for "to the last".
_NO_END = (1 << 31) - 1


def slices_of(
    dims: Sequence[Dim],
    starts: list[int] | None,
    ends: list[int] | None,
    axes: list[int] | None,
    steps: list[int] | None,
) -> list[slice]:
    """One slice per axis. Raises ShapeError."""
    starts, ends = starts or [], ends or []
    axes = list(range(len(starts))) if axes is None else axes
    steps = [1] * len(starts) if steps is None else steps
    if not len(starts) == len(ends) == len(axes) == len(steps):
        raise ShapeError(
            tr(
                "starts, ends, axes and steps must have the same length, found "
                "{starts}, {ends}, {axes} and {steps}",
                starts=len(starts),
                ends=len(ends),
                axes=len(axes),
                steps=len(steps),
            )
        )
    out = [slice(None)] * len(dims)
    for start, end, axis, step in zip(starts, ends, normalise_axes(axes, len(dims)), steps):
        if step == 0:
            raise ShapeError(tr("a step of a slice must not be 0"))
        out[axis] = slice_of(start, end, step, dims[axis])
    return out


@slice_op.infer
def _(
    x: TypeInfo, starts: TypeInfo, ends: TypeInfo, axes: TypeInfo | None, steps: TypeInfo | None
) -> TypeInfo:
    given = [None if v is None else known_ints(v) for v in (starts, ends, axes, steps)]
    if any(v is not None and g is None for v, g in zip((starts, ends, axes, steps), given)):
        touched = known_ints(axes)
        if touched is None or x.shape is None:
            return x.with_shape(unknown_dims(None if x.shape is None else x.rank))
        gone = normalise_axes(touched, x.rank)
        return x.with_shape(tuple(None if i in gone else d for i, d in enumerate(x.dims)))
    out: list[Dim] = []
    for d, s in zip(x.dims, slices_of(x.dims, *given)):
        if s == slice(None) or (s.start == 0 and s.stop >= _NO_END and s.step == 1):
            out.append(d)
        else:
            out.append(len(range(*s.indices(d))) if isinstance(d, int) else None)
    return x.with_shape(tuple(out))


@slice_op.reference
def _(x: np.ndarray, *inputs: np.ndarray | None) -> np.ndarray:
    """x[start:end:step] per named axis; ends are clamped"""
    given = [None if v is None else [int(i) for i in v.ravel()] for v in inputs]
    return x[tuple(slices_of(x.shape, *given))].copy()


slice_op.cost(lambda x, *_: _MOVE)
slice_op.kernel("cpu", "copy_slice", accepts_pitch=True, dtype=ANY)

# ---- Split and Concat

split = define_op(
    "Split",
    transpose_rule="axis",
    integer_form="keep",
    quantized="follows",
    inputs="x split?",
    outputs="*ys",
    attrs={"axis": 0, "num_outputs": None},
    layout="axis",
    attr_inputs=("split",),
    axis_attrs=("axis",),
    source="ONNX Split-18",
)


def _parts(size: int, given: list[int] | None, count: int) -> list[int]:
    """Sizes of the parts; equal ones with a smaller last one when not given."""
    if given is not None:
        if sum(given) != size or len(given) != count:
            raise ShapeError(
                tr(
                    "the parts {given} do not add up to an axis of {size}, or are not one "
                    "for each output",
                    given=given,
                    size=size,
                )
            )
        return given
    each = -(-size // count)
    parts = [max(0, min(each, size - i * each)) for i in range(count)]
    return parts


@split.infer
def _(
    x: TypeInfo, sizes: TypeInfo | None, *, axis: int, num_outputs: int | None, n_outputs: int
) -> list[TypeInfo]:
    at = normalise_axis(axis, x.rank)
    given, d = known_ints(sizes), x.dims[at]
    if isinstance(d, int) and (sizes is None or given is not None):
        parts: list[Dim] = list(_parts(d, given, n_outputs))
    else:
        parts = list(given) if given else [None] * n_outputs
    return [x.with_shape((*x.dims[:at], p, *x.dims[at + 1 :])) for p in parts]


@split.reference
def _(
    x: np.ndarray, sizes: np.ndarray | None, *, axis: int, num_outputs: int | None, n_outputs: int
) -> Any:
    """Consecutive parts along axis"""
    given = None if sizes is None else [int(v) for v in sizes]
    ends = np.cumsum(_parts(x.shape[axis], given, n_outputs))[:-1]
    return np.split(x, ends, axis)


split.cost(lambda *_, **__: _MOVE)
split.kernel("cpu", "copy_split", accepts_pitch=True, dtype=ANY)

concat = define_op(
    "Concat",
    carries=slice(None),
    integer_form="concat", quantized="joins",
    inputs="*xs", attrs={"axis": REQUIRED}, layout="axis", axis_attrs=("axis",),
    source="ONNX Concat-13",
)  # fmt: skip


@concat.infer
def _(*xs: TypeInfo, axis: int) -> TypeInfo:
    if not xs:
        raise ShapeError(tr("Concat needs at least one input"))
    rank = xs[0].rank
    at = normalise_axis(axis, rank)
    out: list[Dim] = list(xs[0].dims)
    for x in xs[1:]:
        if x.rank != rank:
            raise ShapeError(
                tr("the inputs have different ranks, {rank} and {other}", rank=rank, other=x.rank)
            )
        for i, d in enumerate(x.dims):
            if i == at:
                continue
            if isinstance(d, int) and isinstance(out[i], int) and d != out[i]:
                raise ShapeError(
                    tr("the inputs differ on axis {i}: {out} and {d}", i=i, out=out[i], d=d)
                )
            out[i] = d if isinstance(d, int) or out[i] is None else out[i]
    parts = [x.dims[at] for x in xs]
    out[at] = sum(parts) if all(isinstance(d, int) for d in parts) else None  # type: ignore[arg-type]
    return xs[0].with_shape(tuple(out))


@concat.reference
def _(*xs: np.ndarray, axis: int) -> np.ndarray:
    """Inputs one after the other along axis"""
    return np.concatenate(xs, axis)


concat.cost(lambda *_, **__: _MOVE)
concat.kernel("cpu", "copy_concat", accepts_pitch=True, dtype=ANY)

for _op in (slice_op, split, concat):
    in_parts = _op is concat
    _op.kernel("opencl", _op.kernels[0].name, dtype=ANY, when=separate_axes, accepts_pitch=in_parts)


@slice_op.samples
def _(draw: Draw) -> Iterator[Sample]:
    for starts, ends, axes, steps in (
        ([1], [4], [0], [1]), ([0, 2], [9, 5], [1, 2], [1, 1]), ([-3], [2**63 - 1], [-1], [1]),
        ([-1], [-(2**63)], [1], [-1]), ([5, 0], [1, 100], [0, 2], [-2, 3]), ([3], [3], [0], [1]),
        ([-10], [-100], [1], [-1]),
    ):  # fmt: skip
        yield Sample([draw(6, 8, 33), *(ints(*v) for v in (starts, ends, axes, steps))])
    yield Sample([draw(1, 6, 5, 7), ints(1, 1), ints(5, 4), ints(1, 3)])


@split.samples
def _(draw: Draw) -> Iterator[Sample]:
    for axis in (0, 1, -1):
        shape = [3, 5, 6]
        shape[axis] = 12
        yield Sample([draw(*shape), ints(1, 4, 7)], {"axis": axis}, outputs=3)
        yield Sample([draw(*shape)], {"axis": axis, "num_outputs": 5}, outputs=5)
    yield Sample([draw(1, 40, 5, 7), ints(17, 23)], {"axis": 1}, outputs=2)


@concat.samples
def _(draw: Draw) -> Iterator[Sample]:
    for axis in (0, 1, -1):
        parts = []
        for n in (1, 4, 33):
            shape = [3, 5, 6]
            shape[axis] = n
            parts.append(draw(*shape))
        yield Sample(parts, {"axis": axis})
    yield Sample([draw(1, 3, 4, 5), draw(1, 6, 4, 5)], {"axis": 1})
