"""The ways to compute a step that a program carries, for `lite_run --tune` to measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...plan import Plan, Step
from .launch import Launch, grouped
from .registry import Target, Way
from .steps import launches_of

#: Groups of a kernel that leaves their size open: multiples of what GPUs run together.
_GROUPS = {
    1: ((64,), (256,)),
    2: ((64, 1), (32, 4), (16, 8), (8, 8)),
    3: ((64, 1, 1), (32, 4, 1), (8, 8, 1)),
}


@dataclass
class StoredWay:
    """A step's launches, by the `size` and `name` that a tuning table knows them by; both are empty
    where there is no choice."""

    size: str
    name: str
    launches: list[Launch]


@dataclass
class _Choice:
    """Takes the way `wanted` where a builder offers it, else what `target` takes."""

    target: Target
    wanted: str = ""
    size: str = ""
    taken: str = ""
    offered: Sequence[Any] = ()

    def pick(self, size: str, ways: Sequence[Way], /) -> Way:
        own = self.target.pick(size, ways)
        way = next((w for w in ways if str(w) == self.wanted), own)
        self.size, self.taken, self.offered = size, str(way), ways
        return way


def ways_of(step: Step, plan: Plan, target: Target, most: int) -> list[StoredWay]:
    """At most `most` ways, the one that `target` takes first, then the most promising ones.

    Raises UnsupportedOperatorError for a step that this kind of device cannot run.
    """
    choice = _Choice(target)
    own = launches_of(step, plan, replace(target, pick=choice.pick))
    found = [StoredWay(choice.size, choice.taken, own)]
    if most < 2 or not own:
        return found
    if not choice.size:
        return _grouped_ways(own, most)
    for way in choice.offered:
        if len(found) == most:
            break
        other = _Choice(target, str(way))
        launches = launches_of(step, plan, replace(target, pick=other.pick))
        known = [w.name for w in found]
        if launches and other.size == choice.size and other.taken not in known:
            found.append(StoredWay(other.size, other.taken, launches))
    return found


def _grouped_ways(launches: list[Launch], most: int) -> list[StoredWay]:
    """The same launch in groups of other sizes, where its kernel leaves them open."""
    if len(launches) != 1 or launches[0].local_size is not None:
        return [StoredWay("", "", launches)]
    (launch,) = launches
    grid, group = grouped(launch.global_size)
    size = f"group_{launch.kernel}_{_word(launch.global_size)}"
    found = [StoredWay(size, _word(group), launches)]
    for other in _GROUPS[len(grid)]:
        if other == group or len(found) == most:
            continue
        whole = tuple(-(-n // g) * g for n, g in zip(launch.global_size, other, strict=True))
        same = replace(launch, global_size=whole, local_size=other)
        found.append(StoredWay(size, _word(other), [same]))
    return found if len(found) > 1 else [StoredWay("", "", launches)]


def _word(numbers: Sequence[int]) -> str:
    return "x".join(map(str, numbers))
