"""Which nodes an accelerator takes: the cheapest assignment of a graph to it and the host.

    cost = Σ node on its side + Σ copy of each value to a side that reads it and does not have it
         + launch · (runs of nodes on the accelerator, in the order that has the fewest)

Copies count once per value and direction; inputs and outputs of the graph lie on the host.
`cheapest` walks over sets of executed nodes that are closed under dependence, as states of a
dynamic program: exact while every state fits its budget, which those of small or narrow graphs do,
and a beam search by a lower bound of the whole cost beyond that.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

#: States that the search looks at in all; more find better partitions of wide graphs.
STATES = 60_000
_MIN_BEAM = 24


@dataclass
class Problem:
    """Nodes in topological order and values, all by number.

    `host_ms` and `device_ms` say what a node takes on either side, infinite where it cannot run
    there; `reads` the values that a node reads, `makers` the node that makes a value (−1: an input
    of the graph), `nbytes` its size; `outputs` are the graph's.
    """

    host_ms: Sequence[float]
    device_ms: Sequence[float]
    reads: Sequence[Sequence[int]]
    makers: Sequence[int]
    nbytes: Sequence[int]
    outputs: frozenset[int] = field(default_factory=frozenset)
    launch_ms: float = 0.0
    copy_ms: float = 0.0
    ms_per_byte: float = 0.0

    def copy(self, value: int) -> float:
        return self.copy_ms + self.nbytes[value] * self.ms_per_byte

    @cached_property
    def before(self) -> list[int]:
        """Of each node a bit mask of the nodes that make what it reads."""
        return [
            sum({1 << self.makers[v] for v in reads if self.makers[v] >= 0}) for reads in self.reads
        ]

    @cached_property
    def makes(self) -> list[list[int]]:
        out: list[list[int]] = [[] for _ in self.host_ms]
        for value, maker in enumerate(self.makers):
            if maker >= 0:
                out[maker].append(value)
        return out


def cost(problem: Problem, on_device: Sequence[bool]) -> float:
    """What an assignment takes, in ms."""
    total = sum(
        problem.device_ms[i] if there else problem.host_ms[i] for i, there in enumerate(on_device)
    )
    wanted: dict[int, set[bool]] = {v: {False} for v in problem.outputs}
    for node, reads in enumerate(problem.reads):
        for value in reads:
            wanted.setdefault(value, set()).add(on_device[node])
    for value, sides in wanted.items():
        maker = problem.makers[value]
        home = maker >= 0 and on_device[maker]
        total += problem.copy(value) * len(sides - {home})
    return total + problem.launch_ms * _launches(problem, on_device)


def _launches(problem: Problem, on_device: Sequence[bool]) -> int:
    """Runs of nodes on the accelerator: each goes on for as long as any of its nodes can."""
    return min(
        sum(1 for side, _ in runs(problem, [int(s) for s in on_device], first) if side)
        for first in (0, 1)
    )


def runs(problem: Problem, sides: Sequence[int], first: int = 0) -> Iterator[tuple[int, list[int]]]:
    """Nodes in an order that changes sides as late as it can: (side, nodes) in turn. Sides take
    turns by their number, beginning with `first`."""
    left = list(range(len(sides)))
    done = 0
    side, kinds = first, max(sides, default=0) + 1
    while left:
        run: list[int] = []
        later: list[int] = []
        for node in left:  # topological order: one walk finds all that is ready
            if sides[node] == side and problem.before[node] & ~done == 0:
                run.append(node)
                done |= 1 << node
            else:
                later.append(node)
        if run:
            yield side, run
        left, side = later, (side + 1) % kinds


def cheapest(problem: Problem, states: int = STATES) -> list[bool]:
    """For each node whether the accelerator takes it."""
    count = len(problem.host_ms)
    candidates = [[False] * count, [d < math.inf for d in problem.device_ms]]
    candidates.append([d < h for d, h in zip(problem.device_ms, problem.host_ms)])
    if any(candidates[1]):
        candidates.append(_search(problem, max(_MIN_BEAM, states // max(1, count))))
    return min(candidates, key=lambda sides: cost(problem, sides))


#: executed nodes, side of the last one, live values on the host, live values on the accelerator
_Key = tuple[int, bool, int, int]


def _search(problem: Problem, beam: int) -> list[bool]:
    count = len(problem.host_ms)
    least = [min(h, d) for h, d in zip(problem.host_ms, problem.device_ms)]
    readers = _readers(problem)
    inputs = sum(1 << v for v, maker in enumerate(problem.makers) if maker < 0)
    # state → (lower bound, assignment so far as a bit mask)
    layer: dict[_Key, tuple[float, int]] = {(0, False, inputs, 0): (sum(least), 0)}
    for _ in range(count):
        following: dict[_Key, tuple[float, int]] = {}
        for (done, side, host, device), (bound, chosen) in layer.items():
            for node in range(count):
                if done >> node & 1 or problem.before[node] & ~done:
                    continue
                for there in (False, True):
                    own = problem.device_ms[node] if there else problem.host_ms[node]
                    if own == math.inf:
                        continue
                    spent = bound - least[node] + own
                    spent += problem.launch_ms if there and not side else 0.0
                    at = [host, device]
                    for value in problem.reads[node]:
                        if not at[there] >> value & 1:
                            at[there] |= 1 << value
                            spent += problem.copy(value)
                    now = done | 1 << node
                    for value in problem.makes[node]:
                        at[there] |= 1 << value
                        if there and value in problem.outputs:
                            at[0] |= 1 << value
                            spent += problem.copy(value)
                    for value in {*problem.reads[node], *problem.makes[node]}:
                        if not readers[value] & ~now:
                            at[0] &= ~(1 << value)
                            at[1] &= ~(1 << value)
                    key = (now, there, at[0], at[1])
                    if key not in following or spent < following[key][0]:
                        following[key] = spent, chosen | there << node
        layer = following
        if len(layer) > beam:
            layer = dict(sorted(layer.items(), key=lambda item: item[1][0])[:beam])
    if not layer:  # a node that runs nowhere: the caller's host has to say so
        return [False] * count
    _, chosen = min(layer.values())
    return [bool(chosen >> node & 1) for node in range(count)]


def _readers(problem: Problem) -> list[int]:
    out = [0] * len(problem.makers)
    for node, reads in enumerate(problem.reads):
        for value in reads:
            out[value] |= 1 << node
    return out
