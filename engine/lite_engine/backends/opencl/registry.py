"""The builders of launches by kernel name, and what they make launches for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

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


def builds(*names: str) -> Callable[[Builder], Builder]:
    """Registers a function that makes the launches of these kernels."""

    def register(builder: Builder) -> Builder:
        for name in names:
            BUILDERS[name] = builder
        return builder

    return register
