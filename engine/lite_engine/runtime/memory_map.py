"""Where every tensor lies in the arena and when, and which ones make the peak."""

from __future__ import annotations

from typing import Any

from ..plan import Plan, lifetimes


def memory_map(plan: Plan) -> dict[str, Any]:
    """Rectangles of step × offset, and the explained peak.

    {"tensors": [{"name", "first", "last", "offset", "bytes"}], "steps": [names], "arena_bytes",
    "weight_bytes", "peak": {"step", "name", "live_bytes", "tensors": [{"name", "bytes"}],
    "text"}}. `live_bytes` is what is needed at that step; the arena may be larger by the gaps
    between tensors that live at different times. Tensors of the OpenCL device have no offset in
    the arena: they are left out.
    """
    maker = {plan.root(i).index: s.name for s in plan.steps for i in s.outputs if i >= 0}
    spans = [s for s in lifetimes(plan).values() if plan.tensors[s.tensor].space == "host"]
    tensors = [
        {
            "name": maker.get(span.tensor, plan.tensors[span.tensor].name),
            "first": span.first,
            "last": min(span.last, len(plan.steps) - 1),
            "offset": plan.tensors[span.tensor].offset,
            "bytes": span.size,
        }
        for span in spans
    ]
    return {
        "tensors": tensors,
        "steps": [s.name for s in plan.steps],
        "arena_bytes": plan.arena_bytes,
        "weight_bytes": plan.weight_bytes,
        "peak": _peak(plan, tensors),
    }


def _peak(plan: Plan, tensors: list[dict[str, Any]]) -> dict[str, Any] | None:
    if not tensors:
        return None
    live = [0] * len(plan.steps)
    for tensor in tensors:
        for at in range(tensor["first"], tensor["last"] + 1):
            live[at] += tensor["bytes"]
    at = max(range(len(live)), key=live.__getitem__)
    there = [t for t in tensors if t["first"] <= at <= t["last"]]
    there.sort(key=lambda t: -t["bytes"])
    named = ", ".join(f"{t['name']} {t['bytes'] / 1e6:.2f} MB" for t in there[:3])
    more = f" and {len(there) - 3} more" if len(there) > 3 else ""
    step = plan.steps[at].name
    text = f"{live[at] / 1e6:.2f} MB are needed at {step}: {named}{more}"
    gaps = plan.arena_bytes - live[at]
    if gaps > 0.02 * live[at]:
        text += f"; the arena has {gaps / 1e6:.2f} MB of gaps beside them"
    return {
        "step": at,
        "name": step,
        "live_bytes": live[at],
        "tensors": [{"name": t["name"], "bytes": t["bytes"]} for t in there],
        "text": text,
    }
