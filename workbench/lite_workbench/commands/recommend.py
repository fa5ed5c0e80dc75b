"""`lite recommend`: the fastest version within the budgets, measured, with its evidence."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from lite_engine.files import keep_inputs
from lite_engine.model_file.precision import TARGETS
from lite_messages import tr

from ..names import with_ending
from ._base import (
    PREPROCESS_HELP,
    Command,
    add_device,
    add_model,
    drop,
    lite_name,
    load_model,
    positive,
    set_preprocess,
)
from ._table import table
from .evaluate import add_dataset, dataset_of
from .sweep import names_of, numbers_of

if TYPE_CHECKING:
    from ..recommend import Recommendation


def _configure(parser: argparse.ArgumentParser) -> None:
    from ..recommend_versions import KINDS

    add_model(parser)
    add_dataset(parser, required=True)
    parser.add_argument(
        "-o", "--output", metavar="OUT.lite", type=lite_name,
        help=tr("file to write the chosen version to"),
    )  # fmt: skip
    parser.add_argument(
        "--max-drop", type=drop, required=True, metavar="P%",
        help=tr("what the metric may lose against the float model: points, like 0.5%%, or 0.5dB of "
                "PSNR"),
    )  # fmt: skip
    parser.add_argument("--max-ms", type=positive, metavar="MS", help=tr("latency limit"))
    parser.add_argument("--max-mb", type=positive, metavar="MB", help=tr("size limit of the file"))
    parser.add_argument(
        "--backends", default=[], type=names_of(TARGETS, tr("backend")), metavar="B,…",
        help=tr("backends to measure (default: the CPU and OpenCL, where they work)"),
    )  # fmt: skip
    parser.add_argument(
        "--threads", default=[1], type=numbers_of, metavar="N,…",
        help=tr("numbers of CPU threads to measure (default: 1)"),
    )  # fmt: skip
    parser.add_argument(
        "--try", dest="kinds", default=list(KINDS), type=names_of(KINDS, tr("kind of version")),
        metavar="KIND,…",
        help=tr("what to try besides float versions: weights (in 8 and 4 bits), int8, pruned "
                "(default: all)"),
    )  # fmt: skip
    add_device(parser)
    parser.add_argument(
        "--resume", metavar="DIR",
        help=tr("keep finished versions and measurements in this folder, and continue from it"),
    )  # fmt: skip
    parser.add_argument(
        "--report", metavar="FILE.html",
        help=tr("write a page with the evidence: every candidate, and why it was not chosen"),
    )  # fmt: skip
    parser.add_argument("--preprocess", metavar="HOW", help=PREPROCESS_HELP)


def _call(args: argparse.Namespace) -> Recommendation:
    from lite_engine.lines import read_labels

    from ..recommend import recommend
    from ._first_look import say_first

    if args.output:
        keep_inputs(with_ending(args.output, ".lite"), [args.model], "--output")
    model = load_model(args)
    set_preprocess(model, args)
    data = dataset_of(args).first(args.limit)
    say_first(model, lambda: data, args)
    made = recommend(
        model, data, max_drop=args.max_drop.of(data), max_ms=args.max_ms,
        max_mb=args.max_mb, backends=args.backends, threads=args.threads, output=args.output,
        device=args.device, resume=args.resume, kinds=args.kinds,
        labels=read_labels(args.labels) if args.labels else None,
    )  # fmt: skip
    if args.report:
        from ..report.evaluated import recommended
        from ..report.write import write_page

        write_page(made.model, [recommended(made)], args.report)
    return made


def _show(result: Recommendation, args: argparse.Namespace) -> str:
    heads, rows = result.table()
    head = tr("{model}: {count} candidates on {samples} samples", model=result.model,
              count=len(rows), samples=result.samples)  # fmt: skip
    notes = [tr("note: {note}", note=note) for note in result.notes]
    wrote = [tr("wrote {path}", path=result.file)] if result.file else []
    right = tuple(range(3, len(heads) - 1))
    return "\n".join(
        [head, "", table(heads, rows, right=right), "", *notes, result.sentence, *wrote]
    )


COMMAND = Command(
    "recommend", _configure, _call, _show, code=lambda r, args: int(r.chosen is None),
    data=lambda r: r.to_dict(),
)  # fmt: skip
