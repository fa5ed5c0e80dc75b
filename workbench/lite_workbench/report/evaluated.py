"""Evaluations, sweeps and recommendations → sections of a report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lite_messages import tr
from lite_widgets import DataTable, SweepChart

from ..answer_tables import (
    evaluation_tables,
    recommendation_tables,
    sweep_chart,
    sweep_tables,
)
from ..state import SessionState
from .page import Section

if TYPE_CHECKING:
    from ..recommend import Recommendation


def evaluated(session: SessionState, prefix: str) -> Iterator[Section]:
    """The last of each kind."""
    for made in session.evaluations[-1:]:
        tables = [DataTable(**traits) for traits in evaluation_tables(made)]
        yield Section(f"{prefix}evaluation", tr("Accuracy"), " ".join(made.sentences), tables)
    for sweep in session.sweeps[-1:]:
        chart = SweepChart(**sweep_chart(sweep))
        yield Section(
            f"{prefix}sweep", tr("Measured choices"), " · ".join(sweep.sentences),
            [chart, *(DataTable(**traits) for traits in sweep_tables(sweep))],
        )  # fmt: skip
    for answer in session.recommendations[-1:]:
        yield recommended(answer, prefix)


def recommended(answer: Recommendation, prefix: str = "") -> Section:
    """What is recommended with its evidence: the metric with its interval, latency and size of each
    candidate, and why the others were rejected."""
    tables = [DataTable(**traits) for traits in recommendation_tables(answer)]
    said = [answer.sentence, *answer.notes]
    return Section(f"{prefix}recommendation", tr("Recommendation"), " · ".join(said), tables)
