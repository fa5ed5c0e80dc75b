"""Evaluations, sweeps and recommendations → traits of `lite_widgets.DataTable`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lite_messages import tr

if TYPE_CHECKING:
    from .evaluate import Evaluation
    from .evaluate.results import SampleResult
    from .recommend import Recommendation
    from .sweep import Sweep

Table = dict[str, Any]
#: Pixels of a table before it scrolls.
HEIGHT = 320
#: Rows of a table: every one is in the page, and in the saved notebook.
MOST = 200


def evaluation_tables(made: Evaluation) -> list[Table]:
    """Metrics, the classes and confusions of the first side, and the samples by disagreement."""
    first = made.sides[0]
    metrics = [[s.name, s.backend, s.precision, *(m.figure for m in s.metrics)] for s in made.sides]
    heads = [tr("side"), tr("backend"), tr("precision"), *(m.name for m in first.metrics)]
    title = tr("{model} on {dataset}, {samples} samples", model=made.model, dataset=made.dataset,
               samples=made.samples)  # fmt: skip
    tables = [_table(title, heads, metrics, "; ".join([*made.notes, *made.sentences]))]
    if first.classes:
        names = list(first.classes[0].metrics)
        rows = [[c.name, c.count, *(f"{100 * c.metrics[n]:.1f} %" for n in names)]
                for c in first.classes]  # fmt: skip
        tables.append(_table(tr("Classes"), [tr("class"), tr("count"), *names], rows, first.name))
    if first.confusion:
        heads = [tr("label"), tr("prediction"), tr("count")]
        tables.append(_table(tr("Confused"), heads, first.confusion, first.name))
    samples = [[r.name, r.label, *(_said(r.sides[s.name]) for s in made.sides)] for r in made.rows]
    heads = [tr("sample"), tr("label"), *(s.name for s in made.sides)]
    tables.append(_table(tr("Samples"), heads, samples, tr("largest disagreement first")))
    return tables


def sweep_tables(made: Sweep) -> list[Table]:
    """A row per cell, with the sweet spots as the note."""
    heads, rows = made.table()
    return [_table(made.model, heads, rows, "; ".join(made.sentences))]


def recommendation_tables(made: Recommendation) -> list[Table]:
    """A row per candidate, with what is recommended as the note."""
    heads, rows = made.table()
    return [_table(made.model, heads, rows, made.sentence)]


def _said(side: SampleResult) -> str:
    mark = "" if side.right is None else "✓ " if side.right else "✗ "
    return mark + side.prediction + (f" ({side.score:.3f})" if side.score is not None else "")


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]], note: str) -> Table:
    columns = [{"id": str(i), "head": head, "kind": "text"} for i, head in enumerate(heads)]
    named = [{str(i): cell for i, cell in enumerate(row)} for row in rows[:MOST]]
    if len(rows) > MOST:
        first = tr("the first {most} of {count}", most=MOST, count=len(rows))
        note = f"{note}; {first}" if note else first
    return {"title": title, "note": note, "columns": columns, "rows": named, "height": HEIGHT}
