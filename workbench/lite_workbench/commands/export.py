"""`lite export`: a folder with everything that goes to the device."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lite_engine.errors import UsageError
from lite_engine.files import keep_inputs
from lite_messages import tr

from ..words import number
from ._base import Command, add_model, add_ship_kernels, load_model
from ._table import table

if TYPE_CHECKING:
    from lite_engine.export import Exported
    from lite_engine.pipeline import Pipeline


RUNS = 10


def _configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument(
        "-o", "--output", required=True, metavar="DIR", help=tr("the folder to write")
    )
    parser.add_argument(
        "--target",
        default="arm",
        choices=("arm", "x86", "web"),
        help=tr("CPU of the device, or a folder for web pages (default: arm)"),
    )
    parser.add_argument(
        "--trim",
        action="store_true",
        help=tr(
            "build the runner and the library with this model's kernels only (needs "
            "a source checkout and a compiler)"
        ),
    )
    parser.add_argument(
        "--plugins", default="", metavar="NAMES",
        help=tr("keep sub-graphs for these backends of installed packages, which `lite_run "
                "--library` loads"),
    )  # fmt: skip
    parser.add_argument(
        "--library", action="append", default=[], metavar="FILE", type=Path,
        help=tr("a shared library for the device, with kernels of a backend or of custom "
                "operators; repeatable"),
    )  # fmt: skip
    add_ship_kernels(parser)
    parser.add_argument(
        "--app", action="store_true",
        help=tr(
            "write a whole application: MODEL is a pipeline (.yaml, .json or .lite), or a model "
            "that says how its input and outputs are read"
        ),
    )  # fmt: skip
    parser.add_argument(
        "--android", action="store_true",
        help=tr(
            "write a Gradle project for Android Studio: an app that takes an image and runs MODEL, "
            "as --app takes it (needs a source checkout)"
        ),
    )  # fmt: skip
    parser.add_argument(
        "--swift", action="store_true",
        help=tr(
            "write a Swift package for iOS, macOS and Linux: a library that takes an image and "
            "runs MODEL, as --app takes it (needs a source checkout)"
        ),
    )  # fmt: skip
    parser.add_argument(
        "--report", action=argparse.BooleanOptionalAction, default=True,
        help=tr("also measure the model here and write report.html (default: on)"),
    )  # fmt: skip


def _call(args: argparse.Namespace) -> Exported:
    from lite_engine.export import (
        export_android,
        export_application,
        export_model,
        export_swift,
    )

    if args.android:
        return export_android(_pipeline(args), Path(args.output))
    if args.swift:
        return export_swift(_pipeline(args), Path(args.output))
    if args.app:
        pipeline = _pipeline(args)
        _keep_model(args, pipeline.name)
        return export_application(pipeline, Path(args.output), args.target, trimmed=args.trim)
    model = load_model(args)
    _keep_model(args, "model" if args.target == "web" else model.name)
    return export_model(
        model, Path(args.output), args.target, trimmed=args.trim,
        plugins=[name for name in args.plugins.split(",") if name], libraries=args.library,
        ship_kernels=args.ship_kernels,
        more=(lambda made: _report(made, Path(args.output) / made.model)) if args.report else None,
    )  # fmt: skip


def _keep_model(args: argparse.Namespace, name: str) -> None:
    """Raises UsageError where the folder's own file of that name is the model."""
    keep_inputs(Path(args.output) / f"{name}.lite", [args.model], "--output")


def _pipeline(args: argparse.Namespace) -> Pipeline:
    """Raises UsageError for options that are about a single model, LiteError."""
    from lite_engine.pipeline import Pipeline

    if args.shape or args.params or args.plugins or args.library or args.ship_kernels:
        raise UsageError(
            tr("--app, --android and --swift do not take --shape, --params, --plugins, --library "
               "or --ship-kernels")
        )  # fmt: skip
    if (args.android or args.swift) and args.trim:
        raise UsageError(
            tr("--android and --swift do not take --trim: they build the whole runtime")
        )
    if args.android and args.swift:
        raise UsageError(tr("--android and --swift each need a folder of their own"))
    return Pipeline.open(args.model)


def _report(made: Exported, place: Path) -> None:
    """report.html of the exported file, which will be at `place`: profiles of what runs here, the
    target's CPU first."""
    from lite_engine.export import web
    from lite_engine.runtime import usability

    from ..opening import open_session

    try:
        from ..report import write_report
    except ImportError as error:
        print(
            tr(
                "note: report.html was not written: {error} is not installed; pip "
                "install 'lite-workbench[report]'",
                error=error.name,
            ),
            file=sys.stderr,
        )
        return
    session = open_session(made.folder / place.name)
    session.path = place  # what the report calls it
    for model in session.versions.values():
        model.path = place
    for backend in (web.MODULE if made.target == web.TARGET else made.target, "opencl"):
        if backend in session.targets and usability(backend).usable:
            emulated = session.predictor(backend).emulated
            session.profile(backend, runs=1 if emulated else RUNS)
    write_report([session], made.folder / "report.html")


def _show(result: Exported, args: argparse.Namespace) -> str:
    from lite_engine.export import what_is

    rows = [[file, number(size, "B"), what_is(file)] for file, size in result.sizes.items()]
    total = sum(result.sizes.values())
    lines = [table([tr("file"), tr("size"), tr("what")], rows, right=(1,)), ""]
    lines.append(
        tr(
            "wrote {folder} for {target}: {size}",
            folder=result.folder,
            target=result.target,
            size=number(total, "B"),
        )
    )
    if result.opencl:
        lines.append(
            tr(
                "OpenCL programs in {precision} for: {devices}",
                precision=result.opencl_precision,
                devices="; ".join(result.opencl),
            )
        )
    if result.kernels:
        lines.append(tr("kernels included: {kernels}", kernels=", ".join(result.kernels)))
    return "\n".join(lines)


COMMAND = Command("export", _configure, _call, _show, data=lambda result: result.to_dict())
