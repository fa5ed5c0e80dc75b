"""What changed from one model to another: as text, and in the graph."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lite_engine.terminal import printable
from lite_messages import tr, trn

if TYPE_CHECKING:
    from lite_engine.compare.graph_diff import Difference, GraphDiff, NodeChange
    from lite_engine.ir import Graph

SIGNS = {"added": "+", "deleted": "-", "changed": "~"}


@dataclass(repr=False)
class ModelDiff:
    """The changes from a model to this one (`session.diff`). A notebook shows both graphs with
    what was added, deleted and changed in colors."""

    changes: GraphDiff
    baseline: Graph
    candidate: Graph

    def __repr__(self) -> str:
        return text(self.changes)


def compare_graphs(baseline: Graph, candidate: Graph, names: tuple[str, str]) -> ModelDiff:
    from lite_engine.compare.graph_diff import diff

    return ModelDiff(diff(baseline, candidate, names), baseline, candidate)


def read_graph(path: Path, optimized: bool) -> Graph:
    """The graph of a file of any format. Raises LiteError."""
    from lite_engine.importers import load
    from lite_engine.model_file import is_lite, read_model
    from lite_engine.passes import optimize_graph

    graph = read_model(path).graph if is_lite(path) else load(path)
    return optimize_graph(graph) if optimized else graph


def text(made: GraphDiff) -> str:
    """A line for each change, and one that counts them."""
    lines = [printable(f"{d.kind} {said(d)}") for d in made.ends]
    for change in made.changes:
        lines.append(printable(f"{SIGNS[change.kind]} {named(change)} ({change.op})"))
        lines += [printable(f"    {d.kind} {said(d)}") for d in change.differences]
    kinds = [c.kind for c in made.changes]
    lines.append(
        tr(
            "{same}, {added} added, {deleted} deleted, {changed} changed",
            same=trn("{n} layer is the same", "{n} layers are the same", made.same),
            added=kinds.count("added"),
            deleted=kinds.count("deleted"),
            changed=kinds.count("changed"),
        )
    )
    if made.renamed:
        lines[-1] += tr(", {n} renamed", n=made.renamed)
    return "\n".join(lines)


def named(change: NodeChange) -> str:
    both = dict.fromkeys(name for name in (change.before, change.after) if name)
    return " → ".join(both)


def said(d: Difference) -> str:
    text = f"{d.name}: {d.before or '–'} → {d.after or '–'}"
    if d.distance is not None:
        text += tr(" (relative L2 distance {distance:.1e})", distance=d.distance)
    return text
