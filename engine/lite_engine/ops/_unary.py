"""How an elementwise function of one floating-point input is defined."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ._core import OpDef, define_op
from ._helpers import float_kernels, same_type, typed
from ._records import Cost


def unary(
    name: str,
    fn: Callable[..., Any],
    source: str,
    *,
    opencl: str,
    flops: int = 1,
    choices: Mapping[str, tuple[Any, ...]] | None = None,
    activation: bool = False,
    fusable: bool = False,
    clamps: bool = False,
    output_range: tuple[float, float] = (-math.inf, math.inf),
    **attrs: Any,
) -> OpDef:
    """y = fn(x), with a row in `isa/unary.cc` or `ops/activation_table.h` of the native sources.

    `opencl` is the function as an expression of `x` in OpenCL C, for numbers and vectors;
    `ACT_A` and `ACT_B` are its attributes in their order, other macros are those of
    `kernels/common.h`.
    """
    op = define_op(
        name, inputs="x", attrs=attrs, layout="elementwise", source=source, choices=choices,
        activation=activation, fusable=fusable, clamps=clamps, output_range=output_range,
        integer_form="table", quantized="joins" if fusable else "",
    )  # fmt: skip
    op.infer(same_type)
    op.reference(typed(fn))
    op.cost(lambda x, **_: Cost(flops=flops * x.size))
    float_kernels(op, "unary", accepts_pitch=True, in_place=True)
    op.kernel("opencl", "unary", dtype="f32,f16", code=opencl)
    return op
