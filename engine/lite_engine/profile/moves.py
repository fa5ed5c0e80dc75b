"""Why data was moved: between which backends, orders or precisions, and what would end it."""

from __future__ import annotations

from typing import Any

from lite_messages import tr

from ..plan import Plan, PlanTensor, Step

_MOVES = ("Copy", "Cast", "Relayout")


class Moves:
    """The moves of a plan: who made and who reads what they move is found once for all."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._makers: dict[int, Step] = {}  # the first that writes a storage
        self._readers: dict[int, list[Step]] = {}
        for step in plan.steps:
            for root in {plan.root(i).index for i in step.inputs if i >= 0}:
                self._readers.setdefault(root, []).append(step)
            for index in step.outputs:
                self._makers.setdefault(plan.root(index).index, step)

    def of(self, step: Step, median_ms: float) -> dict[str, Any]:
        """The `copy` entry of a profile row for a Copy, Cast or Relayout step.

        {"source", "target", "bytes", "why", "fix", "gain_ms"} and source and target of layout and
        precision; `gain_ms` is left out where nothing can be gained.
        """
        tensors = self._plan.tensors
        given, made = tensors[step.inputs[0]], tensors[step.outputs[0]]
        maker, readers = self._maker(given), self._behind(step)
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

    def _maker(self, tensor: PlanTensor) -> Step | None:
        """The layer whose output was moved, behind other moves; None for a model input."""
        step = self._makers.get(self._plan.root(tensor.index).index)
        if step is not None and step.op in _MOVES and step.inputs[0] >= 0:
            return self._maker(self._plan.tensors[step.inputs[0]])
        return step

    def _behind(self, move: Step) -> list[Step]:
        """The layers that read what was moved, behind other moves."""
        found: list[Step] = []
        for step in self._readers.get(self._plan.root(move.outputs[0]).index, ()):
            if step.index > move.index:
                found += self._behind(step) if step.op in _MOVES else [step]
        return found


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
            "{op} {layer} reads the {layout} memory order",
            op=readers[0].op,
            layer=readers[0].name,
            layout=step.why.split(" to ")[-1],
        ), True
    return tr(
        "{readers} {computes} computes in another precision",
        readers=readers[0].op,
        computes=readers[0].name,
    ), True
