"""Launches of steps that only move elements: layouts, joins, cuts, paddings, gathers, resizes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import UnsupportedOperatorError
from ...ir import DType
from ...ir.bfloat16 import f32_to_bf16
from ...ops.pad_tile import pad_widths, repeated_places
from ...ops.resize import axis_weights, resize_plan, source_positions
from ...plan import Plan, PlanTensor, Step
from .constants import Constant
from .launch import Launch, Scratch, element_type, lies_in, place
from .options import CPU_RUN, join, rows_per_item, storage_option, vector, vectors
from .profile import DeviceProfile
from .registry import Target, builds
from .strides import broadcast_strides, collapsed, strides_of

#: Below so many places an axis is not cut into tiles.
_SHORT_AXIS = 16
#: Tiles of a transposition that occupy a compute unit; fewer have groups of half as many items, of
#: which two may stay there with other launches (persistent.py).
_MANY = 4
#: Side of the square that a CPU work-item turns: its lines stay in the cache.
_BLOCK = 16


def strided_copy(
    profile: DeviceProfile,
    x: PlanTensor | Scratch,
    y: PlanTensor | Scratch,
    dims: tuple[int, ...],
    x_strides: list[int],
    y_strides: list[int],
    x_at: int = 0,
    y_at: int = 0,
) -> Launch:
    """y[y_at + i·y_strides] = x[x_at + i·x_strides] for every i below dims."""
    merged = collapsed(dims, x_strides, y_strides)
    if merged is None:
        where = getattr(y, "name", "")
        raise UnsupportedOperatorError(tr("a copy over more than six separate axes"), where=where)
    d, (sx, sy) = merged
    kind = element_type(y)
    if d[:3] == [1, 1, 1] and sx[5] == sy[5] == 1:
        source, target = (x_at, sx[4], sx[3]), (y_at, sy[4], sy[3])
        return _row_copy(profile, x, y, kind, (d[5], d[4], d[3]), source, target)
    if not profile.local_tiles and sx[5] == sy[5] == 1:
        kind, many = _wider(kind, y.dtype.itemsize, [d[5], x_at, *sx[:5], y_at, *sy[:5]])
        sx, sy = ([*(stride // many for stride in s[:5]), 1] for s in (sx, sy))
        d, x_at, y_at = [*d[:5], d[5] // many], x_at // many, y_at // many
    n = math.prod(d)
    args = [x, y, n, *d[1:], x_at, *sx, y_at, *sy]
    return Launch("copy", "copy", args, (n,), f"#define E {kind}\n#define I int")


def _wider(kind: str, itemsize: int, places: list[int]) -> tuple[str, int]:
    """The widest type that several neighbouring elements make at all of these places, and how many
    they are: a CPU's item of a copy spends most of its time on finding its place."""
    for wide, nbytes in (("uint4", 16), ("uint2", 8), ("uint", 4), ("ushort", 2)):
        many = nbytes // itemsize
        if many > 1 and all(place % many == 0 for place in places):
            return wide, many
    return kind, 1


def _row_copy(
    profile: DeviceProfile,
    x: PlanTensor | Scratch,
    y: PlanTensor | Scratch,
    kind: str,
    size: tuple[int, int, int],
    source: tuple[int, int, int],
    target: tuple[int, int, int],
) -> Launch:
    """Rows of neighbouring elements: a CPU's item has whole ones, elsewhere it has an element, or
    four where all places allow it. `size` is (elements of a row, rows, sets of rows); `source` and
    `target` are (first element, elements from row to row, from set to set)."""
    width, near, sets = size
    if not profile.local_tiles:
        return _by_rows("copy_runs", kind, "int", width, near * sets, [
            x, y, width, near * sets, near, *source, *target,
        ])  # fmt: skip
    if kind in ("uint", "ushort") and all(v % 4 == 0 for v in (width, *source, *target)):
        kind, width = f"{kind}4", width // 4
        source, target = tuple(v // 4 for v in source), tuple(v // 4 for v in target)  # type: ignore[assignment]
    options = f"#define E {kind}\n#define I int"
    args = [x, y, width, near * sets, near, *source, *target]
    return Launch("copy", "copy_rows", args, (width, near * sets), options)


def _by_rows(kernel: str, kind: str, index: str, width: int, rows: int, args: list[Any]) -> Launch:
    """Rows of `width` elements, several an item of a CPU. Empty rows need none."""
    per = rows_per_item(width)
    items = -(-rows // per) if width else 0
    options = f"#define E {kind}\n#define I {index}\n#define RUNS"
    return Launch("copy", kernel, [*args, per], (items,), options, (1,))


@builds("copy_relayout", "Relayout")
def relayout(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    strides = strides_of(x.dims)
    sx, sy = [strides[p] for p in step.attrs["perm"]], strides_of(y.dims)
    turned = _transposed(x, y, target.profile, sx, sy)
    return [turned or strided_copy(target.profile, x, y, y.dims, sx, sy)]


def _transposed(
    x: PlanTensor, y: PlanTensor, profile: DeviceProfile, source: list[int], target: list[int]
) -> Launch | None:
    """A copy to a dense y in which another axis than in x is the innermost; None where that is not
    so, or more than two further axes stay."""
    merged = collapsed(y.dims, source, target)
    if merged is None:
        return None
    dims, (sx, sy) = merged
    axis = next((i for i in range(5) if sx[i] == 1 and dims[i] > 1), None)
    rest = [i for i in range(5) if dims[i] > 1 and i != axis]
    if axis is None or sx[5] == 1 or len(rest) > 2:
        return None
    far = [(1, 0, 0)] * (2 - len(rest)) + [(dims[i], sx[i], sy[i]) for i in rest]
    (c, xc, yc), (b, xb, yb) = far
    more = [b, xb, yb, xc, yc, b * c]
    along, across = (dims[axis], 1, sy[axis]), (dims[5], sx[5], 1)  # (length, x step, y step)
    options = f"#define E {element_type(y)}\n#define I int\n#define "
    short, long = sorted((along, across))
    woven = along[1:] == (1, across[0]) and across[2] == 1  # along is dense in x, across in y
    if woven and across[0] < _SHORT_AXIS and not profile.local_tiles:
        few = min(along[0], CPU_RUN)
        many = max(1, CPU_RUN // (few * across[0]))
        args = [x, y, along[0], across[1], *more, many, few]
        items = (-(-along[0] // few), -(-b * c // many))
        return Launch("copy", "weave", args, items, f"{options}WEAVE {across[0]}", (1, 1))
    if short[0] < _SHORT_AXIS:
        args = [x, y, long[0], short[0], long[1], short[1], long[2], short[2], *more]
        return Launch("copy", "transpose", args, (long[0], b * c), f"{options}SHORT")
    args = [x, y, along[0], across[0], 1, across[1], along[2], 1, *more]
    if profile.local_tiles:
        down, right, planes = -(-along[0] // 32), -(-across[0] // 32), b * c
        rows = 8 if down * right * planes >= _MANY * profile.compute_units else 4
        text = f"{options}TILE 32\n#define ROWS {rows}"
        grid = (down * 32, right * rows, planes)
        return Launch("copy", "transpose", args, grid, text, (32, rows, 1))
    grid = (-(-along[0] // _BLOCK), -(-across[0] // _BLOCK), b * c)
    return Launch("copy", "transpose", args, grid, f"{options}BLOCK {_BLOCK}", (1, 1, 1))


@builds("copy_concat", "Concat")
def concat(step: Step, plan: Plan, target: Target) -> list[Launch]:
    """Inputs that were not made in place, two neighbours by two: a call costs as much as a small
    copy."""
    y = plan.tensors[step.outputs[0]]
    axis, out = int(step.attrs["axis"]) % len(y.dims), []
    rows, pitch = math.prod(y.dims[:axis]), math.prod(y.dims[axis:])
    inputs = [plan.tensors[i] for i in step.inputs]
    widths = [math.prod(x.dims[axis:]) for x in inputs]
    places = np.cumsum([0, *widths])
    left = [i for i, x in enumerate(inputs) if x.size and not lies_in(plan, x, y, int(places[i]))]
    # y may be a part of another Concat: its rows then lie further apart
    pitch_y, y_at = place(y, y.dims[-1])
    strides_y = [s * pitch_y for s in strides_of(y.dims[:-1])] + [1]
    inner = math.prod(y.dims[axis + 1 :])
    while left:
        i = left.pop(0)
        x, at = inputs[i], int(places[i])
        even = pitch_y == y.dims[-1]
        if even and left[:1] == [i + 1] and all(_in_rows(inputs[j], widths[j]) for j in (i, i + 1)):
            left.pop(0)
            pair = x, inputs[i + 1]
            out.append(_joined(target.profile, pair, y, widths[i : i + 2], rows, [pitch, at]))
            continue
        pitch_x, x_at = place(x, x.dims[-1])
        strides = [s * pitch_x for s in strides_of(x.dims[:-1])] + [1]
        at = y_at + at // inner * strides_y[axis]
        out.append(strided_copy(target.profile, x, y, x.dims, strides, strides_y, x_at, at))
    return out


def _in_rows(tensor: PlanTensor, width: int) -> bool:
    """Whether its rows of `width` elements lie evenly apart: a part's own rows do."""
    return width == tensor.dims[-1] or place(tensor, width) == [width, 0]


def _joined(
    profile: DeviceProfile,
    pair: tuple[PlanTensor, PlanTensor],
    y: PlanTensor,
    widths: list[int],
    rows: int,
    lie: list[int],
) -> Launch:
    """Rows of two tensors, `widths` elements each, into rows of y. `lie` are the elements from row
    to row of y and before the first."""
    kind = element_type(y)
    for x, width in zip(pair, widths):
        lie = [*lie, *place(x, width)]
    if not profile.local_tiles:
        return _by_rows(
            "join_runs", kind, "int", sum(widths), rows, [*pair, y, *widths, rows, *lie]
        )
    if kind in ("uint", "ushort") and all(n % 4 == 0 for n in (*widths, *lie)):
        kind, widths, lie = f"{kind}4", [n // 4 for n in widths], [n // 4 for n in lie]
    options = f"#define E {kind}\n#define I int"
    return Launch("copy", "join", [*pair, y, *widths, rows, *lie], (sum(widths), rows), options)


@builds("copy_split", "Split")
def split(step: Step, plan: Plan, target: Target) -> list[Launch]:
    """Parts that are no views. A GPU's launch makes three of them: it costs as much as a small
    copy."""
    x = plan.tensors[step.inputs[0]]
    axis, at, left = int(step.attrs["axis"]) % len(x.dims), 0, []
    inner = math.prod(x.dims[axis + 1 :])
    for index in step.outputs:
        y = plan.tensors[index]
        if not lies_in(plan, y, x, at):
            left.append((y, at * inner))
        at += y.dims[axis]
    if target.profile.local_tiles and len(left) > 1:
        return [_cut(x, axis, left[i : i + 3]) for i in range(0, len(left), 3)]
    sx = strides_of(x.dims)
    return [
        strided_copy(target.profile, x, y, y.dims, sx, strides_of(y.dims), at) for y, at in left
    ]


def _cut(x: PlanTensor, axis: int, parts: list[tuple[PlanTensor, int]]) -> Launch:
    """Up to three parts of rows of x that each begin `at` elements behind the row's first."""
    kind, rows, pitch = element_type(x), math.prod(x.dims[:axis]), math.prod(x.dims[axis:])
    widths, places = [math.prod(y.dims[axis:]) for y, _ in parts], [at for _, at in parts]
    if kind in ("uint", "ushort") and all(n % 4 == 0 for n in (pitch, *widths, *places)):
        kind, pitch = f"{kind}4", pitch // 4
        widths, places = [n // 4 for n in widths], [n // 4 for n in places]
    empty = [0] * (3 - len(parts))
    made = [y for y, _ in parts] + [parts[-1][0]] * len(empty)
    args = [x, *made, *widths, *empty, rows, pitch, *places, *empty]
    options = f"#define E {kind}\n#define I int"
    return Launch("copy", "cut", args, (sum(widths), rows), options)


@builds("copy_slice", "Slice")
def slice_(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    starts = list(np.ravel(step.attrs["starts"]))
    axes = step.attrs.get("axes")
    axes = list(range(len(starts))) if axes is None else list(np.ravel(axes))
    steps = step.attrs.get("steps")
    steps = [1] * len(starts) if steps is None else list(np.ravel(steps))
    strides = strides_of(x.dims)
    at, walk = 0, list(strides)
    for start, axis, pace in zip(starts, axes, steps):
        axis, d = int(axis) % len(x.dims), x.dims[int(axis) % len(x.dims)]
        first = int(start) + (d if start < 0 else 0)
        first = min(max(first, 0), d - 1 if pace < 0 else d)
        at += first * strides[axis]
        walk[axis] = strides[axis] * int(pace)
    return [strided_copy(target.profile, x, y, y.dims, walk, strides_of(y.dims), at, 0)]


@builds("copy_pad", "Pad")
def pad(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    given = [int(p) for p in np.ravel(step.attrs["pads"])]
    widths = pad_widths(len(x.dims), given, step.attrs.get("axes"))
    if step.attrs["mode"] != "constant":
        return _repeated(x, y, widths, step.attrs["mode"], target.profile)
    value = step.attrs.get("value")
    value = 0.0 if value is None else float(np.ravel(value)[0])
    fill = np.array([value], np.float32 if y.dtype is DType.BF16 else y.dtype.np)
    fill = f32_to_bf16(fill) if y.dtype is DType.BF16 else fill
    raw = fill.view({1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}[y.dtype.itemsize])[0]
    options = f"#define E {element_type(y)}\n#define I int"
    filled = Launch("copy", "fill", [y, y.size, raw], (y.size,), options)
    sx, sy = strides_of(x.dims), strides_of(y.dims)
    cut = [(max(-b, 0), max(-e, 0)) for b, e in widths]
    dims = tuple(d - b - e for d, (b, e) in zip(x.dims, cut))
    x_at = sum(b * s for (b, _), s in zip(cut, sx))
    y_at = sum(max(b, 0) * s for (b, _), s in zip(widths, sy))
    return [filled, strided_copy(target.profile, x, y, dims, sx, sy, x_at, y_at)]


def _repeated(
    x: PlanTensor, y: PlanTensor, widths: list[tuple[int, int]], mode: str, profile: DeviceProfile
) -> list[Launch]:
    """Padding with elements of x: a gather for each axis that changes."""
    axes = [axis for axis, ends in enumerate(widths) if ends != (0, 0)] or [0]
    source: PlanTensor | Scratch = x
    dims, launches = list(x.dims), []
    for axis in axes:
        places = repeated_places(dims[axis], widths[axis], mode).astype(np.int32)
        size = dims[axis], len(places), math.prod(dims[axis + 1 :])
        dims[axis] = len(places)
        n = math.prod(dims)
        to = y if axis == axes[-1] else Scratch(n * y.dtype.itemsize, y.dtype)
        launches.append(_gathered(profile, source, Constant.of(places), to, n, size))
        source = to
    return launches


@builds("copy_expand", "Expand")
def expand(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    sx, sy = broadcast_strides(x, y.dims), strides_of(y.dims)
    return [strided_copy(target.profile, x, y, y.dims, sx, sy)]


@builds("copy_tile", "Tile")
def tile(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    repeats = [int(r) for r in np.ravel(step.attrs["repeats"])]
    dims = tuple(n for pair in zip(repeats, x.dims) for n in pair)
    source = [n for stride in strides_of(x.dims) for n in (0, stride)]
    return [strided_copy(target.profile, x, y, dims, source, strides_of(dims))]


@builds("copy_gather", "Gather")
def gather(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, index = (plan.tensors[i] for i in step.inputs[:2])
    y = plan.tensors[step.outputs[0]]
    axis = int(step.attrs.get("axis", 0)) % len(x.dims)
    size = x.dims[axis], index.size, math.prod(x.dims[axis + 1 :])
    return [_gathered(target.profile, x, index, y, y.size, size)]


def _gathered(
    profile: DeviceProfile,
    x: PlanTensor | Scratch,
    index: PlanTensor | Constant,
    y: PlanTensor | Scratch,
    n: int,
    size: tuple[int, int, int],
) -> Launch:
    """n elements of y (…, count, inner) = x (…, axis, inner) at `index` (count,); `size` is
    (axis, count, inner)."""
    kind = {DType.I64: "long", DType.I32: "int"}[index.dtype]
    inner = size[2]
    if not profile.local_tiles:
        rows = n // max(inner, 1)
        return _by_rows(
            "gather_runs", element_type(y), kind, inner, rows, [x, index, y, rows, *size]
        )
    options = f"#define E {element_type(y)}\n#define I {kind}"
    return Launch("copy", "gather", [x, index, y, n, *size], (n,), options)


@builds("resize", "Resize")
def resize(step: Step, plan: Plan, target: Target) -> list[Launch]:
    """Every mode is a small table of source places and weights per output row and column."""
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    tables = [taps(step, x, y, axis) for axis in (1, 2)]
    count = max(i.shape[1] for i, _ in tables)
    args: list[object] = [x]
    for places, weights in tables:
        for table in (places.astype(np.int32), weights.astype(np.float32)):
            args.append(Constant.of(table).padded(len(table), count))
    args += [y, *x.dims, y.dims[1], y.dims[2]]
    v = vector(target.profile, y.dtype, x.dims[3])
    options = join(storage_option(y.dtype), f"#define TAPS {count}", vectors(target.profile, v))
    grid = (x.dims[3] // v, y.dims[2], y.dims[0] * y.dims[1])
    return [Launch("resize", "resize", args, grid, options)]


def taps(step: Step, x: PlanTensor, y: PlanTensor, axis: int) -> tuple[np.ndarray, np.ndarray]:
    """(n_out, taps) source places and weights of one axis, from the operator's own definition."""
    a = step.attrs
    names = ("scales", "sizes", "axes")
    given = [None if a.get(k) is None else list(np.ravel(a[k])) for k in names]
    scales, sizes, axes = (v or None for v in given)
    _, factors = resize_plan(x.dims, scales, sizes, axes, a["keep_aspect_ratio_policy"])
    mode = a["coordinate_transformation_mode"]
    position = source_positions(
        x.dims[axis], y.dims[axis], factors[axis], mode, nearest=a["mode"] == "nearest"
    )
    matrix = axis_weights(
        x.dims[axis], position, factors[axis], mode=a["mode"], nearest_mode=a["nearest_mode"],
        cubic_coeff_a=a["cubic_coeff_a"], exclude_outside=a["exclude_outside"],
        antialias=a["antialias"],
    )  # fmt: skip
    count = max(1, int((matrix != 0).sum(1).max()))
    places = np.argsort(matrix == 0, axis=1, kind="stable")[:, :count]
    return places, np.take_along_axis(matrix, places, 1)
