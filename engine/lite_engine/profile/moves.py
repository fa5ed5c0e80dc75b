"""Why data was moved: between which backends, orders or precisions, and what would end it."""

from __future__ import annotations

from typing import Any

from lite_messages import tr

from ..plan import Plan, PlanTensor, Step


def move_of(plan: Plan, step: Step, median_ms: float) -> dict[str, Any]:
    """The `copy` entry of a profile row for a Copy, Cast or Relayout step.

    {"source", "target", "bytes", "why", "fix", "gain_ms"} and source and target of layout and
    precision; `gain_ms` is left out where nothing can be gained.
    """
    given, made = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    maker, readers = _maker(plan, given), _readers(plan, step)
    out = {
        "source": maker.backend if maker and step.op == "Copy" else _place(given, step),
        "target": readers[0].backend if readers and step.op == "Copy" else _place(made, step),
        "source_layout": order(given),
        "target_layout": order(made),
        "source_precision": str(given.dtype),
        "target_precision": str(made.dtype),
        "bytes": step.bytes,
        "why": step.why,
    }
    if step.op == "Relayout":
        out["source"], out["target"] = out["source_layout"], out["target_layout"]
    elif step.op == "Cast":
        out["source"], out["target"] = out["source_precision"], out["target_precision"]
    out["fix"], gains = _fix(step, maker, readers)
    if gains:
        out["gain_ms"] = median_ms
    return out


def order(tensor: PlanTensor) -> str:
    """Name of a memory order: "row-major", "channels-last" or the permutation."""
    layout = tensor.layout
    if layout == tuple(range(len(layout))):
        return "row-major"
    if layout == (0, *range(2, len(layout)), 1):
        return "channels-last"
    return "order " + "".join(map(str, layout))


def _place(tensor: PlanTensor, step: Step) -> str:
    if tensor.space == "opencl":
        return "opencl"
    return "reference" if step.backend == "reference" else "cpu"


def _maker(plan: Plan, tensor: PlanTensor) -> Step | None:
    """The layer whose output was moved, behind other moves; None for a model input."""
    root = plan.root(tensor.index).index
    for step in plan.steps:
        if root in (plan.root(i).index for i in step.outputs):
            if step.op in ("Copy", "Cast", "Relayout") and step.inputs[0] >= 0:
                return _maker(plan, plan.tensors[step.inputs[0]])
            return step
    return None


def _readers(plan: Plan, move: Step) -> list[Step]:
    """The layers that read what was moved, behind other moves."""
    root = plan.root(move.outputs[0]).index
    found: list[Step] = []
    for step in plan.steps[move.index + 1 :]:
        if root in (plan.root(i).index for i in step.inputs if i >= 0):
            moves = step.op in ("Copy", "Cast", "Relayout")
            found += _readers(plan, step) if moves else [step]
    return found


def _fix(step: Step, maker: Step | None, readers: list[Step]) -> tuple[str, bool]:
    """A sentence (or a call) and whether the time of the move can be gained."""
    if maker is None:
        return tr("the model's input comes from the host in the file's own order"), False
    if not readers:
        return tr("the model's output goes to the host in the file's own order"), False
    if step.op == "Copy":
        odd = next((s for s in (maker, *readers) if s.backend != "opencl"), None)
        if odd is not None:
            return tr("{odd} has no kernel on the device: {why}", odd=odd.name, why=odd.why), True
    if step.op == "Relayout":
        return tr(
            "{op} {layer} reads {layout} order",
            op=readers[0].op,
            layer=readers[0].name,
            layout=step.why.split(" to ")[-1],
        ), True
    return tr(
        "{readers} {computes} computes in another precision",
        readers=readers[0].op,
        computes=readers[0].name,
    ), True
