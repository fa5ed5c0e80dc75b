"""The section about two graphs: what changed from one to the other."""

from __future__ import annotations

from lite_messages import tr
from lite_widgets import DataTable, GraphView

from .. import views
from ..model_diff import SIGNS, ModelDiff, named, said, text
from .page import Section


def changed(made: ModelDiff) -> Section:
    """Both graphs with colors, and a row for each layer that is not the same."""
    rows = [
        [SIGNS[c.kind], named(c), c.op, "; ".join(f"{d.kind} {said(d)}" for d in c.differences)]
        for c in made.changes.changes
    ]
    rows += [["~", d.name, d.kind, said(d)] for d in made.changes.ends]
    heads = {"change": "", "layer": tr("layer"), "op": tr("op"), "what": tr("what")}
    table = DataTable(
        columns=[{"id": id_, "head": head, "kind": "wrap"} for id_, head in heads.items()],
        rows=[dict(zip(heads, row, strict=True)) for row in rows],
    )
    graph = GraphView(title=tr("What changed"), height=560, **views.diff_data(made))
    return Section(
        "changes", tr("What changed"), text(made.changes).splitlines()[-1], [graph, table]
    )
