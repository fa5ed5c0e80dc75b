"""`lite diff`: what changed from one model file to another."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lite_messages import tr

from ..model_diff import compare_graphs, read_graph, text
from ._base import Command

if TYPE_CHECKING:
    from lite_engine.compare.graph_diff import GraphDiff


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("baseline", metavar="A", help=tr("the model before, in any format"))
    parser.add_argument("candidate", metavar="B", help=tr("the model after"))
    parser.add_argument(
        "--optimized", action="store_true", help=tr("compare the models after every pass")
    )
    parser.add_argument(
        "--report", metavar="FILE.html",
        help=tr("write a page with both graphs, their changes in colors"),
    )  # fmt: skip


def _call(args: argparse.Namespace) -> GraphDiff:
    paths = (args.baseline, args.candidate)
    graphs = [read_graph(Path(path), args.optimized) for path in paths]
    made = compare_graphs(graphs[0], graphs[1], paths)
    if args.report:
        from ..report.changed import changed
        from ..report.write import write_page

        write_page(" → ".join(Path(path).name for path in paths), [changed(made)], args.report)
    return made.changes


def _show(made: GraphDiff, args: argparse.Namespace) -> str:
    return text(made)


COMMAND = Command(
    "diff", _configure, _call, _show,
    code=lambda made, args: 0 if made.agrees else 1, data=lambda made: made.to_dict(),
)  # fmt: skip
