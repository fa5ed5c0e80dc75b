"""`lite tune`: the fastest way of each layer on this OpenCL device, measured or taken over, and on
this CPU, where layers have many zeros."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_engine.errors import UsageError
from lite_messages import tr, trn

from ._base import EFFORTS, Command, add_shape, lite_name, load_model
from ._table import table

if TYPE_CHECKING:
    from lite_engine.backends import Measured
    from lite_engine.doctor.field_report import Adopted


@dataclass
class Tuning:
    """The layers that were measured now, and how many sizes of layers were known. `path` is the
    file that has the choices of the CPU."""

    measured: list[Measured]
    known: int
    path: Path | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "known": self.known,
            "measured": [_data(m) for m in self.measured],
            "file": None if self.path is None else str(self.path),
        }


def _data(measured: Measured) -> dict[str, Any]:
    """Its JSON, where a way that failed took null."""
    finite = {w: s if s < float("inf") else None for w, s in measured.seconds.items()}
    return {**measured._asdict(), "seconds": finite}


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", nargs="?", metavar="MODEL", help=tr("a model file or folder"))
    parser.add_argument(
        "--params", metavar="FILE", help=tr("the weights file, for formats with two files")
    )
    add_shape(parser)
    parser.add_argument(
        "--backend",
        choices=("opencl", "cpu"),
        default="opencl",
        help=tr(
            "opencl: the variants of each layer; cpu: whether skipping the zeros of pruned layers "
            "is faster on this machine (default: opencl)"
        ),
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", type=lite_name,
        help=tr("with --backend cpu: the .lite file to save the model and the choices in, which "
                "may be MODEL itself if that is a .lite file"),
    )  # fmt: skip
    parser.add_argument(
        "--effort",
        choices=EFFORTS,
        default="normal",
        help=tr("how many variants of a layer are tried (default: normal)"),
    )
    parser.add_argument(
        "--precision",
        choices=("fp32", "fp16"),
        help=tr("precision to tune (default: as in the file)"),
    )
    parser.add_argument(
        "--import",
        dest="field_results",
        metavar="REPORT",
        help=tr("use the results of `lite doctor --field-report` from the same device and driver"),
    )


def _call(args: argparse.Namespace) -> Tuning | Adopted:
    from lite_engine import doctor
    from lite_engine.runtime import Predictor
    from lite_engine.runtime.tune import tune

    if bool(args.model) == bool(args.field_results):
        raise UsageError(tr("expected either MODEL or --import REPORT (see `lite tune --help`)"))
    if args.field_results:
        return doctor.adopt(doctor.read(Path(args.field_results)))
    if args.backend == "cpu":
        return _forms(args)
    if args.output:
        raise UsageError(
            tr("-o is for --backend cpu"),
            fix=tr("to save what OpenCL measures in a file, use `lite convert --tune`"),
        )
    predictor = Predictor(load_model(args), "opencl", precision=args.precision)
    done = tune(predictor, args.effort)
    return Tuning(done.measured, done.known)


def _forms(args: argparse.Namespace) -> Tuning:
    from lite_engine.profile.forms import tune_forms
    from lite_engine.runtime import Predictor, host_target

    if not args.output:
        raise UsageError(
            tr("with --backend cpu, the choices must be saved in a file"),
            fix=tr("name it with -o FILE"),
        )
    if args.precision not in (None, "fp32"):
        raise UsageError(tr("--precision {name} is for OpenCL", name=args.precision))
    model = load_model(args)
    measured = tune_forms(Predictor(model, host_target()))
    return Tuning(measured, 0, model.save(Path(args.output)))


def _show(result: Tuning | Adopted, args: argparse.Namespace) -> str:
    if isinstance(result, Tuning):
        return _show_measured(result)
    lines = [
        tr(
            "{kernel} ({variant}) is no longer used: {detail}",
            kernel=f.kernel,
            variant=f.variant or tr("only variant"),
            detail=f.detail,
        )
        for f in result.failures
    ]
    lines += [f"{size}: {way}" for size, way in result.tuning.items()]
    lines.append(
        tr(
            "{device}: imported {variants} and {sizes}; {known} known already",
            device=result.device,
            variants=trn("{n} failed variant", "{n} failed variants", len(result.failures)),
            sizes=trn("{n} measured size", "{n} measured sizes", len(result.tuning)),
            known=result.known,
        )
    )
    return "\n".join(lines)


def _show_measured(result: Tuning) -> str:
    changed = [m for m in result.measured if m.way != m.before]
    rows = [
        [m.layer, m.before, m.way, f"{m.seconds[m.before] / m.seconds[m.way]:.2f}x", len(m.seconds)]
        for m in changed
    ]
    lines = [
        table([tr("layer"), tr("before"), tr("now"), tr("faster"), tr("tried")], rows, right=(3, 4))
    ]
    lines = lines if rows else []
    if result.path is not None:
        sizes = trn("{n} layer", "{n} layers", len(result.measured))
        lines.append(
            tr("{layers} with many zeros measured, {changed} changed. Wrote {path}", layers=sizes,
               changed=len(changed), path=result.path)
        )  # fmt: skip
        return "\n".join(lines)
    lines.append(
        tr(
            "{sizes} of layers measured, {changed} changed; {known} known already. "
            "Saved for all models on this device and driver.",
            sizes=trn("{n} size", "{n} sizes", len(result.measured)),
            changed=len(changed),
            known=result.known,
        )
    )
    return "\n".join(lines)


def _dict(result: Tuning | Adopted) -> Mapping[str, Any]:
    return result.to_dict()


COMMAND = Command("tune", _configure, _call, _show, data=_dict, rewrites=True)
