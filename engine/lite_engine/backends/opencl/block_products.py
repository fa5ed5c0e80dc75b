"""Launches of products with weights of a few bits, which stay packed on the device."""

from __future__ import annotations

from ...plan import Plan, Step
from .convolutions import bias_of
from .launch import Launch
from .options import activation_options, join, storage_option
from .registry import Target, builds

#: Rows that an item makes with each weight it reads.
ROWS = 4


@builds("matmul_nbits", "MatMulNBits")
def matmul_nbits(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, b, scales = (plan.tensors[i] for i in step.inputs[:3])
    y = plan.tensors[step.outputs[0]]
    has_zeros = len(step.inputs) > 3 and step.inputs[3] >= 0
    zeros = plan.tensors[step.inputs[3]] if has_zeros else b  # not read
    k, n = x.dims[-1], y.dims[-1]
    m = y.size // n
    rows = min(ROWS, max(m, 1))
    options = [
        storage_option(y.dtype), activation_options(step), f"#define ROWS {rows}",
        "#define ZEROS" if has_zeros else "",
    ]  # fmt: skip
    args = [x, b, scales, zeros, bias_of(plan, step, 5, n), y, m, n, k, step.attrs["block_size"]]
    return [Launch("matmul_nbits", "matmul_nbits", args, (n, -(-m // rows)), join(*options))]
