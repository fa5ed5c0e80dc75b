"""Where a layer belongs: its block and its region, under one name in every view.

A block is the first scope of the names where they have scopes that divide the network as its
regions do, else a block that `structure` found. A region is always one that was found; of a block
whose nodes lie in several, it is that of most of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lite_engine.ir import Graph

from .structure import Region, find_regions

_FEW = 16  # nodes of a network that needs no further division


@dataclass(frozen=True)
class Place:
    """The block and the region of one layer."""

    block: str
    region: Region


#: How the places of a graph's layers are found: `places`, or what keeps those of several views.
Placing = Callable[[Graph], Mapping[str, Place]]


def places(graph: Graph) -> dict[str, Place]:
    """Layer → its place, in the order in which they are drawn: a topological one."""
    regions = find_regions(graph)
    own = {node.name: Place(name, region) for region in regions
           for name, nodes in region.named_blocks() for node in nodes}  # fmt: skip
    scopes = _scopes([node.name for node in graph.nodes])
    votes: dict[str, Counter[int]] = {}
    for name, scope in scopes.items():
        votes.setdefault(scope, Counter())[id(own[name].region)] += 1
    if not scopes or any(map(_mixes, votes.values())):
        drawn = {id(region): i for i, region in enumerate(regions)}
        nodes = sorted(graph.nodes, key=lambda node: drawn[id(own[node.name].region)])
        return {node.name: own[node.name] for node in nodes}
    found = {id(region): region for region in regions}
    most = {scope: found[count.most_common(1)[0][0]] for scope, count in votes.items()}
    return {name: Place(scope, most[scope]) for name, scope in scopes.items()}


def _mixes(votes: Counter[int]) -> bool:
    """Whether a scope, by how many of its nodes lie in each region, is several of them: all of a
    detector's backbone, for one."""
    return votes.total() > _FEW and max(votes.values()) * 2 <= votes.total()


def distinct_regions(known: Mapping[str, Place]) -> list[Region]:
    """The regions of these places, in their order."""
    return list({id(place.region): place.region for place in known.values()}.values())


def set_blocks(
    rows: list[dict[str, Any]], graph: Graph | None, names: list[str], placing: Placing = places
) -> None:
    """Blocks of the rows called `names` in the graph; a row that is not there (a copy) belongs to
    the layer after it, at the end to the last. Without a graph the scopes of names decide."""
    known = placing(graph) if graph is not None else {}
    found = [known.get(name) for name in names]
    last = next((place for place in reversed(found) if place), None)
    if last is None:
        scopes = _scopes([row["name"] for row in rows])
        for row in rows:
            if scopes:
                row["block"] = scopes[row["name"]]
        return
    for row, own in zip(reversed(rows), reversed(found), strict=True):
        last = own or last
        row["block"], row["region"] = last.block, last.region.name


def _scopes(names: Sequence[str]) -> dict[str, str]:
    """Name → its first scope; names without one continue their neighbours'. Empty where fewer than
    half of the names have one, or one of them holds most of a network."""
    first = [name.strip("/").partition("/") for name in names]
    scopes = [scope if slash else "" for scope, slash, _ in first]
    scoped = [i for i, scope in enumerate(scopes) if scope]
    if not names or len(scoped) * 2 < len(names):
        return {}
    last = "stem" if not scopes[0] else scopes[0]
    out = {}
    for i, (name, scope) in enumerate(zip(names, scopes, strict=True)):
        last = scope or (last if i < scoped[-1] else "head")
        out[name] = last
    largest = Counter(out.values()).most_common(1)[0][1]
    return out if largest * 2 <= len(names) or len(names) <= _FEW else {}
