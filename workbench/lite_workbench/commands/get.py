"""`lite get`: lists well-known public models and fetches one where there is a network."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from lite_messages import tr

from ..starters import STARTERS, Starters, fetch, find
from ..words import number
from ._base import Command
from ._table import table


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "name", nargs="?", metavar="NAME",
        help=tr("a model of the list, or OWNER/REPO:FILE of the Hugging Face hub; "
                "without it the list is shown"),
    )  # fmt: skip
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help=tr("folder for the files (default: named after the model)"),
    )
    parser.add_argument(
        "--update", action="store_true",
        help=tr("accept the hub's current files, even where they differ from the first download"),
    )  # fmt: skip


def _call(args: argparse.Namespace) -> Starters:
    if args.name is None:
        return Starters(list(STARTERS.values()))
    starter = find(args.name)
    folder = Path(args.output or starter.name)
    return Starters([starter], fetch(starter, folder, update=args.update))


def _show(made: Starters, args: argparse.Namespace) -> str:
    if made.fetched is None:
        rows = [(s.name, s.task, s.license, s.repo) for s in made.models]
        heads = (tr("name"), tr("task"), tr("license"), tr("repository"))
        return "\n".join([table(heads, rows), "", tr("fetch one: lite get NAME")])
    found = made.fetched
    lines = [f"{file}  {number(Path(file).stat().st_size, 'B')}  sha256 {found.sha256[name][:16]}…"
             for file, name in zip(found.files, found.sha256)]  # fmt: skip
    lines.append(tr("license: {license}", license=found.license))
    lines.append(tr("{repo} at commit {commit}", repo=found.repo, commit=found.commit[:12]))
    return "\n".join(lines)


COMMAND = Command("get", _configure, _call, _show, data=asdict)
