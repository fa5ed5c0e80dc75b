"""The options of `lite quantize`: from the command line, from a trade-off's point, and as a command
that repeats them."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from lite_messages import tr

if TYPE_CHECKING:
    from lite_engine.quantize import Options


def options_of(args: argparse.Namespace) -> Options:
    from lite_engine.quantize import Options, Scheme

    keep = frozenset(k for k in args.keep_float.split(",") if k)
    return Options(
        method=args.method,
        scheme=Scheme(args.activations, args.symmetric, keep_float=keep),
        equalize=args.equalize,
        rounding=args.rounding,
        target_db=args.target_db,
        target_top1=args.target_top1,
        max_bytes=args.max_bytes,
        float_budget=args.float_budget,
        limit=args.samples,
        measure=args.measure or "",
    )


def command_of(args: argparse.Namespace, options: Options) -> str:
    """What repeats this, for a shell, but for the file that it writes."""
    from lite_engine.profile.advice import shape_options
    from lite_engine.quantize import Options

    usual, scheme = Options(), options.scheme
    given = {
        "--params": args.params,
        "--preprocess": args.preprocess,
        "--calibration": args.calibration,
        "--data": args.data,
        "--task": args.task,
        "--images": args.images,
        "--labels": args.labels,
        "--label-offset": args.label_offset or None,
        "--limit": args.limit,
        "--max-drop": args.max_drop,
        "--targets": args.targets,
        "--measure": options.measure if options.searches or args.data else "",
        "--samples": options.limit,
        "--keep-float": ",".join(sorted(scheme.keep_float)),
        "--activations": "" if scheme.activation == usual.scheme.activation else scheme.activation,
    }
    for name in (
        "method",
        "rounding",
        "target_db",
        "target_top1",
        "max_bytes",
        "float_budget",
    ):
        if getattr(options, name) != getattr(usual, name):
            given[f"--{name.replace('_', '-')}"] = getattr(options, name)
    words = [
        word
        for key, value in given.items()
        if value not in (None, "")
        for word in (key, str(value))
    ]
    words += ["--symmetric"] * scheme.symmetric + ["--no-equalize"] * (not options.equalize)
    shapes = shape_options(dict(args.shape))
    return f"lite quantize {shlex.join([str(args.model), *words])} {shapes}".rstrip()


def repeated(text: str) -> Options:
    """Options of a point, from FILE.json:K."""
    from lite_engine.errors import UsageError
    from lite_engine.files import about
    from lite_engine.quantize import Options, read_curve

    path, _, number = text.rpartition(":")
    if not path or not number.isdigit():
        raise UsageError(
            tr("--repeat {text!r} is not of the form FILE.json:K, with K counted from 0", text=text)
        )
    points = read_curve(Path(path))["points"]
    if int(number) >= len(points):
        raise UsageError(
            tr(
                "{path} has {points} points, counted from 0, got {number}",
                path=path,
                points=len(points),
                number=number,
            )
        )
    with about(path):
        return Options.from_dict(points[int(number)]["options"])


def of_images(args: argparse.Namespace) -> bool:
    """Were the samples images, and not arrays?"""
    return Path(args.calibration or args.data).suffix != ".npz"
