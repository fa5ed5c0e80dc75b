"""The planner's partition is the cheapest one: against all assignments of small random graphs."""

import itertools
import math
import random

import pytest
from lite_engine.plan.partition import Problem, cheapest, cost, runs


def _exhaustive(problem: Problem) -> float:
    sides = [
        [s for s, ms in ((False, h), (True, d)) if ms < math.inf]
        for h, d in zip(problem.host_ms, problem.device_ms)
    ]
    return min(cost(problem, chosen) for chosen in itertools.product(*sides))


def _random_problem(seed: int) -> Problem:
    rng = random.Random(seed)
    count = 12 if seed % 10 == 0 else rng.randint(2, 9)
    reads, makers = [], [-1]
    for node in range(count):
        known = range(len(makers))
        near = [v for v in known if v >= len(makers) - rng.randint(1, 4)]
        reads.append(sorted(set(rng.choices(near, k=rng.randint(1, 2)))))
        makers.append(node)
    read = {v for r in reads for v in r}
    outputs = frozenset(v for v in range(1, len(makers)) if v not in read or rng.random() < 0.1)
    never = rng.choice([0.0, 0.2, 0.5])
    return Problem(
        host_ms=[rng.uniform(0.1, 4) for _ in range(count)],
        device_ms=[math.inf if rng.random() < never else rng.uniform(0.05, 2)
                   for _ in range(count)],
        reads=reads,
        makers=makers,
        nbytes=[rng.choice([0, 100, 1000]) for _ in makers],
        outputs=outputs,
        launch_ms=rng.choice([0.0, 0.5, 2.0]),
        copy_ms=rng.choice([0.0, 0.3]),
        ms_per_byte=rng.choice([0.0, 1e-3]),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_the_partition_is_the_cheapest_of_all_assignments(seed):
    problem = _random_problem(seed)
    found = cheapest(problem)
    assert cost(problem, found) == pytest.approx(_exhaustive(problem), rel=1e-9)


def _chain(host: list[float], device: list[float], **costs: float) -> Problem:
    count = len(host)
    return Problem(host, device, [[i] for i in range(count)], [-1, *range(count)],
                   [1000] * (count + 1), frozenset([count]), **costs)  # fmt: skip


def test_a_gain_smaller_than_the_copies_stays_on_the_host():
    problem = _chain([1, 1, 1], [0.9, 0.9, 0.9], copy_ms=0.2)
    assert cheapest(problem) == [False] * 3
    problem.copy_ms = 0.1
    assert cheapest(problem) == [True] * 3


def test_a_slow_layer_in_the_middle_is_taken_along_where_a_way_back_costs_more():
    problem = _chain([9, 1, 9], [1, 3, 1], copy_ms=2)
    assert cheapest(problem) == [True] * 3
    problem.copy_ms = 0.5
    assert cheapest(problem) == [True, False, True]


def test_branches_on_the_accelerator_become_one_run():
    """Three branches between 0 and 4: node 2 of the host does not part 1 and 3."""
    problem = Problem(
        [1] * 5, [1] * 5, [[0], [1], [1], [1], [2, 3, 4]], [-1, 0, 1, 2, 3, 4], [0] * 6
    )
    sides = [0, 1, 0, 1, 0]
    assert list(runs(problem, sides)) == [(0, [0, 2]), (1, [1, 3]), (0, [4])]


def test_a_wide_graph_is_partitioned_within_its_budget():
    """24 chains of 10: more states than the budget, and the answer is the obvious one."""
    chains, length = 24, 10
    count = chains * length
    makers = [-1, *range(count)]
    reads = [[0] if i % length == 0 else [i] for i in range(count)]
    outputs = frozenset(c * length + length for c in range(chains))
    problem = Problem([1.0] * count, [0.5] * count, reads, makers, [10] * (count + 1), outputs,
                      launch_ms=1.0, copy_ms=0.1)  # fmt: skip
    assert cheapest(problem, states=2000) == [True] * count
