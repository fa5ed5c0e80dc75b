"""Float32 values that lie in memory in bf16 between the steps that write and read them.

In precision bf16 products take 8 bits of significand anyway: a value that every step around it
takes in bf16 is half the bytes to write and to read, and a convolution rounds it no second time.
Values that some step wants in float32, the network's inputs and outputs and small ones stay
float32: nothing is ever converted in a step of its own. A kernel `f32_NAME` becomes `bf16_NAME`
where all its values are; `mixed` ones choose for each tensor.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..ir import DType
from ..ops import KernelRef, OpDef, find_op
from .model import Plan, PlanTensor, Step

#: Smaller values stay in the first-level cache.
_SMALL_BYTES = 16 << 10


def store_shorts(plan: Plan) -> None:
    """Changes element types and kernels. Runs before buffers are shared."""
    taking = {step.index: _taking(step) for step in plan.steps}
    around: dict[int, list[Step]] = {}
    for step in plan.steps:
        for index in {plan.root(i).index for i in _values(plan, step)}:
            around.setdefault(index, []).append(step)
    chosen = {
        root
        for root, steps in around.items()
        if _may_shrink(plan, root) and all(taking[s.index] for s in steps)
    }
    while dropped := {
        root
        for step in plan.steps
        if (ref := taking[step.index]) is not None and not ref.mixed
        for roots in [{plan.root(i).index for i in _values(plan, step)}]
        if not roots <= chosen
        for root in roots & chosen
    }:
        chosen -= dropped
    for step in plan.steps:
        ref, values = taking[step.index], list(_values(plan, step))
        short = [i for i in values if plan.root(i).index in chosen]
        step.bytes -= sum(plan.tensors[i].nbytes // 2 for i in short)
        if ref is not None and short:
            step.kernel, step.why = ref.name, ref.why or step.why
    for tensor in plan.tensors:
        if plan.root(tensor.index).index in chosen:
            tensor.dtype, tensor.short = DType.BF16, True


def _taking(step: Step) -> KernelRef | None:
    """The kernel that runs a step on bf16: its own, or the one that f32_NAME has for it."""
    op = find_op(step.op)
    if op is None or step.backend != "cpu":
        return None
    names = (step.kernel, step.kernel.replace("f32_", "bf16_", 1))
    refs = [k for k in op.kernels if k.backend == "cpu" and DType.BF16 in k.dtypes]
    return next((k for name in names for k in refs if k.name == name), None)


def _values(plan: Plan, step: Step) -> Iterable[int]:
    """The float tensors that a step computes on, without the weights that it packs."""
    op: OpDef | None = find_op(step.op)
    for i, index in enumerate((*step.inputs, *step.outputs)):
        if index < 0 or plan.tensors[index].dtype is not DType.F32:
            continue
        packed = op is not None and i < len(step.inputs) and op.packs(i)
        if not (packed and plan.tensors[index].role == "weight"):
            yield index


def _may_shrink(plan: Plan, root: int) -> bool:
    group: list[PlanTensor] = [t for t in plan.tensors if plan.root(t.index).index == root]
    ports = {*plan.inputs, *plan.outputs}
    return plan.tensors[root].nbytes >= _SMALL_BYTES and all(
        t.role == "arena" and t.dtype is DType.F32 and t.index not in ports for t in group
    )
