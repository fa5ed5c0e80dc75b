"""Moving elements without computing: Slice, Split, Concat, Pad, Tile, DepthToSpace, Trilu, …"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir import Dim, TypeInfo
from ._conditions import all_of, attr, separate_axes
from ._core import REQUIRED, Cost, define_op
from ._helpers import (
    ANY,
    check_choice,
    known_ints,
    normalise_axes,
    normalise_axis,
    same_type,
    unknown_dims,
)
from ._samples import Draw, Sample

_MOVE = Cost()

# ---- Slice

slice_op = define_op(
    "Slice",
    integer_form="view", quantized="follows",
    inputs="x starts ends axes? steps?", layout="axis",
    attr_inputs=("starts", "ends", "axes", "steps"), axis_attrs=("axes",),
    source="ONNX Slice-13; importers always give axes",
)  # fmt: skip


#: An end that no size reaches: exporters write it for "to the last".
_NO_END = (1 << 31) - 1


def slices_of(
    rank: int,
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
            f"{len(starts)} starts, {len(ends)} ends, {len(axes)} axes, {len(steps)} steps"
        )
    out = [slice(None)] * rank
    for start, end, axis, step in zip(starts, ends, normalise_axes(axes, rank), steps):
        if step == 0:
            raise ShapeError("step 0")
        out[axis] = slice(start, end, step)  # Python clamps as ONNX does, backwards too
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
    for d, s in zip(x.dims, slices_of(x.rank, *given)):
        if s == slice(None) or (s.start == 0 and s.stop >= _NO_END and s.step == 1):
            out.append(d)
        else:
            out.append(len(range(*s.indices(d))) if isinstance(d, int) else None)
    return x.with_shape(tuple(out))


@slice_op.reference
def _(x: np.ndarray, *inputs: np.ndarray | None) -> np.ndarray:
    """x[start:end:step] per named axis; ends are clamped"""
    given = [None if v is None else [int(i) for i in v.ravel()] for v in inputs]
    return x[tuple(slices_of(x.ndim, *given))].copy()


slice_op.cost(lambda x, *_: _MOVE)
slice_op.kernel("cpu", "copy_slice", accepts_pitch=True, dtype=ANY)

# ---- Split and Concat

split = define_op(
    "Split",
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
            raise ShapeError(f"parts {given} of an axis of {size}")
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
    integer_form="concat", quantized="joins",
    inputs="*xs", attrs={"axis": REQUIRED}, layout="axis", axis_attrs=("axis",),
    source="ONNX Concat-13",
)  # fmt: skip


@concat.infer
def _(*xs: TypeInfo, axis: int) -> TypeInfo:
    if not xs:
        raise ShapeError("nothing to join")
    rank = xs[0].rank
    at = normalise_axis(axis, rank)
    out: list[Dim] = list(xs[0].dims)
    for x in xs[1:]:
        if x.rank != rank:
            raise ShapeError(f"ranks {rank} and {x.rank}")
        for i, d in enumerate(x.dims):
            if i == at:
                continue
            if isinstance(d, int) and isinstance(out[i], int) and d != out[i]:
                raise ShapeError(f"axis {i} is {out[i]} and {d}")
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

# ---- Pad and Tile

pad = define_op(
    "Pad",
    integer_form="keep",
    inputs="x pads value? axes?", attrs={"mode": "constant"}, layout="axis",
    attr_inputs=("pads", "value", "axes"), axis_attrs=("axes",), per_axis_attrs=("pads",),
    source="ONNX Pad-25", choices={"mode": ("constant", "edge", "reflect", "wrap")},
)  # fmt: skip


def _widths(rank: int, pads: list[int], axes: list[int] | None) -> list[tuple[int, int]]:
    chosen = normalise_axes(axes, rank) if axes is not None else list(range(rank))
    if len(pads) != 2 * len(chosen):
        raise ShapeError(f"{len(pads)} pads for {len(chosen)} axes")
    out = [(0, 0)] * rank
    for i, axis in enumerate(chosen):
        out[axis] = (pads[i], pads[len(chosen) + i])
    return out


@pad.infer
def _(
    x: TypeInfo, pads: TypeInfo, value: TypeInfo | None, axes: TypeInfo | None, *, mode: str
) -> TypeInfo:
    given = known_ints(pads)
    if given is None or (axes is not None and axes.const is None):
        return x.with_shape(unknown_dims(x.rank))
    widths = _widths(x.rank, given, known_ints(axes))
    out = tuple(
        d + sum(w) if isinstance(d, int) else d if w == (0, 0) else None
        for d, w in zip(x.dims, widths)
    )
    if any(isinstance(d, int) and d < 0 for d in out):
        raise ShapeError(f"pads {given} remove more than there is")
    return x.with_shape(out)


@pad.reference
def _(
    x: np.ndarray, pads: np.ndarray, value: np.ndarray | None, axes: np.ndarray | None, *, mode: str
) -> np.ndarray:
    """Elements added (or cut, when negative) at both ends of axes: constant, edge, reflect, wrap"""
    chosen = None if axes is None else [int(a) for a in axes]
    widths = _widths(x.ndim, [int(p) for p in pads], chosen)
    kept = x[tuple(slice(max(0, -b), d - max(0, -e)) for (b, e), d in zip(widths, x.shape))]
    grown = [(max(0, b), max(0, e)) for b, e in widths]
    if mode == "constant":
        return np.pad(kept, grown, constant_values=0 if value is None else value.ravel()[0])
    if mode not in ("edge", "reflect", "wrap"):
        raise ShapeError(f"mode {mode!r}")
    return np.pad(kept, grown, mode=mode)  # type: ignore[call-overload]


pad.cost(lambda *_, **__: _MOVE)
pad.kernel("cpu", "copy_pad", dtype=ANY, accepts_pitch=True, accepts_halo=True)

tile = define_op(
    "Tile",
    inputs="x repeats",
    layout="axis",
    attr_inputs=("repeats",),
    per_axis_attrs=("repeats",),
    source="ONNX Tile-13",
)


@tile.infer
def _(x: TypeInfo, repeats: TypeInfo) -> TypeInfo:
    given = known_ints(repeats)
    if given is None:
        return x.with_shape(unknown_dims(x.rank))
    if len(given) != x.rank or any(r < 0 for r in given):
        raise ShapeError(f"repeats {given} for rank {x.rank}")
    return x.with_shape(
        tuple(d * r if isinstance(d, int) else d if r == 1 else None for d, r in zip(x.dims, given))
    )


@tile.reference
def _(x: np.ndarray, repeats: np.ndarray) -> np.ndarray:
    """x repeated along every axis"""
    return np.tile(x, tuple(int(r) for r in repeats))


tile.cost(lambda *_, **__: _MOVE)
tile.kernel("cpu", "copy_tile", dtype=ANY)

# ---- blocks of space and depth

depth_to_space = define_op(
    "DepthToSpace",
    integer_form="view",
    quantized="follows",
    inputs="x",
    attrs={"blocksize": REQUIRED, "mode": "DCR"},
    layout="channels_last",
    source="ONNX DepthToSpace-13",
    choices={"mode": ("DCR", "CRD")},
)


@depth_to_space.infer
def _(x: TypeInfo, *, blocksize: int, mode: str) -> TypeInfo:
    check_choice("mode", mode, "DCR", "CRD")
    n, c, h, w = _four(x)
    b = blocksize
    if isinstance(c, int) and c % (b * b):
        raise ShapeError(f"{c} channels do not split into blocks of {b}x{b}")
    grow = [d * b if isinstance(d, int) else None for d in (h, w)]
    return x.with_shape((n, c // (b * b) if isinstance(c, int) else None, *grow))


def _four(x: TypeInfo) -> tuple[Dim, ...]:
    if x.rank != 4:
        raise ShapeError(f"rank {x.rank}, not 4")
    return x.dims


@depth_to_space.reference
def _(x: np.ndarray, *, blocksize: int, mode: str) -> np.ndarray:
    """(N,C·b²,H,W) → (N,C,H·b,W·b); the block index is outermost (DCR) or innermost (CRD)"""
    n, c, h, w = x.shape
    b = blocksize
    if mode == "DCR":
        y = x.reshape(n, b, b, c // b**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        y = x.reshape(n, c // b**2, b, b, h, w).transpose(0, 1, 4, 2, 5, 3)
    return y.reshape(n, c // b**2, h * b, w * b)


depth_to_space.kernel("cpu", "copy_depth_to_space", dtype=ANY)

space_to_depth = define_op(
    "SpaceToDepth",
    integer_form="view",
    quantized="follows",
    inputs="x",
    attrs={"blocksize": REQUIRED, "mode": "DCR"},
    layout="channels_last",
    source="ONNX SpaceToDepth-27",
    choices={"mode": ("DCR", "CRD")},
)


@space_to_depth.infer
def _(x: TypeInfo, *, blocksize: int, mode: str) -> TypeInfo:
    check_choice("mode", mode, "DCR", "CRD")
    n, c, h, w = _four(x)
    b = blocksize
    if any(isinstance(d, int) and d % b for d in (h, w)):
        raise ShapeError(f"{h}x{w} does not split into blocks of {b}x{b}")
    shrink = [d // b if isinstance(d, int) else None for d in (h, w)]
    return x.with_shape((n, c * b * b if isinstance(c, int) else None, *shrink))


@space_to_depth.reference
def _(x: np.ndarray, *, blocksize: int, mode: str) -> np.ndarray:
    """(N,C,H·b,W·b) → (N,C·b²,H,W); DCR and CRD as in DepthToSpace"""
    n, c, h, w = x.shape
    b = blocksize
    y = x.reshape(n, c, h // b, b, w // b, b)
    y = y.transpose(0, 3, 5, 1, 2, 4) if mode == "DCR" else y.transpose(0, 1, 3, 5, 2, 4)
    return y.reshape(n, c * b * b, h // b, w // b)


space_to_depth.kernel("cpu", "copy_space_to_depth", dtype=ANY)

# ---- triangles, orders, crops

trilu = define_op(
    "Trilu", inputs="x k?", attrs={"upper": 1}, attr_inputs=("k",), source="ONNX Trilu-14"
)


@trilu.infer
def _(x: TypeInfo, k: TypeInfo | None, *, upper: int) -> TypeInfo:
    if x.shape is not None and x.rank < 2:
        raise ShapeError(f"rank {x.rank}, not 2 or more")
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


center_crop_pad = define_op(
    "CenterCropPad",
    inputs="x shape",
    attrs={"axes": None},
    attr_inputs=("shape",),
    source="ONNX CenterCropPad-18",
)


@center_crop_pad.infer
def _(x: TypeInfo, shape: TypeInfo, *, axes: list[int] | None) -> TypeInfo:
    out: list[Dim] = list(x.dims)
    chosen = normalise_axes(axes, x.rank) if axes is not None else range(x.rank)
    wanted = known_ints(shape)
    for i, axis in enumerate(chosen):
        out[axis] = None if wanted is None else wanted[i]
    return x.with_shape(tuple(out))


@center_crop_pad.reference
def _(x: np.ndarray, shape: np.ndarray, *, axes: list[int] | None) -> np.ndarray:
    """Crops or zero-pads around the centre; an odd remainder goes to the end"""
    chosen = axes if axes is not None else range(x.ndim)
    y = x
    for axis, wanted in zip(chosen, (int(d) for d in shape)):
        have = y.shape[axis]
        if have >= wanted:
            begin = (have - wanted) // 2
            y = np.take(y, range(begin, begin + wanted), axis)
        else:
            widths = [(0, 0)] * x.ndim
            begin = (wanted - have) // 2
            widths[axis % x.ndim] = (begin, wanted - have - begin)
            y = np.pad(y, widths)
    return y


for _op in (slice_op, split, concat):
    in_parts = _op is concat
    _op.kernel("opencl", _op.kernels[0].name, dtype=ANY, when=separate_axes, accepts_pitch=in_parts)
pad.kernel("opencl", "copy_pad", dtype=ANY, when=all_of(separate_axes, attr("mode", "constant")))

# ---- sample calls


def _ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


@slice_op.samples
def _(draw: Draw) -> Iterator[Sample]:
    for starts, ends, axes, steps in (
        ([1], [4], [0], [1]), ([0, 2], [9, 5], [1, 2], [1, 1]), ([-3], [2**63 - 1], [-1], [1]),
        ([-1], [-(2**63)], [1], [-1]), ([5, 0], [1, 100], [0, 2], [-2, 3]), ([3], [3], [0], [1]),
    ):  # fmt: skip
        yield Sample([draw(6, 8, 33), *(_ints(*v) for v in (starts, ends, axes, steps))])
    yield Sample([draw(1, 6, 5, 7), _ints(1, 1), _ints(5, 4), _ints(1, 3)])


@split.samples
def _(draw: Draw) -> Iterator[Sample]:
    for axis in (0, 1, -1):
        shape = [3, 5, 6]
        shape[axis] = 12
        yield Sample([draw(*shape), _ints(1, 4, 7)], {"axis": axis}, outputs=3)
        yield Sample([draw(*shape)], {"axis": axis, "num_outputs": 5}, outputs=5)
    yield Sample([draw(1, 40, 5, 7), _ints(17, 23)], {"axis": 1}, outputs=2)


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


@pad.samples
def _(draw: Draw) -> Iterator[Sample]:
    for mode in pad.choices["mode"]:
        for shape, pads in (
            ((4, 5), (1, 2, 3, 4)), ((3, 4, 5), (0, 1, 0, 2, 0, 3)), ((7,), (3, 2)),
            ((4, 6), (-1, 2, 1, -2)), ((1, 6, 5, 7), (0, 1, 2, 0, 0, 0, 1, 3)),
        ):  # fmt: skip
            yield Sample([draw(*shape), _ints(*pads), draw.scalar(1)], {"mode": mode})


@tile.samples
def _(draw: Draw) -> Iterator[Sample]:
    for shape, repeats in (((5,), (3,)), ((2, 3, 17), (2, 1, 3)), ((1, 2, 3, 4), (1, 2, 1, 2))):
        yield Sample([draw(*shape), _ints(*repeats)])


@depth_to_space.samples
def _(draw: Draw) -> Iterator[Sample]:
    for mode in depth_to_space.choices["mode"]:
        yield Sample([draw(2, 12, 3, 5)], {"blocksize": 2, "mode": mode})
        yield Sample([draw(1, 72, 2, 3)], {"blocksize": 3, "mode": mode})


@space_to_depth.samples
def _(draw: Draw) -> Iterator[Sample]:
    for mode in space_to_depth.choices["mode"]:
        yield Sample([draw(2, 3, 6, 4)], {"blocksize": 2, "mode": mode})
        yield Sample([draw(1, 17, 6, 9)], {"blocksize": 3, "mode": mode})


@trilu.samples
def _(draw: Draw) -> Iterator[Sample]:
    for upper in (0, 1):
        for k in (-2, 0, 3, 100):
            yield Sample([draw(2, 5, 7), _ints(k)], {"upper": upper})
