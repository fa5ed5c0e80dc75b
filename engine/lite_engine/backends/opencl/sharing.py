"""Which tensors of a device take turns in one buffer."""

from __future__ import annotations

from ...plan import Plan

#: A buffer is reused for what needs at least a fourth of it.
WASTE = 4


def share(plan: Plan, copied_apart: bool = False) -> tuple[dict[int, int], list[int]]:
    """(storage owner on the device → number of its buffer, sizes of the buffers in bytes).

    `plan` is one segment's. A tensor of the arena gives its buffer back after the last step that
    touches it; the others have their own, and if `copied_apart` those that are copied from or to
    the host, too: all such copies can then come before or after all launches.
    """
    copies = [s for s in plan.steps if s.op == "Copy"] if copied_apart else []
    apart = {plan.root(i).index for s in copies for i in (*s.inputs, *s.outputs) if i >= 0}
    last: dict[int, int] = {}
    for step in plan.steps:
        for index in (*step.inputs, *step.outputs):
            if index >= 0:
                last[plan.root(index).index] = step.index
    ended: dict[int, list[int]] = {}
    for index, end in last.items():
        ended.setdefault(end, []).append(index)
    numbers: dict[int, int] = {}
    sizes: list[int] = []
    free: list[int] = []
    for step in plan.steps:
        for index in (*step.outputs, *step.inputs):
            root = plan.root(index) if index >= 0 else None
            if root is None or root.space != "opencl" or root.index in numbers:
                continue
            need = max(root.nbytes, 4)
            fitting = [n for n in free if need <= sizes[n] <= WASTE * need]
            if root.role == "arena" and fitting and root.index not in apart:
                number = min(fitting, key=sizes.__getitem__)
                free.remove(number)
            else:
                number = len(sizes)
                sizes.append(need)
            numbers[root.index] = number
        for index in ended.get(step.index, ()):
            if plan.tensors[index].role == "arena" and index in numbers and index not in apart:
                free.append(numbers[index])
    return numbers, sizes


__all__ = ["share"]
