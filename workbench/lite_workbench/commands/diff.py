"""`lite diff`: what changed from one model file to another."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lite_messages import tr, trn

from ._base import Command

if TYPE_CHECKING:
    from lite_engine.compare.graph_diff import Difference, GraphDiff, NodeChange
    from lite_engine.ir import Graph

_SIGNS = {"added": "+", "deleted": "-", "changed": "~"}


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("baseline", metavar="A", help=tr("the model before, in any format"))
    parser.add_argument("candidate", metavar="B", help=tr("the model after"))
    parser.add_argument(
        "--optimized", action="store_true", help=tr("compare the models after every pass")
    )


def _call(args: argparse.Namespace) -> GraphDiff:
    from lite_engine.compare.graph_diff import diff

    graphs = [_graph(Path(path), args.optimized) for path in (args.baseline, args.candidate)]
    return diff(graphs[0], graphs[1], (args.baseline, args.candidate))


def _graph(path: Path, optimized: bool) -> Graph:
    from lite_engine.importers import load
    from lite_engine.model_file import is_lite, read_model
    from lite_engine.passes import optimize_graph

    graph = read_model(path).graph if is_lite(path) else load(path)
    return optimize_graph(graph) if optimized else graph


def _show(made: GraphDiff, args: argparse.Namespace) -> str:
    lines = [f"{d.kind} {_said(d)}" for d in made.ends]
    for change in made.changes:
        lines.append(f"{_SIGNS[change.kind]} {_name(change)} ({change.op})")
        lines += [f"    {d.kind} {_said(d)}" for d in change.differences]
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


def _name(change: NodeChange) -> str:
    both = dict.fromkeys(name for name in (change.before, change.after) if name)
    return " → ".join(both)


def _said(d: Difference) -> str:
    text = f"{d.name}: {d.before or '–'} → {d.after or '–'}"
    if d.distance is not None:
        text += tr(" (relative L2 distance {distance:.1e})", distance=d.distance)
    return text


COMMAND = Command(
    "diff", _configure, _call, _show,
    code=lambda made, args: 0 if made.agrees else 1, data=lambda made: made.to_dict(),
)  # fmt: skip
