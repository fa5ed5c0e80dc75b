"""Graph + input shapes + backend → Plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily
from .memory import Span, assign_offsets, lifetimes, reuse_in_place
from .model import ALIGNMENT, Placement, Plan, PlanTensor, Step, channels_last, row_major
from .segment import Segment, cut

if TYPE_CHECKING:
    from .make import PRECISION, make_plan
    from .select import kernels_for

__all__ = [
    "ALIGNMENT",
    "PRECISION",
    "Placement",
    "Plan",
    "PlanTensor",
    "Segment",
    "Span",
    "Step",
    "assign_offsets",
    "channels_last",
    "cut",
    "kernels_for",
    "lifetimes",
    "make_plan",
    "reuse_in_place",
    "row_major",
]

# The planner needs the operators; running a plan, or a stored program, does not.
__getattr__ = lazily(
    __name__,
    {"PRECISION": "make", "make_plan": "make", "kernels_for": "select"},
)
