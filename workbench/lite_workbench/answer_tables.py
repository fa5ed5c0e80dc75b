"""Evaluations, sweeps and recommendations → traits of `lite_widgets.DataTable`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lite_messages import tr, trn

if TYPE_CHECKING:
    from lite_engine.compare.many import ComparisonOfInputs

    from .evaluate import Evaluation
    from .evaluate.results import SampleRow
    from .recommend import Recommendation
    from .sweep import Sweep

Table = dict[str, Any]
#: Pixels of a table before it scrolls.
HEIGHT = 320
#: Rows of a table: every one is in the page, and in the saved notebook.
MOST = 200


def evaluation_tables(made: Evaluation) -> list[Table]:
    """Metrics, the classes and confusions of the first side, and the samples by disagreement."""
    classes = [table for table in class_tables(made) if table]
    return [metrics_table(made), *classes, samples_table(made, made.rows)]


def inputs_tables(made: ComparisonOfInputs) -> list[Table]:
    """The layers of a comparison on many inputs, those that fail most often first."""
    heads, rows = made.table()
    title = tr("{a} and {b} on {n} inputs", a=made.baseline, b=made.candidate, n=made.inputs)
    return [_table(title, heads, rows, made.verdict)]


def metrics_table(made: Evaluation) -> Table:
    """A row per side, its metrics with their intervals; the note says what changed."""
    rows = [[s.name, s.backend, s.precision, *(m.figure for m in s.metrics)] for s in made.sides]
    heads = [
        tr("version"),
        tr("backend"),
        tr("precision"),
        *(m.name for m in made.sides[0].metrics),
    ]
    title = trn("{model} on {dataset}, {n} sample", "{model} on {dataset}, {n} samples",
                made.samples, model=made.model, dataset=made.dataset)  # fmt: skip
    note = [*made.notes, *made.sentences]
    if made.unreadable:
        note.append(trn("{n} sample left out: {first}", "{n} samples left out, the first: {first}",
                        len(made.unreadable), first=made.unreadable[0][1]))  # fmt: skip
    return _table(title, heads, rows, "; ".join(note))


def class_tables(made: Evaluation) -> tuple[Table, Table]:
    """The classes of each side and the confusions of the last; empty where a task has none."""
    first, last = made.sides[0], made.sides[-1]
    classes: Table = {}
    if first.classes:
        names = [(s, n) for s in made.sides for n in first.classes[0].metrics]
        by_side = {s.name: {c.name: c for c in s.classes} for s in made.sides}
        rows = [
            [c.name, c.count, *(
                f"{100 * by_side[s.name][c.name].metrics[n]:.1f} %"
                if c.name in by_side[s.name] else "–" for s, n in names
            )]
            for c in first.classes
        ]  # fmt: skip
        several = len(made.sides) > 1
        heads = [f"{n}, {s.name}" if several else n for s, n in names]
        classes = _table(tr("Classes"), [tr("class"), tr("count"), *heads], rows, "", numbers=1)
    confused: Table = {}
    if last.confusion:
        heads = [tr("label"), tr("prediction"), tr("count")]
        confused = _table(tr("Confusions"), heads, last.confusion, last.name, numbers=2)
    return classes, confused


def samples_table(made: Evaluation, rows: Sequence[SampleRow], action: str = "") -> Table:
    """A row per sample; with an `action` its name is a button with {"sample": name}."""
    cells = [
        [[action, r.name, {"sample": r.name}] if action else r.name, r.label,
         *(r.sides[s.name].figure for s in made.sides)]
        for r in rows
    ]  # fmt: skip
    heads = [tr("sample"), tr("label"), *(s.name for s in made.sides)]
    several = len(made.sides) > 1
    if several:
        heads.append(tr("change"))
        for row, cell in zip(rows, cells, strict=True):
            cell.append(row.change)
    table = _table(tr("Samples"), heads, cells, tr("largest disagreement first"))
    if action:
        table["columns"][0]["kind"] = "action"
    return table


def sweep_chart(made: Sweep) -> dict[str, Any]:
    """Traits of `SweepChart`."""
    best = made.best
    return {
        "title": made.model, "max_ms": made.max_ms or 0.0, "min_rate": made.min_rate or 0.0,
        "cells": [
            {"label": str(c.choice), "latency_ms": c.latency_ms, "throughput": c.throughput,
             "note": c.accuracy, "front": c.front, "best": c is best}
            for c in made.cells if c.status == "measured"
        ],
    }  # fmt: skip


def sweep_tables(made: Sweep) -> list[Table]:
    """A row per cell, with the sweet spots as the note."""
    heads, rows = made.table()
    return [_table(made.model, heads, rows, "; ".join(made.sentences))]


def recommendation_tables(made: Recommendation) -> list[Table]:
    """A row per candidate, with what is recommended as the note."""
    heads, rows = made.table()
    return [_table(made.model, heads, rows, made.sentence)]


def _table(
    title: str, heads: Sequence[str], rows: Sequence[Sequence[Any]], note: str,
    numbers: int | None = None,
) -> Table:  # fmt: skip
    """`numbers` is the first of the columns that hold numbers, which are all after it, too."""
    first_number = len(heads) if numbers is None else numbers
    columns = [
        {"id": str(i), "head": head, "kind": "number" if i >= first_number else "text"}
        for i, head in enumerate(heads)
    ]
    named = [{str(i): cell for i, cell in enumerate(row)} for row in rows[:MOST]]
    if len(rows) > MOST:
        first = tr("the first {most} of {count}", most=MOST, count=len(rows))
        note = f"{note}; {first}" if note else first
    return {"title": title, "note": note, "columns": columns, "rows": named, "height": HEIGHT}
