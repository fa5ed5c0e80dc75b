"""How much of a model ran where: each backend's share of the layers and of their time.

A layer is a step that computes part of the model. Copies between backends and changes of layout or
type are none, nor is a view, which has no step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lite_messages import tr, trn

from ..model_file.precision import ON_CPU

if TYPE_CHECKING:  # a stored program runs without it
    from .execute import Execution

_PLACES = {"cpu": tr("the CPU"), "opencl": "OpenCL", "reference": tr("the NumPy reference")}


def place_of(backend: str) -> str:
    """A backend in a sentence: the CPU, OpenCL, the name of another package's."""
    return _PLACES.get(backend, backend)


@dataclass(frozen=True)
class Share:
    """`layers` of one backend, their part of all layers, and their part of the time of all layers,
    None where times mean nothing."""

    layers: int
    layer_share: float
    time_share: float | None


def shares(layers: Iterable[tuple[str, float]], *, timed: bool = True) -> dict[str, Share]:
    """Backend → Share, of (backend, time) for each layer."""
    counts: dict[str, int] = {}
    times: dict[str, float] = {}
    for backend, time in layers:
        counts[backend] = counts.get(backend, 0) + 1
        times[backend] = times.get(backend, 0.0) + time
    count, whole = sum(counts.values()), sum(times.values())
    timed = timed and whole > 0
    return {
        name: Share(n, n / count, times[name] / whole if timed else None)
        for name, n in counts.items()
    }


def layer_times(execution: Execution) -> dict[str, tuple[str, int]]:
    """Layer → (backend, ns) of the last run."""
    found: dict[str, tuple[str, int]] = {}
    for step, time in zip(execution.plan.steps, execution.times(), strict=True):
        if step.node is not None:
            _, before = found.get(step.name, ("", 0))
            found[step.name] = step.backend, before + time.end_ns - time.start_ns
    return found


def sentence(found: Mapping[str, Share], backend: str, of: str = "layers", idle: int = 0) -> str:
    """ "27 of 97 layers ran on OpenCL (31 % of the time), 70 on the CPU": the backend that was
    asked for comes first. `of` is "them" where the number of layers was said before, `idle` layers
    need no computation. Empty without any layer."""
    own = ON_CPU.get(backend, backend)
    count = idle + sum(share.layers for share in found.values())
    if not count:
        return ""
    where, all_own = tr("ran on {backend}", backend=place_of(own)), found.keys() == {own}
    if all_own and not idle:
        return (
            tr("all of them {where}", where=where)
            if of == "them"
            else trn("the only layer {where}", "all {n} layers {where}", count, where=where)
        )
    share = found.get(own, Share(0, 0.0, None))
    timed = not all_own and share.time_share is not None
    part = (
        tr(" ({time_share:.0f} % of the time)", time_share=100 * (share.time_share or 0))
        if timed
        else ""
    )
    said = [
        tr("{layers} of them {where}{part}", layers=share.layers, where=where, part=part)
        if of == "them"
        else tr(
            "{layers} of {count} layers {where}{part}",
            layers=share.layers,
            count=count,
            where=where,
            part=part,
        )
    ]
    said += [
        tr("{layers} on {backend}", layers=s.layers, backend=place_of(n))
        for n, s in found.items()
        if n != own
    ]
    rest = trn("{n} needs no computation", "{n} need no computation", idle)
    return ", ".join([*said, *([rest] if idle else [])])
