"""Float32 values that lie in memory in bf16 between the steps that write and read them.

In precision bf16 products take 8 bits of significand anyway: a value that every step around it
takes in bf16 is half the bytes to write and to read, and a convolution rounds it no second time.
Values that some step wants in float32, the network's inputs and outputs and small ones stay
float32: nothing is ever converted in a step of its own. A kernel `f32_NAME` becomes `bf16_NAME`
where all its values are; `mixed` ones choose for each output and each of some inputs.

fp16 needs no such pass: its kernels take nothing else, so lowering stores every value that they
touch in it, and converts at their borders.
"""

from __future__ import annotations

from ..ir import DType
from ..ops import KernelRef, find_op
from .model import Plan, PlanTensor, Step

#: Smaller values stay in the first-level cache.
_SMALL_BYTES = 16 << 10


def store_shorts(plan: Plan) -> None:
    """Changes element types and kernels. Runs before buffers are shared."""
    parts: dict[int, list[PlanTensor]] = {}  # storage owner → it and what looks at it
    for tensor in plan.tensors:
        parts.setdefault(plan.root(tensor.index).index, []).append(tensor)
    taking = {step.index: _taking(step) for step in plan.steps}
    values = {step.index: _values(plan, step) for step in plan.steps}
    owners = {at: {plan.root(i).index for i in found} for at, found in values.items()}
    refused = {plan.root(i).index for s in plan.steps for i in _wide(s, taking[s.index], values)}
    chosen = {i for own in owners.values() for i in own if i not in refused}
    chosen = {i for i in chosen if _may_shrink(plan.tensors[i], parts[i])}
    whole = [owners[at] for at, ref in taking.items() if ref is not None and ref.mixed is None]
    while dropped := {i for own in whole if not own <= chosen for i in own & chosen}:
        chosen -= dropped
    for step in plan.steps:
        ref = taking[step.index]
        short = [i for i in values[step.index] if plan.root(i).index in chosen]
        step.bytes -= sum(plan.tensors[i].nbytes // 2 for i in short)
        if ref is not None and short:
            step.kernel, step.why = ref.name, ref.why or step.why
    for tensor in (t for i in chosen for t in parts[i]):
        tensor.dtype, tensor.short = DType.BF16, True


def _taking(step: Step) -> KernelRef | None:
    """The kernel that runs a step on bf16: its own, or the one that f32_NAME has for it."""
    op = find_op(step.op)
    if op is None or step.backend != "cpu":
        return None
    names = (step.kernel, step.kernel.replace("f32_", "bf16_", 1))
    refs = [k for k in op.kernels if k.backend == "cpu" and DType.BF16 in k.dtypes]
    return next((k for name in names for k in refs if k.name == name), None)


def _values(plan: Plan, step: Step) -> list[int]:
    """The float tensors that a step computes on, without the weights that it packs."""
    op = find_op(step.op)

    def packed(i: int, index: int) -> bool:
        weight = i < len(step.inputs) and plan.tensors[index].role == "weight"
        return weight and op is not None and op.packs(i)

    return [
        index
        for i, index in enumerate((*step.inputs, *step.outputs))
        if index >= 0 and plan.tensors[index].dtype is DType.F32 and not packed(i, index)
    ]


def _wide(step: Step, ref: KernelRef | None, values: dict[int, list[int]]) -> list[int]:
    """Those that a step wants in float32."""
    op = find_op(step.op)
    if ref is None or op is None:
        return values[step.index]
    mixed = ref.mixed
    if mixed is None:
        return []
    return [i for n, i in enumerate(step.inputs) if i >= 0 and op.input_name(n) not in mixed]


def _may_shrink(owner: PlanTensor, parts: list[PlanTensor]) -> bool:
    return owner.nbytes >= _SMALL_BYTES and all(
        t.role == "arena" and t.dtype is DType.F32 for t in parts
    )
