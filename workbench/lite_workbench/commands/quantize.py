"""`lite quantize`: int8 by calibration, or integer weights alone, checked against the float one."""

from __future__ import annotations

import argparse
import json
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from lite_engine.files import write_file
from lite_messages import tr

from ._base import Command, at_least, backend_word, decibels, positive, share
from ._compress import add_compression, check_samples, opened, within_budget
from ._quantize_options import command_of, options_of, repeated
from ._quantized import QuantizeResult, exit_code, show_quantized
from ._weights_only import constant_bytes, weights_only
from .evaluate import add_cluster, cluster_of, dataset_of

if TYPE_CHECKING:
    from lite_engine.model_file import Model
    from lite_engine.quantize import Quantized

    from ..quantizing import FastRun


METHODS = ("auto", "kl", "minmax", "hist", "mse", "avg")
METHODS_INT4 = ("nearest", "gptq", "awq")


def _configure(parser: argparse.ArgumentParser) -> None:
    add_compression(
        parser,
        max_drop=tr(
            "what the metric of --data may lose against the float model: points, like 0.5%%, or "
            "0.5dB of PSNR; layers go back to float until it loses no more"
        ),
    )
    add_cluster(parser)
    parser.add_argument(
        "--method", default="auto", choices=(*METHODS, *METHODS_INT4),
        help=tr("calibration method, or rounding method of int4 weights: nearest, gptq, awq "
                "(default: auto)"),
    )  # fmt: skip
    parser.add_argument(
        "--weights-only",
        choices=("int4", "int8", "int16"),
        help=tr("quantize only the weights; int4 can use --calibration"),
    )
    parser.add_argument(
        "--group", type=int, choices=(16, 32, 64, 128, 256), metavar="N",
        help=tr("how many int4 weights share a scale (default: 64)"),
    )  # fmt: skip
    parser.add_argument(
        "--asymmetric",
        action="store_true",
        help=tr("store a zero point for each group of int4 weights"),
    )
    parser.add_argument(
        "--keep-float",
        default="",
        metavar="LAYER,A..B,…",
        help=tr("layers to keep in float; A..B stands for all layers from A to B"),
    )
    parser.add_argument(
        "--target-db", type=decibels, metavar="DB",
        help=tr("keep the worst layers in float until the outputs reach this SQNR"),
    )  # fmt: skip
    parser.add_argument(
        "--target-top1",
        type=share,
        metavar="SHARE",
        help=tr(
            "keep the worst layers in float until this share of samples has the "
            "float model's top-1 class"
        ),
    )
    parser.add_argument(
        "--max-bytes", type=at_least(1), metavar="N",
        help=tr("size limit of the weights for --target-db and --target-top1"),
    )  # fmt: skip
    parser.add_argument(
        "--float-budget", type=positive, default=0.15, metavar="SHARE",
        help=tr("slowdown allowed for layers kept in float (default: 0.15)"),
    )  # fmt: skip
    parser.add_argument(
        "--measure", type=backend_word, metavar="BACKEND",
        help=tr("measure that slowdown on a backend of this machine, like opencl "
                "(default: estimate it)"),
    )  # fmt: skip
    parser.add_argument(
        "--trade-off", metavar="FILE.json",
        help=tr("write the accuracy/latency curve; an existing file is continued"),
    )  # fmt: skip
    parser.add_argument(
        "--repeat",
        metavar="FILE.json:K",
        help=tr("use the options of point K of a --trade-off file"),
    )
    parser.add_argument(
        "--resume", metavar="FILE.npz",
        help=tr("save the calibration to this file on Ctrl-C, and continue from it"),
    )  # fmt: skip
    parser.add_argument(
        "--activations",
        default="u8",
        choices=("u8", "i8"),
        help=tr("integer type of activations (default: u8)"),
    )
    parser.add_argument(
        "--symmetric",
        action="store_true",
        help=tr("use symmetric ranges, with the zero point in the middle of the type"),
    )
    parser.add_argument(
        "--rounding",
        default="auto",
        choices=("auto", "nearest", "sums", "adaptive", "learned"),
        help=tr("rounding of weights (default: auto)"),
    )
    parser.add_argument(
        "--equalize", action=argparse.BooleanOptionalAction, default=True,
        help=tr("apply cross-layer equalization first (default: on)"),
    )  # fmt: skip
    parser.add_argument(
        "--analyze",
        metavar="FILE.json",
        help=tr("write ranges, errors and sensitivity of every layer"),
    )


def _call(args: argparse.Namespace) -> QuantizeResult:
    from lite_engine.errors import UsageError
    from lite_engine.quantize import Options

    model = opened(args)
    if args.weights_only:
        return weights_only(model, args)
    if args.method in METHODS_INT4 or args.group or args.asymmetric:
        raise UsageError(
            tr("--group, --asymmetric and the methods {methods} are for int4 weights",
               methods=", ".join(METHODS_INT4)),
            fix=tr("add --weights-only int4"),
        )  # fmt: skip
    check_samples(args, tr("without samples, use --weights-only int8"))
    aims = (args.target_db, args.target_top1, args.max_bytes, args.trade_off, args.data)
    if args.measure and not any(aims):
        raise UsageError(
            tr("--measure is for layers that go back to float"),
            fix=tr("add a target, like --target-db 25, or --data DATASET"),
        )
    if args.float_budget != Options.float_budget and not any(aims):
        raise UsageError(
            tr("--float-budget is for layers that go back to float"),
            fix=tr("add a target, like --target-db 25, or --data DATASET"),
        )
    return _static(model, args)


def _static(model: Model, args: argparse.Namespace) -> QuantizeResult:
    from lite_engine.errors import UsageError
    from lite_engine.lines import read_labels
    from lite_engine.quantize import Calibration, Curve, quantize

    from ..budget import require
    from ..quantize_shards import calibrator
    from ..quantizing import (
        FastRun,
        LatencyOn,
        calibration,
        float_graph,
        model_from,
        same_answers,
    )
    from ._first_look import say_first

    cluster = cluster_of(args)
    if cluster.used and args.resume:
        raise UsageError(
            tr("--resume needs a calibration in this process"), fix=tr("leave out --workers")
        )
    options = repeated(args.repeat) if args.repeat else options_of(args)
    state = Path(args.resume) if args.resume else None
    say_first(model, lambda: args.calibration or dataset_of(args), args)
    run, graph = FastRun(), float_graph(model)
    searches = options.searches or args.trade_off or args.data
    latency = LatencyOn(model, options.measure) if options.measure and searches else None
    search = within_budget(model, args, float_budget=args.float_budget, latency=latency)
    source = search.calibrating if search and search.calibrating else args.calibration
    with _interrupted(state is not None) as (cancel, end):

        def keep(seen: Calibration) -> None:
            if state:
                seen.save(state)
            end()
            if cancel is not None and cancel():
                raise KeyboardInterrupt(
                    tr(
                        "stopped after {samples} samples; run the same command again "
                        "to continue from {state}",
                        samples=seen.samples,
                        state=state,
                    )
                )

        made = quantize(
            graph, calibration(graph, source), options, run=run,
            force=args.force or args.max_drop is not None,
            cancel=cancel, resume=Calibration.load(state) if state and state.exists() else None,
            calibrated=keep, calibrator=calibrator(cluster) if cluster.used else None,
            curve=Curve(args.trade_off) if args.trade_off else None, latency=latency,
        )  # fmt: skip
    if args.analyze:
        _analyze(made, run, args.analyze)
    budget = search.search(made) if search else None
    if not args.force:
        require(budget, made)
    quantised = model_from(made.finished().graph, model)
    quantised.metadata["quantized_by"] = command_of(args, options)
    out = quantised.save(args.output)
    labels = read_labels(args.labels) if args.labels else None
    facts = {
        **made.to_dict(), "budget": asdict(budget) if budget else None,
        "same_answers": same_answers([model, quantised], made.held, labels),
    }  # fmt: skip
    return QuantizeResult(out, quantised, facts, constant_bytes(model.graph))


@contextmanager
def _interrupted(wanted: bool) -> Iterator[tuple[Callable[[], bool] | None, Callable[[], None]]]:
    """A question whether Ctrl-C was pressed meanwhile, and what gives Ctrl-C back its usual meaning
    before the block ends. Unless wanted, Ctrl-C has its usual meaning all the time."""
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield None, lambda: None
        return
    pressed = threading.Event()
    before = signal.signal(signal.SIGINT, lambda *_: pressed.set())

    def end() -> None:
        signal.signal(signal.SIGINT, before)

    try:
        yield pressed.is_set, end
    finally:
        end()


def _analyze(made: Quantized, run: FastRun, path: str) -> None:
    from lite_engine.quantize import analyze

    graph, ranges, _ = made.finished()
    data = analyze(
        made.parent, graph, made.calibration, ranges, made.options.scheme, made.held[:4],
        run=run, biases=made.biases,
    )  # fmt: skip
    write_file(path, json.dumps(data, indent=1) + "\n")


COMMAND = Command(
    "quantize",
    _configure,
    _call,
    show_quantized,
    code=exit_code,
    data=lambda result: result.to_dict(),
)
