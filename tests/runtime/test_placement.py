"""Layers go where they are fastest with their copies: on made-up times, and on this machine."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.plan import make_plan
from lite_engine.runtime.inputs import random_feeds
from lite_engine.runtime.placement import SIDES, CopyCost, assign, cost_ms, place
from lite_engine.runtime.unmeasured import unmeasured

from tests.small_models import Builder

CHEAP, DEAR = CopyCost(0.1, 0.0), CopyCost(10.0, 0.0)


def chain(length: int = 5):
    b = Builder((1, 4), "chain")
    y = b.x
    for i in range(length):
        y = b.add("Relu", y, name=f"layer{i}")
    return b.done(y)


def branches():
    b = Builder((1, 4), "branches")
    a = b.add("Relu", b.x, name="a")
    c = b.add("Sigmoid", b.add("Tanh", a, name="b"), name="c")
    return b.done(b.add("Add", a, c, name="d"))


@pytest.mark.parametrize("graph", [chain(), branches()], ids=lambda g: g.name)
@pytest.mark.parametrize("copy", [CHEAP, CopyCost(1.0, 0.0), DEAR], ids=lambda c: str(c.latency_ms))
def test_no_assignment_is_cheaper(graph, copy: CopyCost) -> None:
    names = [n.name for n in graph.nodes]
    rng = np.random.default_rng(3)
    for _ in range(20):
        times = {n: tuple(rng.uniform(0, 4, 2)) for n in names}
        found = cost_ms(graph, assign(graph, times, copy), times, copy)
        every = (dict(zip(names, s)) for s in itertools.product(SIDES, repeat=len(names)))
        least = min(cost_ms(graph, sides, times, copy) for sides in every)
        if graph.name == "chain":
            assert found == pytest.approx(least)
        alone = [cost_ms(graph, dict.fromkeys(names, s), times, copy) for s in SIDES]
        assert least <= found + 1e-9 and found <= min(alone) + 1e-9


def test_a_slow_layer_moves_only_when_copies_are_cheap() -> None:
    graph = chain()
    times = {f"layer{i}": (1.0, 20.0) for i in range(5)} | {"layer2": (20.0, 2.0)}
    assert assign(graph, times, CHEAP)["layer2"] == "cpu"
    assert set(assign(graph, times, DEAR).values()) == {"opencl"}


@pytest.mark.parametrize(
    "kind, threads, said", [("CPU", 1, "is a CPU"), ("GPU", 1, "7 calls take"), ("GPU", 0, "every")]
)
def test_without_measuring_it_says_what_to_expect(kind: str, threads: int, said: str) -> None:
    """Five layers and two copies. No threads: a CPU that would never be done."""
    plan = make_plan(chain(), "opencl")
    sentence = unmeasured(plan, kind, threads or 1e-9)
    assert sentence.startswith("not measured") and said in sentence
    assert ("slower than" in sentence) == (said != "every")


@pytest.mark.opencl
@pytest.mark.cpu
def test_placed_here(monkeypatch) -> None:
    from tests.small_models import classifier

    graph = classifier()
    feeds = random_feeds(graph)
    predictor = Predictor(graph, "opencl")
    predictor.plan()
    assert "not measured" in predictor.explain()
    said = place(predictor, feeds)
    assert "ms" in said and said in predictor.explain()
    assert "not measured" not in predictor.explain()
    moved = [s for s in predictor.plan().steps if s.node and s.backend == "cpu"]
    assert bool(moved) == ("on the CPU" in said)
    exact = Predictor(graph, "reference").run(feeds)
    for name, y in predictor.run(feeds).items():
        assert np.allclose(y, exact[name], rtol=1e-4, atol=1e-5)


def test_inputs_and_outputs_of_the_network_lie_on_the_host() -> None:
    graph, times = chain(), {f"layer{i}": (1.0, 2.0) for i in range(5)}
    for side, wanted in (("opencl", 5 + 2 * 10), ("cpu", 10)):
        sides = {f"layer{i}": side for i in range(5)}
        assert cost_ms(graph, sides, times, DEAR) == wanted
    middle = {f"layer{i}": "opencl" if i == 2 else "cpu" for i in range(5)}
    assert cost_ms(graph, middle, times, DEAR) == 9 + 2 * 10
