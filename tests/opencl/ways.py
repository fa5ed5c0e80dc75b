"""The ways in which the builders can compute a step, for any device."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from lite_engine.backends.opencl.launch import Launch
from lite_engine.backends.opencl.profile import DeviceProfile
from lite_engine.backends.opencl.registry import Target
from lite_engine.backends.opencl.steps import launches_of
from lite_engine.plan import Plan, Step


def every_way(
    step: Step, plan: Plan, profile: DeviceProfile, kind: Callable[[object], Hashable] = str
) -> dict[Hashable, list[Launch]]:
    """Launches of a step by the `kind` of way, the best estimate first; "" where there is no
    choice."""
    offered: list[object] = []

    def take_first(size: str, ways, /):
        offered.extend(ways)
        return ways[0]

    launches = launches_of(step, plan, Target(profile, take_first))
    kinds = {kind(way): way for way in reversed(offered)}
    found: dict[Hashable, list[Launch]] = {} if kinds else {"": launches}
    for name, way in reversed(kinds.items()):
        chooser = Target(profile, lambda size, ways, /, way=way: way if way in ways else ways[0])
        found[name] = launches_of(step, plan, chooser)
    return found
