"""Compare: no false alarm, and every planted fault is named."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.plan.faults import KINDS
from lite_engine.runtime import host_target
from lite_engine.runtime.compare import Side, compare
from lite_engine.runtime.difference import channel_map, difference, histogram

from tests.small_models import attention, classifier, image

LAYERS = ("stem", "dw", "pw", "wide")


def sides(graph, faults=None) -> tuple[Side, Side]:
    model = optimize(graph)
    return Side(Predictor(model, "reference")), Side(
        Predictor(model, host_target(), threads=1, faults=faults)
    )


@pytest.mark.cpu
@pytest.mark.parametrize("graph", [classifier(), attention()], ids=lambda g: g.name)
def test_no_false_alarm(graph) -> None:
    result = compare(*sides(graph), image(graph))
    assert result.agrees and result.first_divergence is None
    assert "agree" in result.verdict


@pytest.mark.cpu
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layer", LAYERS)
def test_planted_fault_is_named(kind, layer) -> None:
    graph = classifier()
    a, b = sides(graph)
    name = next(n.name for n in b.graph.nodes if layer in n.sources)
    b = Side(Predictor(b.predictor.model, host_target(), threads=1, faults={name: kind}))
    result = compare(a, b, image(graph))
    assert not result.agrees
    assert result.first_divergence["name"] == name
    assert layer in result.first_divergence["sources"]
    assert f"{host_target()} is the wrong side" in result.verdict
    wrong = [x.name for x in result.layers if not x.within]
    assert wrong == [name]  # the victims are within their isolated tolerance


@pytest.mark.cpu
def test_the_trusted_side_can_be_the_wrong_one() -> None:
    graph = classifier()
    a, b = sides(graph, {})
    faulty = Side(
        Predictor(a.predictor.model, host_target(), threads=1, faults={"dw": "swap_channels"})
    )
    name = next(n.name for n in b.graph.nodes if "dw" in n.sources)
    faulty.predictor.faults = {name: "swap_channels"}
    result = compare(faulty, b, image(graph))
    assert result.first_divergence["name"] == name
    assert result.first_divergence["wrong_side"].startswith(
        f"{host_target()} is the wrong side (it leaves"
    )


def test_difference_numbers() -> None:
    a = np.array([[1.0, 2.0], [3.0, 4.0]])
    b = a + np.array([[0, 0], [0.5, 0]])
    d = difference(a, b)
    assert d.max_abs == 0.5 and d.mean_abs == 0.125 and d.worst == (1, 0)
    assert d.worst_a == 3.0 and d.worst_b == 3.5
    assert d.rel_l2 == pytest.approx(0.5 / np.sqrt(30))
    assert d.sqnr_db == pytest.approx(10 * np.log10(30 / 0.25))
    assert difference(a, a).sqnr_db is None


def test_not_a_number_counts() -> None:
    a = np.array([1.0, np.nan, 3.0, 4.0])
    assert not difference(a, a).broken
    b = np.array([1.0, np.nan, np.inf, 4.0])
    d = difference(a, b)
    assert d.broken and d.nan_b == 1 and d.worst == (2,)


def test_where_the_difference_lies() -> None:
    a = np.zeros((1, 4, 3, 5))
    b = a.copy()
    b[:, 2, :, 4] = 1
    where = channel_map(a, b)
    assert where["channel"] == 2 and where["per_column"] == [0, 0, 0, 0, 1]
    assert histogram(a, b)["zero"] == 57 and sum(histogram(a, b)["counts"]) == 3
