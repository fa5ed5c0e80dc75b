"""`lite quantize --weights-only`: integer weights, activations in float."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from lite_messages import tr

from ._quantized import QuantizeResult

if TYPE_CHECKING:
    from lite_engine.ir import Graph
    from lite_engine.model_file import Model
    from lite_engine.quantize import Int4Weights

#: Options that say what is done with samples, or how activations are quantized.
_OF_SAMPLES = ("calibration", "data", "max_drop", "samples", "target_db", "target_top1",
               "max_bytes", "trade_off", "repeat", "resume", "analyze", "measure",
               "symmetric", "workers", "scheduler")  # fmt: skip
_OF_INT4 = ("calibration", "samples")


def weights_only(model: Model, args: argparse.Namespace) -> QuantizeResult:
    """Raises UsageError, CalibrationError, LiteError when there is nothing to quantize."""
    from lite_engine.errors import LiteError, UsageError
    from lite_engine.quantize import Options, named_layers, quantize_weights

    from ..quantizing import model_from

    four = args.weights_only == "int4"
    unused = [n for n in _OF_SAMPLES if getattr(args, n) and not (four and n in _OF_INT4)]
    unused += ["method"] * (not four and args.method != "auto")
    usual = Options()
    unused += [n for n in ("rounding", "float_budget") if getattr(args, n) != getattr(usual, n)]
    unused += ["activations"] * (args.activations != usual.scheme.activation)
    unused += ["no-equalize"] * (args.equalize != usual.equalize)
    if unused:
        idle = ", ".join(f"--{name.replace('_', '-')}" for name in unused)
        raise UsageError(
            tr("--weights-only {bits} does not use {idle}", bits=args.weights_only, idle=idle),
            fix=tr("leave out {idle}", idle=idle),
        )
    if not four and (args.group or args.asymmetric):
        raise UsageError(
            tr("--group and --asymmetric are for int4 weights"), fix=tr("use --weights-only int4")
        )
    before = constant_bytes(model.graph)
    facts: dict[str, Any] = {"weights_only": int(args.weights_only.removeprefix("int"))}
    keep = named_layers(model.graph, (k for k in args.keep_float.split(",") if k))
    if four:
        made = _int4(model, args, keep)
        facts.update(made.to_dict())
        model = model_from(made.graph, model)
    else:
        model.graph = quantize_weights(model.graph, facts["weights_only"], keep=keep)
        if constant_bytes(model.graph) == before:
            raise LiteError(tr("no layer has float weights that can be stored as integers"))
    return QuantizeResult(model.save(args.output), model, facts, before)


def _int4(model: Model, args: argparse.Namespace, keep: frozenset[str]) -> Int4Weights:
    from lite_engine.quantize import Groups, quantize_weights_int4

    from ..quantizing import FastRun, calibration, float_graph

    graph = float_graph(model)
    return quantize_weights_int4(
        graph,
        Groups(args.group or Groups().size, not args.asymmetric),
        source=calibration(graph, args.calibration) if args.calibration else None,
        method=args.method,
        run=FastRun(),
        keep=keep,
        limit=args.samples,
        force=args.force,
    )


def constant_bytes(graph: Graph) -> int:
    """Bytes of a graph's constants."""
    return sum(v.const.nbytes for v in graph.constants() if v.const is not None)
