"""Launches of reductions, softmax, pooling and matrix products."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ops.pool import Window
from ...plan import Plan, PlanTensor, Step
from . import byte_products
from . import cpu_convolutions as cpu
from . import gpu_convolutions as gpu
from .convolutions import matmul_problem, tiled
from .launch import Launch
from .options import code_of, join, storage_option, vector, vectors, widest
from .profile import DeviceProfile
from .registry import Target, builds

#: One work-item each for fewer rows than this, of so many numbers or more, leaves a GPU idle.
_FEW_ROWS, _DEEP = 1 << 16, 32
#: Most work-items of a group that makes one row.
ROW_ITEMS = 64
#: Vectors of a row that such a work-item keeps in registers, and numbers, where 16 share a row.
HELD, _GROUP_HELD = 8, 16


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
        return [_by_groups("reduce", f"{kernel}_group", [x, y, *sizes], y.size, more)]
    if apart:
        text = join(storage_option(x.dtype), more)
        return [Launch("reduce", kernel, [x, y, *sizes], (y.size,), text)]
    outer, n, inner = sizes
    return [folded("reduce", target.profile, step, x, y, (outer, n, inner), [x, y], more)]


def is_deep(profile: DeviceProfile, n: int, rows: int) -> bool:
    """Whether a work-item for each row of n leaves a GPU idle."""
    return profile.local_tiles and n >= _DEEP and rows < _FEW_ROWS


def _by_groups(file: str, kernel: str, args: list[Any], rows: int, more: str) -> Launch:
    """16 rows and 16 work-items for each."""
    text = join(storage_option(args[0].dtype), more, "#define GROUPS")
    return Launch(file, kernel, args, (-(-rows // 16) * 256,), text, (256,))


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
        held = -(-n // 16) if name == "softmax" and n <= 16 * _GROUP_HELD else 0
        text = join(more, f"#define HOLD {held}" if held else "")
        return [_by_groups(name, f"{name}_group", [x, y, *sizes], outer * inner, text)]
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
    m, k = a.dims[-2:]
    n = b.dims[-1]
    batch = math.prod(y.dims[:-2])
    planes = (math.prod(a.dims[:-2]), math.prod(b.dims[:-2]))
    if b.data is not None and len(b.dims) == 2:
        problem = matmul_problem(step, plan)
        if target.profile.local_tiles or byte_products.ways(problem, target.profile):
            return tiled(target, problem)
    kind = gpu if target.profile.local_tiles else cpu
    return kind.product(step, target, a, b, y, (batch, m, n, k), planes)
