"""`lite sweep`: how many threads, which batch, backend and precision?"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lite_engine.settings import BACKENDS
from lite_messages import tr, trn

from ._base import (
    PREPROCESS_HELP,
    Command,
    add_model,
    at_least,
    load_model,
    positive,
    set_preprocess,
)
from ._table import table
from .evaluate import add_cluster, add_dataset, add_mlflow, cluster_of, counting, dataset_of

if TYPE_CHECKING:
    from ..sweep import Sweep

PRECISIONS = ("auto", "fp32", "fp16", "bf16", "int8")


def numbers_of(text: str) -> list[int]:
    """1,2,4 as an option. Raises argparse's error."""
    from lite_engine.errors import UsageError

    from ..sweep.cells import counts_of

    try:
        return counts_of(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(error.what) from None


def words_of(text: str) -> list[str]:
    return list(dict.fromkeys(w.strip() for w in text.split(",") if w.strip())) or ["local"]


def names_of(known: Sequence[str], what: str) -> type[list[str]]:
    def read(text: str) -> list[str]:
        words = list(dict.fromkeys(w.strip() for w in text.split(",") if w.strip()))
        wrong = [w for w in words if w not in known]
        if wrong or not words:
            raise argparse.ArgumentTypeError(
                tr(
                    "{word} is not a {what}: choose from {known}",
                    what=what,
                    word=wrong[0] if wrong else repr(text),
                    known=", ".join(known),
                )
            )
        return words

    return read  # type: ignore[return-value]


def _configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "--backends", default=["auto"], type=names_of(BACKENDS, tr("backend")), metavar="B,…",
        help=tr("backends to measure (default: the best one available)"),
    )  # fmt: skip
    parser.add_argument(
        "--precisions", default=["auto"], type=names_of(PRECISIONS, tr("precision")),
        metavar="P,…", help=tr("fp32, fp16, bf16, int8 (default: as in the file)"),
    )  # fmt: skip
    counted = {
        "threads": tr("numbers of CPU threads (default: 1)"),
        "batch": tr("batch sizes (default: the model's own, 1 where it is open)"),
        "streams": tr("numbers of predictors that run at the same time (default: 1)"),
    }
    for name, what in counted.items():
        default = None if name == "batch" else [1]
        parser.add_argument(f"--{name}", default=default, type=numbers_of, metavar="N,…", help=what)
    parser.add_argument(
        "--rounds", type=at_least(1), default=7, metavar="N",
        help=tr("number of rounds in which every combination is timed once (default: 7)"),
    )  # fmt: skip
    parser.add_argument(
        "--max-ms", type=positive, metavar="MS",
        help=tr("latency goal; exit with 1 if no combination reaches it"),
    )  # fmt: skip
    parser.add_argument(
        "--min-rate", type=positive, metavar="N",
        help=tr("throughput goal in samples per second; exit with 1 if no combination reaches it"),
    )  # fmt: skip
    parser.add_argument(
        "--resume", metavar="FILE.json",
        help=tr("save finished combinations to this file, and continue from it"),
    )  # fmt: skip
    parser.add_argument(
        "--devices", default=["local"], type=words_of, metavar="D,…",
        help=tr("devices to measure on, as --device of the other verbs (default: local)"),
    )  # fmt: skip
    add_cluster(parser)
    add_mlflow(parser)
    add_dataset(parser, required=False)
    parser.add_argument("--preprocess", metavar="HOW", help=PREPROCESS_HELP)


def _call(args: argparse.Namespace) -> Sweep:
    from lite_engine.lines import read_labels

    from ..saved_runs import check_mlflow, export_mlflow, keep_sweep
    from ..sweep import sweep
    from ._first_look import say_first

    model = load_model(args)
    set_preprocess(model, args)
    if args.mlflow:
        check_mlflow(args.mlflow)
    data = dataset_of(args).first(args.limit) if args.data else None
    if data is not None:
        say_first(model, lambda: data, args)
    made = sweep(
        model, backends=args.backends, precisions=args.precisions, threads=args.threads,
        batches=args.batch, streams=args.streams, rounds=args.rounds, max_ms=args.max_ms,
        min_rate=args.min_rate,
        data=data, labels=read_labels(args.labels) if args.labels else None, resume=args.resume,
        devices=args.devices, cluster=cluster_of(args), progress=counting(tr("measured")),
    )  # fmt: skip
    keep_sweep(made, args.model)
    if args.mlflow:
        export_mlflow(made, args.mlflow)
    return made


def _show(result: Sweep, args: argparse.Namespace) -> str:
    heads, rows = result.table()
    right = tuple(range(3, len(heads) - 1))
    head = trn("{model}: {n} combination", "{model}: {n} combinations", len(result.cells),
               model=result.model)  # fmt: skip
    if any(cell.front for cell in result.cells):
        head = tr("{combinations}, ★ no other is better", combinations=head)
    return "\n".join([head, "", table(heads, rows, right=right), "", *result.sentences])


def _code(result: Sweep, args: argparse.Namespace) -> int:
    return int(result.best is None)


COMMAND = Command("sweep", _configure, _call, _show, code=_code, data=lambda r: r.to_dict())
