"""`lite diff`: what changed from one model file to another."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from lite_messages import tr

from ..model_diff import read_graph, text
from ._base import Command

if TYPE_CHECKING:
    from lite_engine.compare.graph_diff import GraphDiff


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("baseline", metavar="A", help=tr("the model before, in any format"))
    parser.add_argument("candidate", metavar="B", help=tr("the model after"))
    parser.add_argument(
        "--optimized", action="store_true", help=tr("compare the models after every pass")
    )


def _call(args: argparse.Namespace) -> GraphDiff:
    from lite_engine.compare.graph_diff import diff

    paths = (args.baseline, args.candidate)
    graphs = [read_graph(Path(path), args.optimized) for path in paths]
    return diff(graphs[0], graphs[1], paths)


def _show(made: GraphDiff, args: argparse.Namespace) -> str:
    return text(made)


COMMAND = Command(
    "diff", _configure, _call, _show,
    code=lambda made, args: 0 if made.agrees else 1, data=lambda made: made.to_dict(),
)  # fmt: skip
