"""A Plotly figure that follows a session, and whose selection is the session's."""

from __future__ import annotations

from typing import Any

import lite_workbench as lw
import pytest
from lite_engine.errors import UsageError

pytest.importorskip("plotly", reason="pip install 'lite-workbench[lab]'")
pytestmark = pytest.mark.cpu


@pytest.fixture(scope="module")
def session() -> lw.Session:
    made = lw.open(lw.shipped("digits.onnx"))
    made.convert(targets=["x86"])
    with pytest.raises(UsageError, match="nothing is measured yet"):
        made.linked_figure()
    made.profile("x86", runs=2)
    made.compare("x86", "reference")
    return made


def page_selects(
    figure: Any, trace: int, points: list[int], event: str = "plotly_selected"
) -> None:
    """What the page sends when marks of a trace are selected."""
    figure._js2py_pointsCallback = {
        "event_type": event,
        "points": {"trace_indexes": [trace] * len(points), "point_indexes": points,
                   "xs": [0.0] * len(points), "ys": [0.0] * len(points)},
        "device_state": None,
        "selector": {"type": "box", "selector_state": {"xrange": [0, 1], "yrange": [0, 1]}},
    }  # fmt: skip


def outlined(trace: Any) -> set[str]:
    return {str(n) for n, w in zip(trace.customdata, trace.marker.line.width, strict=True) if w}


@pytest.mark.parametrize("kind", ["latency", "roofline", "timeline", "memory", "error"])
def test_a_selection_goes_both_ways(session: lw.Session, kind: str) -> None:
    session.selected = []
    figure = session.linked_figure(kind)
    at = next(i for i, t in enumerate(figure.data) if t.customdata is not None)
    names = [str(name) for name in figure.data[at].customdata]
    page_selects(figure, at, [0, 2])
    assert session.selected == list(dict.fromkeys([names[0], names[2]]))
    session.selected = names[1]
    assert outlined(figure.data[at]) == {names[1]}
    session.selected = "not in this figure"
    assert outlined(figure.data[at]) == set()
    page_selects(figure, at, [2], "plotly_click")
    assert session.selected == [names[2]]


def test_a_new_profile_is_drawn_in_the_same_figure(session: lw.Session) -> None:
    figure = session.linked_figure("latency")
    before, bars = figure.data, figure.data[0].y
    figure.layout.xaxis.range = [0, 3]  # a person zoomed in
    made = session.profile("x86", runs=3)
    assert figure.data == before and tuple(figure.data[0].y) != tuple(bars)
    assert list(figure.data[0].y) == [r.median_ms for r in made.layers if r.backend == "cpu"]
    assert tuple(figure.layout.xaxis.range) == (0, 3)
    figure.close()
    session.profile("x86", runs=2)
    assert list(figure.data[0].y) == [r.median_ms for r in made.layers if r.backend == "cpu"]


def test_an_unknown_kind_is_refused(session: lw.Session) -> None:
    with pytest.raises(UsageError, match="there is no figure 'types'"):
        session.linked_figure("types")
