"""The builders of launches by kernel name, and what they make launches for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from ...ops import all_kernels
from ...plan import Plan, Step
from .launch import Launch
from .profile import DeviceProfile

Way = TypeVar("Way")


class Pick(Protocol):
    """Chooses among the ways to compute a layer of this size, told apart by their text. The first
    one is the best estimate."""

    def __call__(self, size: str, ways: Sequence[Way], /) -> Way: ...


def first(size: str, ways: Sequence[Way], /) -> Way:
    """The choice before anything was measured."""
    return ways[0]


@dataclass(frozen=True)
class Target:
    """What launches are made for: a device, and the choice among ways to compute a layer."""

    profile: DeviceProfile
    pick: Pick = first


Builder = Callable[[Step, Plan, Target], list[Launch]]
BUILDERS: dict[str, Builder] = {}
#: Kernel → operators that its builder knows by itself.
_OPERATORS: dict[str, tuple[str, ...]] = {}


def builds(kernel: str, *ops: str) -> Callable[[Builder], Builder]:
    """Registers a function that makes the launches of a kernel for these operators; with none, for
    those that bring `code` of their own (`op.kernel(…, code=…)`)."""

    def register(builder: Builder) -> Builder:
        BUILDERS[kernel], _OPERATORS[kernel] = builder, ops
        return builder

    return register


def kernels_of_builders() -> frozenset[tuple[str, str]]:
    """(operator, kernel) pairs that the builders can make launches of."""
    own = {(op, kernel) for kernel, ops in _OPERATORS.items() for op in ops}
    shared = {kernel for kernel, ops in _OPERATORS.items() if not ops}
    coded = {(k.op, k.name) for k in all_kernels("opencl") if k.code and k.name in shared}
    return frozenset(own | coded)
