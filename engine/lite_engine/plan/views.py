"""Concat and Split without copies: their pieces become views of one buffer.

A piece of a join along the innermost physical axis is a tensor with the whole's row pitch. Its
producer writes it in place when that kernel accepts a pitch; the Concat step stays in the plan,
finds its pieces where they belong, and copies only those that could not be laid there.
"""

from __future__ import annotations

from ..ops import find_op
from .model import Plan, PlanTensor, Step


def share_buffers(plan: Plan) -> None:
    """Rewrites the tensors of eligible Concat and Split steps. Runs before storage is reused."""
    use = _Use(plan)
    steps = [s for s in plan.steps if s.backend in ("cpu", "opencl")]
    for step in reversed(
        steps
    ):  # a join that is a part of another one is laid before its own parts
        if step.op == "Concat":
            _join(plan, step, use)
    for step in steps:
        if step.op == "Split":
            _cut(plan, step, use)


class _Use:
    """Who makes and who reads each tensor, and in which segment."""

    def __init__(self, plan: Plan) -> None:
        self.makers: dict[int, Step] = {}
        self.readers: dict[int, list[Step]] = {}
        self.segment: dict[int, int] = {}
        self.laid: set[int] = set()
        self.views: dict[int, list[PlanTensor]] = {}
        for tensor in plan.tensors:
            if tensor.alias_of is not None:
                self.views.setdefault(tensor.alias_of, []).append(tensor)
        self.outputs = {plan.root(i).index for i in plan.outputs}
        for number, (_, steps) in enumerate(plan.segments()):
            for step in steps:
                self.segment[step.index] = number
                for index in step.inputs:
                    self.readers.setdefault(index, []).append(step)
                for index in step.outputs:
                    self.makers[index] = step


def _is_free(tensor: PlanTensor, use: _Use) -> bool:
    """Storage of its own in the arena that the caller does not get. Without elements there is
    none, and a view of no bytes behind a row's last byte would be within the row."""
    return (
        tensor.role == "arena"
        and tensor.alias_of is None
        and tensor.index not in use.outputs
        and bool(tensor.dims)
        and 0 not in tensor.dims
    )


def _shown(piece: PlanTensor, use: _Use) -> list[PlanTensor]:
    """A piece and the views of all of it that have its rows; empty where it has others."""
    views = use.views.get(piece.index, [])
    alike = all(
        v.dims[-1:] == piece.dims[-1:] and not v.alias_offset and v.index not in use.views
        for v in views
    )
    return [piece, *views] if alike else []


def _looking_at(tensor: PlanTensor, use: _Use) -> list[PlanTensor]:
    """A tensor and all views of it, whatever their rows."""
    found = [tensor]
    for seen in found:
        found += use.views.get(seen.index, ())
    return found


def _accepts_pitch(step: Step, tensor: PlanTensor) -> bool:
    """OpenCL's convolutions do for what they convolve and what they make, not for a residual; its
    attention for queries, keys and values."""
    if step.op == "Relayout":
        return step.backend == "cpu"
    if step.backend == "opencl" and step.op == "Conv" and tensor.index in step.inputs[1:]:
        return False
    if step.backend == "opencl" and step.op == "Attention" and tensor.index not in step.inputs[:3]:
        return False
    op = find_op(step.op)
    return op is not None and any(
        k.accepts_pitch for k in op.kernels if k.backend == step.backend and k.name == step.kernel
    )


def _fits(piece: PlanTensor, home: Step, use: _Use) -> bool:
    """Whether a tensor may be a pitched view: all who touch it are in `home`'s segment and can."""
    shown = _shown(piece, use)
    touching = [(s, t) for t in shown for s in use.readers.get(t.index, ())]
    touching.append((use.makers[piece.index], piece))
    return (
        bool(shown)
        and _is_free(piece, use)
        and all(
            s is home or (use.segment[s.index] == use.segment[home.index] and _accepts_pitch(s, t))
            for s, t in touching
        )
    )


def _innermost(step: Step, whole: PlanTensor) -> bool:
    """Along the last axis of rows: where there are none, no part has a place in them."""
    axis = int(step.attrs.get("axis", 0))
    rows = bool(whole.dims) and 0 not in whole.dims
    return rows and axis % len(whole.dims) == len(whole.dims) - 1


def _lay(plan: Plan, piece: PlanTensor, whole: PlanTensor, at: int, use: _Use) -> None:
    """Makes `piece` the elements from `at` on of every row of `whole`."""
    home, offset = whole, at * whole.dtype.itemsize
    while home.alias_of is not None:
        offset += home.alias_offset
        home = plan.tensors[home.alias_of]
    for tensor in _shown(piece, use):
        tensor.alias_of, tensor.alias_offset, tensor.pitch = home.index, offset, whole.pitch
        tensor.piece = None if tensor is piece else piece.index
        use.views.setdefault(whole.index, []).append(tensor)
    use.views.pop(piece.index, None)
    use.laid.add(piece.index)


def _join(plan: Plan, step: Step, use: _Use) -> None:
    whole = plan.tensors[step.outputs[0]]
    own = _is_free(whole, use) or whole.index in use.laid
    if not _innermost(step, whole) or not own:
        return
    here = use.segment[step.index]
    readers = [s for t in _looking_at(whole, use) for s in use.readers.get(t.index, ())]
    if any(use.segment[s.index] != here for s in readers):
        return  # a segment's outputs are dense, and so are views of them
    at = 0
    for index in step.inputs:
        piece = plan.tensors[index]
        shown = {index, *(t.index for t in _shown(piece, use))}
        once = sum(i in shown for i in step.inputs) == 1 and index in use.makers
        if once and use.makers[index].op != "Split" and _fits(piece, step, use):
            _lay(plan, piece, whole, at, use)
        at += piece.dims[-1]


def _cut(plan: Plan, step: Step, use: _Use) -> None:
    whole = plan.tensors[step.inputs[0]]
    root = plan.root(whole.index)
    if not _innermost(step, whole) or whole.role != "arena" or root.role != "arena":
        return
    maker = use.makers.get(root.index)
    if maker is None or use.segment[maker.index] != use.segment[step.index]:
        return
    at = 0
    for index in step.outputs:
        piece = plan.tensors[index]
        readers = [s for t in _shown(piece, use) for s in use.readers.get(t.index, ())]
        # What is cut may be a part of a join that reads the piece, too, for another place.
        joined = any(
            s.op == "Concat" and plan.root(s.outputs[0]).index == root.index for s in readers
        )
        if readers and not joined and _fits(piece, step, use):
            _lay(plan, piece, whole, at, use)
        at += piece.dims[-1]
