"""Samples of a batch that go through the large layers one after another.

A layer whose values for the whole batch are larger than the caches reads from memory what the one
before has written there. For one sample these values are smaller. So a run of steps passes over the
batch one sample at a time: each step of the run takes the first sample, then each the second. What
only these steps hand on to each other then needs memory for one sample. A step reads its weights
again for each sample, so those of small values and large weights stay outside.

The steps carry the size of the batch in `Step.samples` (`turns.py`).
"""

from __future__ import annotations

from ..ops import find_op
from .model import Plan, PlanTensor, Step

#: The runtime takes no more.
_MOST_SAMPLES = 1 << 16
#: So much of a layer's values for the whole batch stays in a core's share of the last cache.
_CACHE_BYTES = 4 << 20
#: A step costs as much time as so many bytes of its values: threads wait for each other behind it.
_STEP_BYTES = 128 << 10


def mark_samples(plan: Plan) -> None:
    """Sets `samples` of the run of steps that gains most. Runs before storage is assigned."""
    batches = {d for i in plan.inputs for d in plan.tensors[i].dims[:1] if 2 <= d <= _MOST_SAMPLES}
    if not batches:
        return
    best, at, total = (0, 0, 0), 0, 0  # gain, first, end of the best run; the run so far
    batch = 0
    for step in plan.steps:
        samples = _samples(plan, step)
        if samples not in batches or (total > 0 and samples != batch):
            at, total = step.index + 1, 0
            continue
        gain = _gain(plan, step, samples)
        if total <= 0:
            at, total, batch = step.index, 0, samples
        total += gain
        best = max(best, (total, at, step.index + 1))
    _, first, end = best
    if end - first < 2:
        return
    for step in plan.steps[first:end]:
        step.samples = _samples(plan, step)


def _samples(plan: Plan, step: Step) -> int:
    """How many samples a step computes, each on its own; 0 where it does not."""
    if step.backend != "cpu" or not _by_sample(step):
        return 0
    op = find_op(step.op)
    weights: list[PlanTensor] = []
    shapes: set[tuple[int, int]] = set()  # batch, rank
    for i, index in enumerate((*step.inputs, *step.outputs)):
        if index < 0:
            continue
        tensor, owner = plan.tensors[index], plan.root(index)
        if op is not None and i < len(step.inputs) and op.packs(i):
            if owner.role != "weight":
                return 0
        elif owner.role == "weight":
            weights.append(tensor)
        elif not _is_batch(tensor, owner):
            return 0
        else:
            shapes.add((tensor.dims[0], len(tensor.dims)))
    if len(shapes) != 1:
        return 0
    ((batch, rank),) = shapes
    return 0 if any(len(w.dims) == rank and w.dims[0] != 1 for w in weights) else batch


def _by_sample(step: Step) -> bool:
    """By its kind: of images, of single elements, or along an axis that is not the batch's."""
    op = find_op(step.op)
    if op is None:
        return step.op == "Relayout" and [*step.attrs["perm"][:1]] == [0]
    if op.dynamic or op.random or op.training:
        return False
    if op.layout == "axis":
        axis = step.attrs.get("axis")
        return isinstance(axis, int) and axis > 0
    return op.layout in ("channels_last", "elementwise") and len(step.outputs) == 1


def _is_batch(tensor: PlanTensor, owner: PlanTensor) -> bool:
    known = tensor.shape_known and tensor.space == owner.space == "host"
    if not known or len(tensor.dims) < 3 or tensor.layout[0] or owner.layout[:1] != (0,):
        return False
    return owner.dims[0] == tensor.dims[0]


def _gain(plan: Plan, step: Step, samples: int) -> int:
    """Bytes that need not come from memory, less those that are read again."""
    values = weights = 0
    for index in (*step.inputs, *step.outputs):
        if index < 0:
            continue
        if plan.root(index).role == "weight":
            weights += plan.tensors[index].nbytes
        else:
            values += plan.tensors[index].nbytes
    if "3x3" in step.kernel:  # as F(4,3)'s points
        weights *= 4
    saved = values if values > _CACHE_BYTES else 0
    return saved - samples * _STEP_BYTES - (samples - 1) * weights
