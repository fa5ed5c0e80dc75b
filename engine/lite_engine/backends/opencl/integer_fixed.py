"""Launches of integer steps in LiteRT's fixed point (`ops/quant_fixed.py` has the formulas)."""

from __future__ import annotations

import math

import numpy as np

from ...ops.litert_functions import fraction
from ...ops.quant_fixed import line
from ...plan import Plan, Step
from .constants import Constant
from .integers import Quantization, flip_of
from .launch import Launch
from .options import join, several
from .registry import Target, builds
from .strides import broadcast_strides, collapsed

#: Rows of a work-item of a product.
_ROWS = 4
#: A ratio below 2^-32 makes 0 of every sum; an exponent beyond 31 saturates alike.
_ZERO, _MOST = (0, 0), 31


def _fraction(real: float) -> tuple[int, int]:
    """real = whole / 2^31 · 2^exponent, with exponents that kernels take."""
    whole, exponent = fraction(real)
    return _ZERO if exponent < -_MOST else (whole, min(exponent, _MOST))


def _operands(step: Step, plan: Plan) -> tuple[Quantization, Quantization, Quantization]:
    a, b, y = (plan.tensors[i] for i in (step.inputs[0], step.inputs[3], step.outputs[0]))
    of_a, of_b = Quantization.read(plan, step, a, 1), Quantization.read(plan, step, b, 4)
    return of_a, of_b, Quantization.read(plan, step, y, 6)


def _ratios(op: str, a: np.float32, b: np.float32, y: np.float32) -> list[float]:
    if op == "QLinearSquaredDifference":
        common = 2 * max(float(a), float(b))
        return [float(a) / common, float(b) / common, common * common / ((1 << 14) * float(y))]
    return [float(a / y), float(a * b / y), 0.0]


@builds("i8_fixed", "QLinearPRelu", "QLinearSquaredDifference")
def elementwise(step: Step, plan: Plan, target: Target) -> list[Launch]:
    a, b, y = (plan.tensors[i] for i in (step.inputs[0], step.inputs[3], step.outputs[0]))
    of_a, of_b, of_y = _operands(step, plan)
    numbers = [of_y.flip, of_a.zero, of_b.zero, of_y.zero]
    for ratio in _ratios(step.op, of_a.scale, of_b.scale, of_y.scale):
        numbers += _fraction(ratio)
    merged = collapsed(y.dims, broadcast_strides(a, y.dims), broadcast_strides(b, y.dims))
    assert merged is not None, "the registry's condition keeps larger ranks away"
    dims, (sa, sb) = merged
    way = "#define SQUARES" if step.op == "QLinearSquaredDifference" else ""
    if dims[:4] == [1] * 4 and sa[5] == sb[5] == 1:
        width, rows = dims[5], dims[4]
        v, options = several(target.profile, width)
        args = [a, b, y, width, rows, sa[4], sb[4], *numbers]
        return [Launch("i8_fixed", "fixed_rows", args, (width // v, rows), join(options, way))]
    args = [a, b, y, y.size, *dims[1:], *sa, *sb, *numbers]
    return [Launch("i8_fixed", "fixed", args, (y.size,), way)]


@builds("i8_batch_matmul", "QLinearBatchMatMul")
def product(step: Step, plan: Plan, target: Target) -> list[Launch]:
    a, b, y = (plan.tensors[i] for i in (step.inputs[0], step.inputs[3], step.outputs[0]))
    of_a, of_b, of_y = _operands(step, plan)
    (m, k), n, batch = a.dims[-2:], b.dims[-1], y.dims[:-2]
    strides = []
    for x in (a, b):
        size, outer = math.prod(x.dims[-2:]), (1,) * (len(batch) + 2 - len(x.dims)) + x.dims[:-2]
        inner = [size * math.prod(outer[i + 1 :]) for i in range(len(outer))]
        strides.append([0 if d == 1 else s for d, s in zip(outer, inner)])
    merged = collapsed(batch, *strides, limit=4)
    assert merged is not None, "the registry's condition keeps larger ranks away"
    dims, (sa, sb) = merged
    v, options = several(target.profile, n)
    ratio = float(of_a.scale * of_b.scale) / float(of_y.scale)
    zeros = [of_y.flip, of_a.zero, of_b.zero, of_y.zero]
    args = [a, b, y, math.prod(batch), m, n, k, *dims[1:], *sa, *sb, *zeros, *_fraction(ratio)]
    grid = (n // v, -(-m // _ROWS), math.prod(batch))
    return [Launch("i8_fixed", "product", args, grid, join(options, f"#define ROWS {_ROWS}"))]


@builds("i8_resize_linear", "QLinearResize")
def resize(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    tables = []
    for axis in (1, 2):
        of_axis = line(x.dims[axis], y.dims[axis], step.attrs["coordinate_transformation_mode"])
        pairs = np.stack([of_axis.low, of_axis.high], 1)
        tables += [Constant.of(t.astype(np.int32)) for t in (pairs, of_axis.weight)]
    v, options = several(target.profile, x.dims[3])
    args = [x, *tables, y, *x.dims, y.dims[1], y.dims[2], flip_of(x)]
    grid = (x.dims[3] // v, y.dims[2], y.dims[0] * y.dims[1])
    return [Launch("i8_resize", "interpolate", args, grid, options)]
