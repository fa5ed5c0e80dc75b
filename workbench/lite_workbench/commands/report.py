"""`lite report`: everything about a model in one HTML file that needs no network."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lite_messages import tr

from ..words import number
from ._base import Command, add_shape, at_least

if TYPE_CHECKING:
    from ..session import Session


@dataclass
class Written:
    """The file, and the sessions that it tells of."""

    path: Path
    sessions: list[Session]


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("models", nargs="+", metavar="MODEL", help=tr("one or more models"))
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help=tr("file to write (default: the first model's name with .html)"),
    )
    add_shape(parser)
    parser.add_argument(
        "--input", metavar="FILE", help=tr("an image, .npy or .npz file (default: random data)")
    )
    parser.add_argument(
        "--backends",
        default="",
        metavar="A,B",
        help=tr("backends to profile (default: this CPU and OpenCL, where available)"),
    )
    parser.add_argument(
        "--runs",
        type=at_least(1),
        metavar="N",
        help=tr("number of timed runs (default: 20, fewer for more than 1000 layers)"),
    )
    parser.add_argument(
        "--compare",
        default="",
        metavar="A,B",
        help=tr("backends to compare (default: the profiled ones, or the reference)"),
    )
    parser.add_argument(
        "--calibration",
        metavar="DIR|NPZ",
        help=tr(
            "also quantize with these samples; accuracy is then measured by the task's metric on "
            "labeled samples that were not used for calibration"
        ),
    )
    parser.add_argument(
        "--live",
        action="store_true",
        help=tr("embed the model and the runtime, so that the model can be run again in a browser"),
    )


def _call(args: argparse.Namespace) -> Written:
    from lite_engine.errors import LiteError

    try:
        from ..report import write_report
    except ImportError as error:
        raise LiteError(
            tr("the report needs {error}, which is not installed", error=error.name),
            command="pip install 'lite-workbench[report]'",
        ) from None
    sessions = [_measured(model, args) for model in args.models]
    output = args.output or f"{sessions[0].stem}.html"
    return Written(write_report(sessions, output, live=args.live), sessions)


def _measured(model: str, args: argparse.Namespace) -> Session:
    """A session with profiles, a comparison and (with samples) a quantization."""
    from ..opening import open_session

    session = open_session(model, shapes=dict(args.shape))
    backends = _backends(args.backends, session)
    if not session.versions:
        session.convert()
    session.set_input(args.input)
    for backend in backends:
        session.profile(backend, runs=args.runs)
    sides = [s.strip() for s in args.compare.split(",")] if args.compare else backends[:2]
    if len(sides) < 2:
        sides = ["reference", backends[0]]
    session.compare(*sides[:2])
    if args.calibration:
        quantized(session, args.calibration)
        session.use(session.base)
    return session


def quantized(session: Session, samples: str) -> None:
    """The int8 version and those with layers in float; labels judge them where there are any."""
    from ..budget import EVERY, MOST
    from ..evaluate import read_dataset
    from ..quantizing import labeled

    if labeled(samples):
        session.quantize(samples, limit=min(MOST, -(-len(read_dataset(samples)) // EVERY)))
        session.explore(data=samples)
    else:
        session.quantize(samples)
        session.explore()


def _backends(wanted: str, session: Session) -> list[str]:
    """What was asked for, else this CPU and a usable OpenCL device that the file serves."""
    from lite_engine.runtime import host_target, usability

    if wanted:
        return [b.strip() for b in wanted.split(",")]
    known = [b for b in (host_target(), "opencl") if not session.targets or b in session.targets]
    return [b for b in known if usability(b).usable] or ["reference"]


def _show(result: Written, args: argparse.Namespace) -> str:
    from lite_engine.compare.words import called

    lines = [
        tr(
            "wrote {path} ({size})",
            path=result.path,
            size=number(result.path.stat().st_size, "B"),
        )
    ]
    for session in result.sessions:
        for backend, profile in session.profiles.items():
            lines.append(
                tr(
                    "  {model} on {backend}: median {time:.3f} ms",
                    model=session.path.name,
                    backend=called(backend),
                    time=profile.total_ms["median"],
                )
            )
        lines += [f"  {c.verdict}" for c in session.comparisons.values()]
    return "\n".join(lines)


COMMAND = Command("report", _configure, _call, _show)
