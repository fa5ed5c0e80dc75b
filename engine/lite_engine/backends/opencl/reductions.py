"""Launches of reductions, softmax, pooling and matrix products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ops.matmul import Batches
from ...ops.pool import Window
from ...plan import Plan, PlanTensor, Step
from . import byte_products
from . import cpu_convolutions as cpu
from . import gpu_convolutions as gpu
from .convolutions import matmul_problem, tiled
from .launch import Launch, Scratch
from .movement import strided_copy
from .options import code_of, join, storage_option, vector, vectors, widest
from .profile import DeviceProfile
from .registry import Target, builds
from .strides import strides_of

#: One work-item each for fewer rows than this, of so many numbers or more, leaves a GPU idle.
_FEW_ROWS, _DEEP = 1 << 16, 32
#: Most work-items of a group that makes one row.
ROW_ITEMS = 64
#: Vectors of a row that such a work-item keeps in registers.
HELD = 8
#: Work-items of a group for rows that lie beside each other, such rows of a group, and numbers of
#: a row that an item keeps in registers; of more than _LONG_SLICE, fewer rows share the items.
_GROUP, _LANES, _FEWEST_LANES, _GROUP_HELD, _LONG_SLICE = 256, 16, 4, 16, 4


def blocks(dims: tuple[int, ...], axes: list[int]) -> tuple[int, int, int]:
    """(outer, n, inner) of neighbouring axes."""
    low, high = min(axes), max(axes)
    return math.prod(dims[:low]), math.prod(dims[low : high + 1]), math.prod(dims[high + 1 :])


def reduced_axes(step: Step, rank: int) -> list[int]:
    if step.op.startswith("Global"):
        return list(range(1, rank - 1))
    given = step.attrs.get("axes")
    if given is None or np.size(given) == 0:
        return [] if step.attrs.get("noop_with_empty_axes") else list(range(rank))
    return sorted(int(a) % rank for a in np.ravel(given))


def alternating(dims: tuple[int, ...], axes: list[int]) -> list[int]:
    """Sizes of what is kept, reduced, …, kept, of neighbouring axes together; axes of one position
    belong to either side."""
    sizes = [1]
    for axis, size in enumerate(dims):
        if size == 1:
            continue
        if (axis in axes) != (len(sizes) % 2 == 0):
            sizes.append(1)
        sizes[-1] *= size
    return sizes if len(sizes) % 2 else [*sizes, 1]


@builds("reduce")
def reduce(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    sizes = alternating(x.dims, reduced_axes(step, len(x.dims)))
    more = code_of(step.op, step.kernel)
    apart = len(sizes) > 3
    sizes = [1] * ((7 if apart else 3) - len(sizes)) + sizes
    kernel = "reduce_apart" if apart else "reduce"
    if is_deep(target.profile, math.prod(sizes[1::2]), y.size) and (apart or sizes[-1] > 1):
        lanes = _lanes(target.profile, math.prod(sizes[1::2]), y.size)
        return [_by_groups("reduce", f"{kernel}_group", [x, y, *sizes], y.size, lanes, more)]
    if apart:
        text = join(storage_option(x.dtype), more)
        return [Launch("reduce", kernel, [x, y, *sizes], (y.size,), text)]
    outer, n, inner = sizes
    return [folded("reduce", target.profile, step, x, y, (outer, n, inner), [x, y], more)]


def is_deep(profile: DeviceProfile, n: int, rows: int) -> bool:
    """Whether a work-item for each row of n leaves a GPU idle."""
    return profile.local_tiles and n >= _DEEP and rows < _FEW_ROWS


def _lanes(profile: DeviceProfile, n: int, rows: int) -> int:
    """Neighbouring rows of a group: few where groups would leave a GPU idle and rows are long."""
    lanes = _LANES
    while lanes > _FEWEST_LANES and -(-rows // lanes) < profile.compute_units and (
        n * lanes >= _LONG_SLICE * _GROUP
    ):  # fmt: skip
        lanes //= 2
    return lanes


def _by_groups(file: str, kernel: str, args: list[Any], rows: int, lanes: int, more: str) -> Launch:
    """Groups of work-items that share out `lanes` rows."""
    text = join(storage_option(args[0].dtype), more, f"#define LANES {lanes}")
    return Launch(file, kernel, args, (-(-rows // lanes) * _GROUP,), text, (_GROUP,))


def folded(
    file: str,
    profile: DeviceProfile,
    step: Step,
    x: PlanTensor,
    y: PlanTensor,
    sizes: tuple[int, int, int],
    args: list[Any],
    more: str = "",
    kernel: str = "",
) -> Launch:
    """A kernel over the middle axis of `sizes` (outer, n, inner): a group for each row where inner
    is 1, else an item for each V neighbours."""
    outer, n, inner = sizes
    kernel, text = kernel or file, join(storage_option(x.dtype), more)
    v = widest(profile, x.dtype)
    if inner == 1 and n >= v:
        items = 1
        while profile.local_tiles and items < ROW_ITEMS and items * v < n:
            items *= 2
        held = -(-n // (items * v)) if profile.local_tiles else 0
        text = join(
            text, vectors(profile, v, aligned=n % v == 0), f"#define ITEMS {items}",
            f"#define HOLD {held if held <= HELD else 0}",
        )  # fmt: skip
        return Launch(file, f"{kernel}_row", [*args, n], (outer * items,), text, (items,))
    v = vector(profile, x.dtype, inner)
    text = join(text, vectors(profile, v))
    return Launch(file, kernel, [*args, *sizes], (outer * inner // v,), text)


@builds("softmax", "Softmax", "LogSoftmax")
def softmax(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    axis = int(step.attrs.get("axis", -1)) % len(x.dims)
    more = "#define LOGARITHM" if step.op == "LogSoftmax" else ""
    return _rows_of("softmax", target, step, x, y, axis, more)


@builds("lp_norm", "LpNormalization")
def lp_norm(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    axis = int(step.attrs.get("axis", -1)) % len(x.dims)
    squares = "#define SQUARES" if step.attrs.get("p", 2) == 2 else ""
    return _rows_of("lp_norm", target, step, x, y, axis, squares)


def _rows_of(
    name: str, target: Target, step: Step, x: PlanTensor, y: PlanTensor, axis: int, more: str
) -> list[Launch]:
    """Each row along an axis changed by numbers that all of it makes."""
    outer, n, inner = sizes = blocks(x.dims, [axis])
    if inner > 1 and is_deep(target.profile, n, outer * inner):
        lanes = _lanes(target.profile, n, outer * inner)
        held = -(-n * lanes // _GROUP)
        holds = name == "softmax" and held <= _GROUP_HELD
        text = join(more, f"#define HOLD {held}" if holds else "")
        return [_by_groups(name, f"{name}_group", [x, y, *sizes], outer * inner, lanes, text)]
    return [folded(name, target.profile, step, x, y, sizes, [x, y], more)]


@builds("arg", "ArgMax", "ArgMin")
def arg(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    axis = int(step.attrs.get("axis", 0)) % len(x.dims)
    more = join(
        f"#define SIGN {'-1.0f' if step.op == 'ArgMin' else '1.0f'}",
        "#define LAST" if step.attrs.get("select_last_index") else "",
    )
    outer, n, inner = blocks(x.dims, [axis])
    options = join(storage_option(x.dtype), more)
    return [Launch("arg", "arg", [x, y, outer, n, inner], (outer * inner,), options)]


@builds("pool", "MaxPool", "AveragePool")
def pool(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    one = (1,) * (4 - len(x.dims))
    xd, yd = (x.dims[0], *one, *x.dims[1:]), (y.dims[0], *one, *y.dims[1:])
    window = Window((x.dims[0], x.dims[-1], *x.dims[1:-1]), step.attrs)
    begin, end = window.pads[: len(window.kernel)], window.pads[len(window.kernel) :]
    zero = (0,) * len(one)
    geometry = [
        *one, *window.kernel, *one, *window.strides, *zero, *begin, *zero, *end, *one,
        *window.dilations,
    ]  # fmt: skip
    v = vector(target.profile, y.dtype, xd[3])
    options = [storage_option(y.dtype), vectors(target.profile, v)]
    if step.op == "AveragePool":
        options.append("#define AVERAGE")
        options += ["#define COUNT_PAD"] if step.attrs.get("count_include_pad") else []
    args = [x, y, y.size, *xd[1:], yd[1], yd[2], *geometry]
    return [Launch("pool", "pool", args, (y.size // v,), join(*options))]


@builds("matmul", "MatMul")
def matmul(step: Step, plan: Plan, target: Target) -> list[Launch]:
    a, b = (plan.tensors[i] for i in step.inputs[:2])
    y = plan.tensors[step.outputs[0]]
    if b.data is not None and len(b.dims) == 2:
        problem = matmul_problem(step, plan)
        if target.profile.local_tiles or byte_products.ways(problem, target.profile):
            return tiled(target, problem)
    of = Batches.of(a.dims, b.dims)
    copies: list[Launch] = []
    left, right = (
        _each_its_own(target.profile, tensor, side, of.lead, size, copies)
        if of.repeats(side) else tensor
        for tensor, side, size in ((a, of.left, of.m * of.k), (b, of.right, of.k * of.n))
    )  # fmt: skip
    batch = math.prod(of.lead)
    planes = [1 if max(side, default=1) == 1 else batch for side in (of.left, of.right)]
    kind = gpu if target.profile.local_tiles else cpu
    sizes = (batch, of.m, of.n, of.k)
    return [*copies, *kind.product(step, target, left, right, y, sizes, (planes[0], planes[1]))]


def _each_its_own(
    profile: DeviceProfile, x: PlanTensor, side: tuple[int, ...], lead: tuple[int, ...], size: int,
    copies: list[Launch],
) -> Scratch:  # fmt: skip
    """A copy of matrices of `size` numbers in which each batch of `lead` has its own."""
    whole = Scratch(math.prod(lead) * size * x.dtype.itemsize, x.dtype)
    dims, steps = (*lead, size), strides_of((*side, size))
    source = [0 if d == 1 else step for d, step in zip((*side, size), steps)]
    copies.append(strided_copy(profile, x, whole, dims, source, strides_of(dims)))
    return whole
