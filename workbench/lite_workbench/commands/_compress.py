"""What `lite quantize` and `lite prune` have in common: the samples, the budget of a metric on
labeled data, and the file that is written."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from lite_messages import tr

from ._base import (
    PREPROCESS_HELP,
    add_calibration,
    add_model,
    add_targets,
    at_least,
    drop,
    lite_name,
    load_model,
    set_preprocess,
)
from .evaluate import add_dataset, dataset_of

if TYPE_CHECKING:
    from lite_engine.model_file import Model

    from ..budget import WithinBudget


def add_compression(parser: argparse.ArgumentParser, *, max_drop: str) -> None:
    """The common options; `max_drop` is the help of --max-drop."""
    add_model(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="OUT.lite", type=lite_name,
        help=tr("file to write"),
    )  # fmt: skip
    add_calibration(parser)
    parser.add_argument(
        "--samples", type=at_least(2), metavar="N", help=tr("use at most N calibration samples")
    )
    add_dataset(parser, required=False)
    parser.add_argument("--max-drop", type=drop, metavar="P%", help=max_drop)
    parser.add_argument("--preprocess", metavar="HOW", help=PREPROCESS_HELP)
    parser.add_argument(
        "--force",
        action="store_true",
        help=tr("save the model even if it is below the accuracy threshold"),
    )
    add_targets(parser)


def opened(args: argparse.Namespace) -> Model:
    """The float model, with the preprocessing and the targets of the command line. Raises
    UsageError."""
    from lite_engine.model_file import in_float, parse_targets
    from lite_engine.model_file.precision import DEFAULT_TARGETS

    model = in_float(load_model(args))
    set_preprocess(model, args)
    model.targets = (
        parse_targets(args.targets) if args.targets else model.targets or list(DEFAULT_TARGETS)
    )
    return model


def check_samples(args: argparse.Namespace, why: str) -> None:
    """Raises UsageError without calibration samples, with `why` as the way out, and for --max-drop
    without labeled data."""
    from lite_engine.errors import UsageError

    if args.max_drop is not None and not args.data:
        raise UsageError(tr("--max-drop needs labeled data"), fix=tr("add --data DATASET"))
    if not args.calibration and not args.data:
        raise UsageError(tr("--calibration DIR|FILE is required"), fix=why)


def within_budget(model: Model, args: argparse.Namespace, **how: Any) -> WithinBudget | None:
    """What measures the metric of --data, where there is one. Raises UsageError."""
    from lite_engine.lines import read_labels

    from ..budget import WithinBudget, split

    if not args.data:
        return None
    data = dataset_of(args)
    limit = float("inf") if args.max_drop is None else args.max_drop.of(data)
    calibrating, judging = split(data.first(args.limit), args.calibration)
    labels = read_labels(args.labels) if args.labels else None
    return WithinBudget(model, judging, limit, calibrating=calibrating, labels=labels, **how)
