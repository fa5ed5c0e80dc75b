"""`lite compare`: two sides, layer by layer."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lite_messages import tr, trn

from ._base import (
    PREPROCESS_HELP,
    Command,
    add_input,
    add_model,
    at_least,
    load_model,
    positive,
    set_preprocess,
)
from ._table import clip, table
from .evaluate import add_cluster, add_images, add_limit, cluster_of

if TYPE_CHECKING:
    from lite_engine.compare.comparison import Comparison, LayerDifference
    from lite_engine.compare.many import ComparisonOfInputs
    from lite_engine.compare.side import Valued
    from lite_engine.model_file import Model
    from lite_engine.runtime import Predictor


ORIGINAL = "original"


def _configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "other", nargs="?", metavar="OTHER", help=tr("a second model, compared with the first")
    )
    parser.add_argument(
        "--backends",
        metavar="A[,B]",
        help=tr(
            "baseline and candidate; `original` is the framework of the file. One "
            "backend is enough to compare two models, precisions or devices "
            "(default: reference,CPU; this CPU for two models; the CPU of each "
            "device)"
        ),
    )
    parser.add_argument(
        "--precision", metavar="A[,B]", help=tr("storage type of float values on each side")
    )
    parser.add_argument("--threads", metavar="N[,M]", help=tr("number of CPU threads on each side"))
    parser.add_argument(
        "--devices", "--device", metavar="A[,B]",
        help=tr("the device of each side: local, emulated, ssh://…"),
    )  # fmt: skip
    add_input(parser)
    parser.add_argument("--preprocess", metavar="HOW", help=PREPROCESS_HELP)
    parser.add_argument(
        "--data", metavar="INPUTS",
        help=tr("compare on every input of a folder of images, an .npz or labeled data, and show "
                "the typical and the worst error of each layer"),
    )  # fmt: skip
    add_images(parser)
    add_limit(parser)
    add_cluster(parser)
    parser.add_argument(
        "--random-inputs",
        type=at_least(1),
        default=1,
        metavar="N",
        help=tr("number of random inputs to try (default: 1)"),
    )
    parser.add_argument(
        "--tolerance",
        type=positive,
        metavar="E",
        help=tr("largest allowed relative L2 error of a layer (default: by operator)"),
    )
    parser.add_argument("--layers", metavar="NAME,…", help=tr("compare only these layers"))
    parser.add_argument("--until", metavar="NAME", help=tr("stop after this layer"))
    parser.add_argument(
        "--bisect",
        action="store_true",
        help=tr("find the first failing layer with as few runs as possible"),
    )
    parser.add_argument(
        "--detail", action="append", default=[], metavar="LAYER",
        help=tr("also show the histogram and the channel map of this layer; repeatable"),
    )  # fmt: skip
    parser.add_argument(
        "--isolated",
        action=argparse.BooleanOptionalAction,
        default=True,
        help=tr("also run each layer on its own, on the baseline's values (default: on)"),
    )


def _call(args: argparse.Namespace) -> Comparison | ComparisonOfInputs:
    from lite_engine.compare import Side, bisect, compare
    from lite_engine.images import is_image
    from lite_engine.runtime.inputs import random_feeds, read_feeds

    from ..answers_compared import reader
    from ._first_look import say_first

    model = load_model(args)
    set_preprocess(model, args)
    _check(args)
    a, b = _sides(args, model)
    files = [text.rpartition("=")[2] for text in args.input]
    if args.data or (len(files) == 1 and is_image(files[0])):  # arrays are one feed as they are
        say_first(model, lambda: args.data or files[0], args)
    if args.data:
        return _over_inputs(args, model, a, b)
    seeds = 1 if args.input else args.random_inputs
    models = [side.predictor.model for side in (a, b) if isinstance(side, Side)]
    for seed in range(seeds):
        feeds = (
            read_feeds(model, args.input)
            if args.input
            else random_feeds(model, seed, others=models)
        )
        result = (bisect if args.bisect else compare)(
            a, b, feeds, tolerance=args.tolerance, isolated=args.isolated,
            layers=args.layers.split(",") if args.layers else None, until=args.until,
            detail=args.detail, read=reader((a, b), feeds),
        )  # fmt: skip
        if not args.input:
            note = tr(
                " (random inputs {number} of {seeds}, seed {seed})",
                number=seed + 1,
                seeds=seeds,
                seed=seed,
            )
            result = replace(result, verdict=result.verdict + note).of(result.graph)
        if not result.agrees:
            break
    return result


def _check(args: argparse.Namespace) -> None:
    """Raises UsageError for options that exclude each other."""
    from lite_engine.errors import UsageError

    one = {"--input": args.input, "--bisect": args.bisect, "--detail": args.detail}
    many = {"--workers": args.workers, "--scheduler": args.scheduler, "--images": args.images,
            "--limit": args.limit}  # fmt: skip
    wrong = next((name for name, value in (one if args.data else many).items() if value), "")
    if wrong and args.data:
        raise UsageError(
            tr("--data compares on many inputs, {option} looks at one", option=wrong),
            fix=tr("leave out one of the two"),
        )
    if wrong:
        raise UsageError(tr("{option} needs --data", option=wrong))


def _over_inputs(
    args: argparse.Namespace, model: Model, a: Valued, b: Valued
) -> ComparisonOfInputs:
    from ..compare_inputs import Sides, compare_inputs, inputs_of

    first, second = _pair(args.devices or "local", "--devices")
    options = {"tolerance": args.tolerance, "isolated": args.isolated, "until": args.until,
               "layers": args.layers.split(",") if args.layers else None}  # fmt: skip
    data = inputs_of(args.data, model, images=args.images, limit=args.limit)
    sides = Sides(a, b, model, (first, second), options)
    return compare_inputs(sides, data, cluster=cluster_of(args))


def _sides(args: argparse.Namespace, model: Model) -> tuple[Valued, Valued]:
    """The baseline and the candidate. Raises UsageError."""
    from lite_engine.compare import Side
    from lite_engine.compare.originals import open_original
    from lite_engine.devices import find_device
    from lite_engine.runtime import Predictor, host_target

    here = host_target()
    rest = (args.precision, args.threads, args.devices)
    two = bool(args.other) or any("," in text for text in rest if text)
    devices = _pair(args.devices or "local", "--devices")
    boards = [find_device(where) for where in devices]
    usual = f"reference,{here}"
    if args.devices:
        usual = ",".join(board.target() if board else here for board in boards)
    elif args.other:
        usual = here
    names = _pair(args.backends or usual, "--backends", two)
    precisions = _pair(args.precision or "auto", "--precision")
    threads = _pair(args.threads or "auto", "--threads")
    other = model
    if args.other:
        other = load_model(argparse.Namespace(model=args.other, params=None, shape=args.shape))
    sides: list[Valued] = []
    for m, path, name, precision, count, where, board in zip(
        (model, other), (args.model, args.other or args.model), names, precisions, threads,
        devices, boards, strict=True,
    ):  # fmt: skip
        if name == ORIGINAL:
            sides.append(open_original(path))
            continue
        predictor = Predictor(
            m, name, threads=_count(count), device=board,
            precision=None if precision == "auto" else precision,
        )  # fmt: skip
        sides.append(Side(predictor, _label(predictor, where, count, precision)))
    if args.other:
        for side, m in zip(sides, (model, other), strict=True):
            side.label = tr("{model} on {side}", model=m.name, side=side.label)
    if sides[0].label == sides[1].label:
        for side, role in zip(sides, ("baseline", "candidate"), strict=True):
            side.label = f"{side.label} ({role})"
    return sides[0], sides[1]


def _label(predictor: Predictor, where: str, count: str, asked: str) -> str:
    parts = [predictor.backend]
    if predictor.precision != "fp32" or asked not in ("auto", "fp32"):
        parts.append(predictor.precision)
    if asked not in ("auto", predictor.precision):
        parts.append(tr("({asked} is not available)", asked=asked))
    if where not in ("local", "emulated"):
        parts.append(tr("at {where}", where=where))
    if _count(count):
        parts.append(trn("{n} thread", "{n} threads", int(count)))
    return " ".join(parts)


_PAIRS = {"--backends": "x86,opencl", "--precision": "fp32,fp16", "--threads": "1,2",
          "--devices": "local,emulated"}  # fmt: skip


def _pair(text: str, option: str, alone: bool = True) -> Sequence[str]:
    """The two words of `a,b`; one alone may stand for both. Raises UsageError."""
    from lite_engine.errors import UsageError

    words = [w.strip() for w in text.split(",")]
    if len(words) == 1 and alone:
        words *= 2
    if len(words) != 2 or not all(words):
        raise UsageError(
            tr(
                "{option} needs two values, like {pairs}, got {text!r}",
                option=option,
                pairs=_PAIRS[option],
                text=text,
            )
        )
    return words


def _count(text: str) -> int | None:
    """A number of threads, None for "auto". Raises UsageError."""
    from lite_engine.errors import UsageError

    if text == "auto":
        return None
    if not text.isdigit():
        raise UsageError(tr("--threads {text!r} is not a whole number", text=text))
    return int(text)


def _show(result: Comparison | ComparisonOfInputs, args: argparse.Namespace) -> str:
    from lite_engine.compare.many import ComparisonOfInputs

    return _many(result) if isinstance(result, ComparisonOfInputs) else _one(result)


def _many(result: ComparisonOfInputs) -> str:
    """Layers in the order of the table: those that fail on the most inputs first."""
    heads, rows = result.table()
    left_out = [tr("left out: {error}", error=error) for _, error in result.unreadable]
    cells = [[clip(str(cell), 32) for cell in row] for row in rows]
    return "\n".join([*left_out, table(heads, cells, right=(2, 3, 4, 6, 7)), "", result.verdict])


def _one(result: Comparison) -> str:
    over = "WRONG" if result.needs_attention else tr("over")
    before = [None, *(x.name for x in result.layers)]  # a layer's outputs follow each other
    rows = [
        [
            x.index,
            clip(x.name if x.name != name else f"{x.name} ({x.value_baseline})", 40),
            x.op,
            f"{x.rel_l2:.1e}",
            f"{x.isolated['rel_l2']:.1e}" if x.isolated else "–",
            f"{x.max_abs:.1e}",
            f"{x.cosine:.6f}",
            "–" if x.sqnr_db is None else f"{x.sqnr_db:.1f}",
            "" if x.within else over,
            clip(" + ".join(x.sources), 40),
        ]
        for x, name in zip(result.layers, before)
    ]
    head = [
        "#",
        tr("layer"),
        "op",
        tr("accumulated"),
        tr("isolated"),
        tr("max abs"),
        tr("cosine"),
        tr("SQNR dB"),
        "",
        tr("from"),
    ]
    lines = [table(head, rows, right=(0, 3, 4, 5, 6, 7)), ""]
    for row in result.layers:
        if row.detail:
            lines += _evidence(row, row.detail)
    if result.unaligned > 0:
        lines.append(
            trn(
                "{n} value of {candidate} has no counterpart in {baseline}",
                "{n} values of {candidate} have no counterpart in {baseline}",
                result.unaligned,
                candidate=result.candidate,
                baseline=result.baseline,
            )
        )
    return "\n".join([*lines, result.verdict])


def _evidence(row: LayerDifference, d: Mapping[str, Any]) -> list[str]:
    """Where a layer differs: worst place, channels, columns, and how much."""
    figures = row.isolated or {
        "worst": row.worst,
        "worst_baseline": row.worst_baseline,
        "worst_candidate": row.worst_candidate,
    }
    channels = sorted(range(len(d["per_channel"])), key=lambda i: -d["per_channel"][i])[:5]
    columns = sorted(range(len(d["per_column"])), key=lambda i: -d["per_column"][i])[:5]
    place = ",".join(map(str, figures["worst"]))
    lines = [
        tr(
            "{layer}, {kind}: worst at [{place}]: {one:.6g} against {other:.6g}",
            layer=row.name,
            kind=d["kind"],
            place=place,
            one=figures["worst_baseline"],
            other=figures["worst_candidate"],
        ),
        tr("  channels that differ most: ")
        + ", ".join(f"{i} ({d['per_channel'][i]:.1e})" for i in channels),
        tr("  columns that differ most: ")
        + ", ".join(f"{i} ({d['per_column'][i]:.1e})" for i in columns),
    ]
    counts, edges = d["histogram"]["counts"], d["histogram"]["edges_log10"]
    if counts:
        steps = " ▁▂▃▄▅▆▇█"
        bars = "".join(steps[-(-8 * c // max(counts))] for c in counts)
        lines.append(
            tr(
                "  |difference| 1e{low:.1f} {bars} 1e{high:.1f}, {equal} values equal",
                low=edges[0],
                bars=bars,
                high=edges[-1],
                equal=d["histogram"]["zero"],
            )
        )
    return [*lines, ""]


COMMAND = Command(
    "compare", _configure, _call, _show,
    code=lambda result, args: result.exit_code,
    data=lambda result: result.to_dict(),
)  # fmt: skip
