"""`lite convert`: any model → one `.lite` file for every target."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_engine.errors import UsageError
from lite_engine.files import keep_inputs
from lite_messages import tr, trn

from ..names import stem_of, with_ending
from ..words import number
from ._base import (
    ADAPTER_HELP,
    PREPROCESS_HELP,
    Command,
    add_effort,
    add_shape,
    add_ship_kernels,
    add_targets,
    lite_name,
)

if TYPE_CHECKING:
    from lite_engine.compare.difference import Difference
    from lite_engine.ir import Graph
    from lite_engine.model_file import Model
    from lite_engine.runtime.warm import Warmed


#: Networks with more multiply-accumulates take minutes where the target's CPU is emulated.
EMULATED_MACS = 1_000_000_000


@dataclass
class Converted:
    """A written file, the model in it, what the passes did; for targets in fp16 or bf16, what that
    costs (output → Difference) or why it was not measured; why targets have no program."""

    path: Path
    model: Model
    source_layers: int
    losses: dict[str, str | dict[str, Difference]]
    notes: dict[str, str]
    warmed: Warmed | None = None

    def to_dict(self) -> dict[str, Any]:
        return {
            "file": str(self.path),
            "bytes": self.path.stat().st_size,
            "targets": self.model.targets,
            "precisions": self.model.precisions,
            "layers_set": self.model.overrides,
            "layers": {"source": self.source_layers, "optimized": len(self.model.graph.nodes)},
            "precision_loss": {
                target: loss
                if isinstance(loss, str)
                else {name: {"rel_l2": d.rel_l2, "max_abs": d.max_abs} for name, d in loss.items()}
                for target, loss in self.losses.items()
            },
            "notes": self.notes,
            "journal": self.model.journal.to_dict(),
            "warmed": self.warmed.to_dict() if self.warmed else None,
        }

    def loss_lines(self) -> list[str]:
        lines = []
        for target, loss in self.losses.items():
            which = f"{target} {self.model.precision(target)}"
            if isinstance(loss, str):
                lines.append(
                    tr("{which} against fp32: not measured ({loss})", which=which, loss=loss)
                )
                continue
            worst = max(loss, key=lambda name: loss[name].rel_l2)
            name = (
                tr("output {worst}", worst=worst)
                if len(loss) == 1
                else tr("worst output {worst}", worst=worst)
            )
            lines.append(
                tr(
                    "{which} against fp32: {name} differs by {error:.1e} (relative "
                    "L2, random input), at most by {max_abs:.1e}",
                    which=which,
                    name=name,
                    error=loss[worst].rel_l2,
                    max_abs=loss[worst].max_abs,
                )
            )
        return lines


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model",
        metavar="MODEL",
        help=tr("a model file or folder, or a .lite file to convert for other targets"),
    )
    parser.add_argument(
        "--params", metavar="FILE", help=tr("the weights file, for formats with two files")
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="OUT.lite",
        type=lite_name,
        help=tr(
            "file to write (default: the model's name with .lite); a .lite file may be replaced "
            "by its own conversion"
        ),
    )
    add_targets(parser)
    parser.add_argument(
        "--precision",
        metavar="P",
        help=tr("fp32 (the default), fp16, bf16, int8, or per target: opencl=fp16,arm=int8"),
    )
    parser.add_argument(
        "--calibration", metavar="DIR|FILE", help=tr("calibration samples for int8 targets")
    )
    parser.add_argument(
        "--quantized", metavar="FILE", help=tr("a quantized version of the model, for int8 targets")
    )
    add_shape(parser)
    parser.add_argument(
        "--layer",
        action="append",
        default=[],
        metavar="[TARGET:]LAYER=WHAT",
        help=tr(
            "override a layer's backend (cpu, opencl, reference), precision (fp32, "
            "fp16, bf16) or kernel; `plan` removes the override"
        ),
    )
    parser.add_argument(
        "--passes", default="", metavar="NAMES",
        help=tr("passes of installed packages to run before anything is fused, like a,b"),
    )  # fmt: skip
    parser.add_argument(
        "--plugins", default="", metavar="NAMES",
        help=tr("keep sub-graphs for these backends of installed packages, which `lite_run "
                "--library` loads"),
    )  # fmt: skip
    add_ship_kernels(parser)
    parser.add_argument(
        "--outputs", default="", metavar="NAMES",
        help=tr("end the model at these values or layers, separated by commas"),
    )  # fmt: skip
    parser.add_argument(
        "--activations",
        choices=("float", "dynamic"),
        default="float",
        help=tr(
            "dynamic: layers of a dynamic-range TFLite model quantize their inputs at run "
            "time, as LiteRT does"
        ),
    )
    parser.add_argument(
        "--labels", metavar="FILE", help=tr("class labels to store in the file, one per line")
    )
    parser.add_argument("--preprocess", metavar="HOW", help=PREPROCESS_HELP)
    parser.add_argument("--adapter", metavar="HOW", help=ADAPTER_HELP)
    parser.add_argument(
        "--journal",
        action="store_true",
        help=tr("show every graph rewrite, and every refusal with its reason"),
    )
    add_effort(
        parser,
        tr(
            "measure the OpenCL variants of each layer on this machine's device and store "
            "the results in the file: rapid, normal or exhaustive"
        ),
    )
    parser.add_argument(
        "--tunable",
        action="store_true",
        help=tr(
            "store more OpenCL variants of each layer, so that `lite_run --tune` can choose "
            "the fastest on a device without Python"
        ),
    )
    parser.add_argument(
        "--warm",
        action="store_true",
        help=tr("also compile the OpenCL kernels for this machine's device, for a fast first run"),
    )


def _call(args: argparse.Namespace) -> Converted:
    from lite_engine.importers import end_at, load
    from lite_engine.model_file import (
        is_lite,
        optimize,
        parse_layers,
        parse_precisions,
        parse_targets,
        read_model,
        retarget,
        with_int8,
        with_layers,
        with_outputs,
        with_shapes,
    )
    from lite_engine.model_file.precision import DEFAULT_TARGETS
    from lite_engine.runtime.warm import warm

    source = Path(args.model)
    out = Path(args.output) if args.output else with_ending(stem_of(source), ".lite")
    if not args.output and not is_lite(source):  # a name without -o may be the model's own
        keep_inputs(out, [source], "--output")
    targets, known = parse_targets(args.targets), None
    ends = [name for name in args.outputs.split(",") if name]
    if is_lite(source):
        if args.activations != "float":
            raise UsageError(
                tr("{source} is converted already", source=source),
                fix=tr("use --activations with the .tflite file"),
            )
        known = with_outputs(with_shapes(read_model(source), dict(args.shape)), ends)
        graph, targets = known.graph, targets or known.targets
    else:
        graph = load(
            source, params=args.params, shapes=dict(args.shape), activations=args.activations
        )
        if ends:
            end_at(graph, ends)
    targets = targets or list(DEFAULT_TARGETS)
    if args.warm and "opencl" not in targets:
        raise UsageError(tr("--warm compiles OpenCL kernels"), fix=tr("add opencl to --targets"))
    if args.tunable and "opencl" not in targets:
        raise UsageError(tr("--tunable is for OpenCL"), fix=tr("add opencl to --targets"))
    metadata = _metadata(args, (known or graph).metadata)
    precision = parse_precisions(args.precision or "", targets) if args.precision else {}
    made = _int8_later(args, [t for t, p in precision.items() if p == "int8"])
    now = {t: p for t, p in precision.items() if t not in made}
    if known is not None:
        model = retarget(known, targets=targets, precision=now, metadata=metadata)
    else:
        model = optimize(
            graph,
            targets=targets,
            precision=now,
            metadata=metadata,
            passes=[name for name in args.passes.split(",") if name],
        )
        model.path = source
    if made:
        model = with_int8(model, _int8_graph(model, args), made)
    model = with_layers(model, parse_layers(args.layer, model.targets))
    if args.tune:
        from lite_engine.runtime import Predictor
        from lite_engine.runtime.tune import tune

        tune(Predictor(model, "opencl"), args.tune)
    plugins = [name for name in args.plugins.split(",") if name]
    model.save(out, ship_kernels=args.ship_kernels, tunable=args.tunable, backends=plugins)
    warmed = warm(model) if args.warm else None
    return Converted(
        out, model, len(graph.nodes), _losses(model, out), read_model(out).notes, warmed
    )


def _losses(model: Model, path: Path) -> dict[str, str | dict[str, Difference]]:
    """What fp16 and bf16 cost, by target, or why it was not measured."""
    from lite_engine.compare.precision_loss import LOWER, precision_loss
    from lite_engine.errors import LiteError
    from lite_engine.model_file.precision import computed
    from lite_engine.runtime import host_target, usability
    from lite_engine.runtime.support import node_macs

    out: dict[str, str | dict[str, Difference]] = {}
    for target in model.targets:
        if computed(target, model.precision(target)) not in LOWER:
            continue
        state = usability(target)
        emulated = target not in (host_target(), "opencl")
        if not state.usable:
            out[target] = state.reason
        elif emulated and sum(node_macs(n) or 0 for n in model.graph.nodes) > EMULATED_MACS:
            out[target] = tr(
                "takes long under emulation; to measure: lite compare {path} --backends"
                " {target},{target} --precision fp32,{precision}",
                path=path,
                target=target,
                precision=model.precision(target),
            )
        else:
            try:
                out[target] = precision_loss(model, target)
            except LiteError as error:
                out[target] = str(error)
    return out


def _int8_later(args: argparse.Namespace, targets: list[str]) -> list[str]:
    """The int8 targets whose graph is made here, from samples or another file.

    Raises UsageError for samples that nothing needs."""
    if not args.calibration and not args.quantized:
        return []  # the model holds integers already, or the conversion says what is missing
    if not targets or (args.calibration and args.quantized):
        raise UsageError(
            tr("--calibration and --quantized are for int8 targets: add --precision arm=int8")
        )
    return targets


def _int8_graph(model: Model, args: argparse.Namespace) -> Graph:
    """The quantised graph from --quantized or --calibration. Raises LiteError."""
    from lite_engine.model_file import open_model
    from lite_engine.model_file.changes import in_float

    from ..quantizing import calibrated

    if args.quantized:
        return open_model(args.quantized).graph_in("int8")
    return calibrated(in_float(model), args.calibration).graph


def _metadata(args: argparse.Namespace, read: Mapping[str, Any]) -> dict[str, Any]:
    """What the arguments say beside what was `read` from the file. Raises UsageError."""
    out: dict[str, Any] = {}
    if args.labels:
        from lite_engine.lines import read_labels

        out["labels"] = read_labels(args.labels)
    if args.preprocess:
        from lite_engine.preprocess import Preprocess

        known = read.get("preprocess")
        out["preprocess"] = Preprocess.parse(args.preprocess, known).to_dict()
    if args.adapter:
        from lite_engine.adapter import Adapter

        out["adapter"] = Adapter.parse(args.adapter).to_dict()
    return out


def _show(result: Converted, args: argparse.Namespace) -> str:
    lines = [str(e) for e in result.model.journal.entries] if args.journal else []
    targets = ", ".join(f"{t} {result.model.display_precision(t)}" for t in result.model.targets)
    lines.append(
        tr(
            "wrote {path} ({size}): {targets}; {layers} became {count}",
            path=result.path,
            size=number(result.path.stat().st_size, "B"),
            targets=targets,
            layers=trn("{n} layer", "{n} layers", result.source_layers),
            count=len(result.model.graph.nodes),
        )
    )
    lines += result.loss_lines()
    lines += [f"{t}: {result.notes[t]}" for t in result.model.targets if t in result.notes]
    lines += [str(result.warmed)] if result.warmed else []
    return "\n".join(lines)


COMMAND = Command(
    "convert", _configure, _call, _show, data=lambda result: result.to_dict(), rewrites=True
)
