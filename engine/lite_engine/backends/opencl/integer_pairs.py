"""Launches of integer operators on two tensors (`ops/quant_fixed.py` has LiteRT's formulas)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...ops._scales import Scale
from ...ops.litert import LITERT, factors, product_scale
from ...ops.litert_functions import fraction
from ...plan import Plan, PlanTensor, Step
from .integers import Quantization
from .launch import Launch
from .options import code_of, join, several
from .profile import DeviceProfile
from .registry import Target, builds
from .strides import broadcast_strides, collapsed

#: Rows of a work-item of a product.
_ROWS = 4
#: A ratio below 2^-32 makes 0 of every sum; an exponent beyond 31 saturates alike.
_ZERO, _MOST = (0, 0), 31


class _Pair(NamedTuple):
    """Two tensors, what becomes of them, and how their bytes are meant."""

    a: PlanTensor
    b: PlanTensor
    y: PlanTensor
    of_a: Quantization
    of_b: Quantization
    of_y: Quantization

    @classmethod
    def of(cls, step: Step, plan: Plan) -> _Pair:
        a, b, y = (plan.tensors[i] for i in (step.inputs[0], step.inputs[3], step.outputs[0]))
        read = [Quantization.read(plan, step, t, i) for t, i in ((a, 1), (b, 4), (y, 6))]
        return cls(a, b, y, *read)

    @property
    def zeros(self) -> list[int]:
        return [self.of_y.flip, self.of_a.zero, self.of_b.zero, self.of_y.zero]

    def launch(
        self, profile: DeviceProfile, way: str, wholes: tuple[int, ...] = (0,) * 6,
        reals: tuple[float, ...] = (0.0,) * 4,
    ) -> Launch:  # fmt: skip
        """`way` is the option that says how they are combined, `wholes` a_whole to y_exponent and
        `reals` a_scale to inverse (OPERANDS in i8.h)."""
        a, b, y = self.a, self.b, self.y
        numbers = [*self.zeros, *wholes, *reals, 0]
        merged = collapsed(y.dims, broadcast_strides(a, y.dims), broadcast_strides(b, y.dims))
        assert merged is not None, "the registry's condition keeps larger ranks away"
        dims, (sa, sb) = merged
        if dims[:4] == [1] * 4 and sa[5] == sb[5] == 1:
            width, rows = dims[5], dims[4]
            v, options = several(profile, width)
            args = [a, b, y, width, rows, sa[4], sb[4], *numbers]
            return Launch("i8_binary", "binary_rows", args, (width // v, rows), join(options, way))
        args = [a, b, y, y.size, *dims[1:], *sa, *sb, *numbers]
        return Launch("i8_binary", "binary", args, (y.size,), way)


@builds("i8_binary")
def binary(step: Step, plan: Plan, target: Target) -> list[Launch]:
    pair = _Pair.of(step, plan)
    way = f"#define OP(p,q) {code_of(step.op, 'i8_binary')}"
    if step.attrs.get("rounding") == LITERT:
        return [_litert(step.op, pair, way, target.profile)]
    scales = tuple(float(q.scale) for q in (pair.of_a, pair.of_b, pair.of_y))
    return [pair.launch(target.profile, way, reals=(*scales, pair.of_y.inverse))]


def _litert(op: str, pair: _Pair, way: str, profile: DeviceProfile) -> Launch:
    """Rounded as LiteRT does."""
    a, b, y = (Scale(np.array(q.scale), np.array(q.zero)) for q in pair[3:])
    if op == "QLinearMul":
        reals = (1.0, 1.0, 1.0, float(product_scale(a, b, y)))
        return pair.launch(profile, join(way, "#define BY_PRODUCT"), reals=reals)
    f = factors(a, b, y, -1 if op == "QLinearSub" else 1)
    return pair.launch(profile, "#define SHIFTED", wholes=(f.a, 0, f.b, 0, f.bias, f.shift))


def _fraction(real: float) -> tuple[int, int]:
    """real = whole / 2^31 · 2^exponent, with exponents that kernels take."""
    whole, exponent = fraction(real)
    return _ZERO if exponent < -_MOST else (whole, min(exponent, _MOST))


@builds("i8_fixed", "QLinearPRelu", "QLinearSquaredDifference")
def fixed(step: Step, plan: Plan, target: Target) -> list[Launch]:
    pair = _Pair.of(step, plan)
    a, b, y = (q.scale for q in pair[3:])
    if step.op == "QLinearPRelu":
        way, ratios = "#define PRELU", [float(a / y), float(a * b / y), 0.0]
    else:
        common = 2 * max(float(a), float(b))
        whole = common * common / ((1 << 14) * float(y))
        way, ratios = "#define SQUARES", [float(a) / common, float(b) / common, whole]
    wholes = tuple(n for ratio in ratios for n in _fraction(ratio))
    return [pair.launch(target.profile, way, wholes)]


@builds("i8_batch_matmul", "QLinearBatchMatMul")
def product(step: Step, plan: Plan, target: Target) -> list[Launch]:
    pair = _Pair.of(step, plan)
    a, b, y = pair[:3]
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
    ratio = float(pair.of_a.scale * pair.of_b.scale) / float(pair.of_y.scale)
    numbers = [*pair.zeros, *_fraction(ratio)]
    args = [a, b, y, math.prod(batch), m, n, k, *dims[1:], *sa, *sb, *numbers]
    grid = (n // v, -(-m // _ROWS), math.prod(batch))
    return [Launch("i8_binary", "product", args, grid, join(options, f"#define ROWS {_ROWS}"))]
