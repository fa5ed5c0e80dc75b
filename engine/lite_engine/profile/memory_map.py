"""Where every tensor lies and when, and which ones make the peak."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from lite_messages import tr

from ..backends.opencl.sharing import share
from ..plan import Plan, Segment, Span, cut, lifetimes
from ..plan.turns import NO_TURNS, turns_of


def memory_map(
    plan: Plan, segments: Sequence[Segment] | None = None, arena_bytes: int = 0
) -> dict[str, Any]:
    """Rectangles of step × offset, and the explained peak. `segments` are what `cut` makes of the
    plan, `arena_bytes` what the runtime has for it, where these are known: with turns over samples
    (`plan/turns.py`), the runtime decides how many a turn takes.

    {"tensors": [{"name", "first", "last", "offset", "bytes"}], "steps": [names], "arena_bytes",
    "device_bytes", "weight_bytes", "peak": {"step", "name", "live_bytes", "tensors": [{"name",
    "bytes"}], "text"}}. `live_bytes` is what is needed at that step; the arena may be larger by the
    gaps between tensors that live at different times. The buffers of the OpenCL device lie one
    after the other behind the host's arena.
    """
    maker = {plan.root(i).index: s.name for s in plan.steps for i in s.outputs if i >= 0}
    on_opencl = any(s.backend == "opencl" for s in plan.steps)
    buffers, device_bytes = _buffers((segments or cut(plan)) if on_opencl else ())
    spans, whole = _arena(plan, arena_bytes)
    tensors = []
    for span in spans:
        tensor = plan.tensors[span.tensor]
        on_device = tensor.space != "host"
        if on_device and span.tensor not in buffers:
            continue  # a view of what another segment left on the device
        tensors.append(
            {
                "name": maker.get(span.tensor, tensor.name),
                "first": span.first,
                "last": min(span.last, len(plan.steps) - 1),
                "offset": whole + buffers[span.tensor] if on_device else span.offset,
                "bytes": tensor.nbytes if on_device else span.size,
            }
        )
    return {
        "tensors": tensors,
        "steps": [s.name for s in plan.steps],
        "arena_bytes": whole,
        "device_bytes": device_bytes,
        "weight_bytes": plan.weight_bytes,
        "peak": _peak(whole + device_bytes, [s.name for s in plan.steps], tensors),
    }


def _arena(plan: Plan, arena_bytes: int) -> tuple[list[Span], int]:
    """What lies in the arena as it is, and its bytes."""
    turns = turns_of(plan)
    spans = list(lifetimes(plan, turns).values())
    if turns.end and arena_bytes == plan.whole_bytes:
        spans = list(lifetimes(plan, NO_TURNS).values())
        for span in spans:
            span.offset = plan.tensors[span.tensor].whole
        return spans, plan.whole_bytes
    of_one, more = plan.arena_bytes - plan.kept_at, arena_bytes - plan.kept_at
    each = min(turns.samples, max(1, round(more / of_one))) if turns.kept else 1
    for span in spans:
        span.offset = plan.tensors[span.tensor].offset
        if span.tensor in turns.kept:
            span.offset = plan.kept_at + each * (span.offset - plan.kept_at)
            span.size *= each
    return spans, plan.kept_at + each * of_one if turns.kept else plan.arena_bytes


def _buffers(segments: Sequence[Segment]) -> tuple[dict[int, int], int]:
    """Storage owner on the OpenCL device → offset of its buffer among all; their bytes."""
    found: dict[int, int] = {}
    end = 0
    for segment in segments:
        if segment.backend != "opencl":
            continue
        numbers, sizes = share(segment.plan)
        for index, number in numbers.items():
            if segment.plan.tensors[index].data is not None:
                sizes[number] = 0  # a weight
        starts = list(accumulate(sizes, initial=end))
        for index, number in numbers.items():
            found.setdefault(segment.outer[index], starts[number])
        end = starts[-1]
    return found, end


def _peak(whole: int, steps: list[str], tensors: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The step that needs most, of `whole` bytes."""
    if not tensors:
        return None
    live = [0] * len(steps)
    for tensor in tensors:
        for at in range(tensor["first"], tensor["last"] + 1):
            live[at] += tensor["bytes"]
    at = max(range(len(live)), key=live.__getitem__)
    there = [t for t in tensors if t["first"] <= at <= t["last"]]
    there.sort(key=lambda t: -t["bytes"])
    named = ", ".join(f"{t['name']} {_size(t['bytes'])}" for t in there[:3])
    more = tr(" and {count} more", count=len(there) - 3) if len(there) > 3 else ""
    step = steps[at]
    text = tr(
        "{size} needed at {step}: {named}{more}",
        size=_size(live[at]),
        step=step,
        named=named,
        more=more,
    )
    gaps = whole - live[at]
    if gaps > 0.02 * live[at]:
        text += tr(
            "; {size} of the arena and the buffers are unused at this step", size=_size(gaps)
        )
    return {
        "step": at,
        "name": step,
        "live_bytes": live[at],
        "tensors": [{"name": t["name"], "bytes": t["bytes"]} for t in there],
        "text": text,
    }


def _size(nbytes: int) -> str:
    return f"{nbytes / 1e6:.2f} MB" if nbytes >= 1e5 else f"{nbytes / 1e3:.2f} kB"
