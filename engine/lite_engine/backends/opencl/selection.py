"""Launches of steps on truths and of what they choose: logic, comparisons, Where."""

from __future__ import annotations

from ...ir import DType
from ...plan import Plan, PlanTensor, Step
from .launch import Launch, element_type
from .options import code_of, join
from .registry import Target, builds
from .strides import broadcast_strides, collapsed


def _walk(y: PlanTensor, *operands: PlanTensor) -> list[int]:
    """The sizes of all axes but the first, and each operand's strides."""
    merged = collapsed(y.dims, *(broadcast_strides(x, y.dims) for x in operands))
    assert merged is not None, "the registry's condition keeps larger ranks away"
    dims, strides = merged
    return [*dims[1:], *(s for one in strides for s in one)]


@builds("where", "Where")
def where(step: Step, plan: Plan, target: Target) -> list[Launch]:
    operands = [plan.tensors[i] for i in step.inputs]
    y = plan.tensors[step.outputs[0]]
    args = [*operands, y, y.size, *_walk(y, *operands)]
    return [Launch("select", "where", args, (y.size,), f"#define E {element_type(y)}")]


@builds("judge")
def judge(step: Step, plan: Plan, target: Target) -> list[Launch]:
    a, b = (plan.tensors[i] for i in step.inputs)
    y = plan.tensors[step.outputs[0]]
    options = join(
        f"#define TI {_C_TYPES[a.dtype]}", f"#define OP(p,q) {code_of(step.op, step.kernel)}"
    )
    return [Launch("select", "judge", [a, b, y, y.size, *_walk(y, a, b)], (y.size,), options)]


_C_TYPES = {
    DType.BOOL: "uchar", DType.I8: "char", DType.U8: "uchar", DType.I16: "short",
    DType.U16: "ushort", DType.I32: "int", DType.U32: "uint", DType.I64: "long",
    DType.U64: "ulong",
}  # fmt: skip
