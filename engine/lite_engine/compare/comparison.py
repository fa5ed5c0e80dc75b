"""The answer of a comparison: a row per layer, the first divergence, the verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..runtime.answer import Answer
from ..runtime.shares import Share
from .difference import Difference


@dataclass
class _Compared:
    """Which layer a row is about. A base of its own, because fields come in the order of bases."""

    index: int
    name: str
    op: str
    sources: list[str]
    tolerance: float


@dataclass
class LayerDifference(Difference, _Compared):
    """One row of DESIGN's `compare` JSON: the accumulated difference. `isolated` holds the same
    numbers for the layer alone; `sources` are A's nodes, `sources_b` B's where they are others.
    `floor` is the |a−b| that is right whatever the relative error. `explained` is the error that
    rounding and clipping make, measured where it was asked for; `quantised` where sides hold other
    integers. `backend_a` and `backend_b` ran the layer in the whole runs, empty where it needs no
    computation and for another framework."""

    isolated: dict[str, Any] | None
    within: bool
    kernel_b: str = ""
    backend_a: str = ""
    backend_b: str = ""
    value_a: str = ""
    value_b: str = ""
    sources_b: list[str] = field(default_factory=list)
    floor: float = 0.0
    explained: float | None = None
    quantised: bool = False
    detail: dict[str, Any] | None = None


@dataclass
class Comparison(Answer):
    """Answer of `lite compare`. `agrees` is False when a layer is wrong by itself or outputs
    differ or have no counterpart (`outputs_alone`, in words). `unaligned` counts layers of B that
    have no counterpart; `magnified` names the layer that makes a large difference of a small one,
    for outputs that differ for no other reason; `outputs_apart` are the outputs that differ by more
    than that and rounding explain. With `layers` or `until` no output is looked at. `shares` says
    for sides "a" and "b" which backends ran the compared layers, `ran` the same in words."""

    a: str
    b: str
    tolerance: float | None
    first_divergence: dict[str, Any] | None
    layers: list[LayerDifference]
    agrees: bool
    verdict: str = ""
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    model: str = ""
    magnified: dict[str, str] = field(default_factory=dict)
    outputs_apart: list[str] = field(default_factory=list)
    outputs_alone: list[str] = field(default_factory=list)
    unaligned: int = 0
    runs: int = 0
    shares: dict[str, dict[str, Share]] = field(default_factory=dict)
    ran: str = ""
