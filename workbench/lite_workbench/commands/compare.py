"""`lite compare`: layer by layer, which one is wrong."""

from __future__ import annotations

import argparse
from typing import Any

from ._base import (
    Command,
    add_device,
    add_json,
    add_model,
    load_model,
    wants_json_only,
    write_json,
)
from ._table import clip, table


def _configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("other", nargs="?", metavar="OTHER", help="a second model to compare with")
    parser.add_argument(
        "--backends",
        default="reference,x86",
        metavar="A,B",
        help="A is the trusted side (reference,x86)",
    )
    parser.add_argument("--precision", metavar="A,B", help="storage of float values per side")
    parser.add_argument("--threads", type=int, metavar="N")
    parser.add_argument("--input", action="append", default=[], metavar="[NAME=]FILE")
    parser.add_argument(
        "--random-inputs", type=int, default=1, metavar="N", help="seeds to try (1)"
    )
    parser.add_argument(
        "--tolerance", type=float, metavar="E", help="relative L2 error for every layer"
    )
    parser.add_argument("--layers", metavar="NAME,…", help="only these layers")
    parser.add_argument("--until", metavar="NAME", help="stop after this layer")
    parser.add_argument(
        "--isolated",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="also each layer alone, fed with A's values (on)",
    )
    add_device(parser)
    add_json(parser)


def _call(args: argparse.Namespace) -> Any:
    from lite_engine.devices import find_device
    from lite_engine.errors import UsageError
    from lite_engine.runtime import Predictor
    from lite_engine.runtime.compare import Side, compare
    from lite_engine.runtime.inputs import random_feeds, read_feeds

    names = [b.strip() for b in args.backends.split(",")]
    if len(names) != 2:
        raise UsageError(f"--backends needs two, like x86,opencl; got {args.backends!r}")
    precisions = (args.precision or "fp32,fp32").split(",")
    precisions = precisions * 2 if len(precisions) == 1 else precisions
    model = load_model(args)
    other = model
    if args.other:
        other = load_model(argparse.Namespace(model=args.other, params=None, shape=args.shape))
    sides = []
    for m, backend, precision in zip((model, other), names, precisions, strict=True):
        label = backend if precision == "fp32" else f"{backend} {precision}"
        device = None if backend in ("reference", "opencl") else find_device(args.device)
        predictor = Predictor(m, backend, threads=args.threads, precision=precision, device=device)
        sides.append(Side(predictor, label if m is model else f"{m.name} {label}"))
    result = None
    for seed in range(1 if args.input else max(1, args.random_inputs)):
        feeds = read_feeds(model, args.input) if args.input else random_feeds(model.graph, seed)
        result = compare(
            *sides,
            feeds,
            tolerance=args.tolerance,
            isolated=args.isolated,
            layers=args.layers.split(",") if args.layers else None,
            until=args.until,
        )
        if not result.agrees:
            break
    return result


def _show(result: Any, args: argparse.Namespace) -> str:
    if args.json:
        write_json(result.to_dict(), args.json)
        if wants_json_only(args):
            return ""
    rows = [
        [
            x.index,
            clip(x.name, 40),
            x.op,
            f"{x.rel_l2:.1e}",
            f"{x.isolated['rel_l2']:.1e}" if x.isolated else "–",
            f"{x.max_abs:.1e}",
            f"{x.cosine:.6f}",
            "–" if x.sqnr_db is None else f"{x.sqnr_db:.1f}",
            "" if x.within else "WRONG",
            clip(" + ".join(x.sources), 40),
        ]
        for x in result.layers
    ]
    head = [
        "#",
        "layer",
        "op",
        "accumulated",
        "isolated",
        "max abs",
        "cosine",
        "SQNR dB",
        "",
        "from",
    ]
    return "\n".join([table(head, rows, right=(0, 3, 4, 5, 6, 7)), "", result.verdict])


COMMAND = Command(
    "compare",
    "layer by layer: which one is wrong",
    _configure,
    _call,
    _show,
    lambda result, args: 0 if result.agrees else 1,
)
