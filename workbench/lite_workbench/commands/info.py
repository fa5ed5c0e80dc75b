"""`lite info`: what a model is made of and where it can run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from lite_engine.terminal import printable
from lite_messages import tr, trn
from rich.cells import set_cell_size

from ..words import number
from ._base import Command, add_model
from ._table import clip, table

if TYPE_CHECKING:
    from lite_engine.runtime.support import ModelInfo, Support


_NAMES = 6  # weights named in one line


def _configure(parser: argparse.ArgumentParser) -> None:
    add_model(parser)
    parser.add_argument("--layers", action="store_true", help=tr("list every layer"))
    parser.add_argument(
        "--optimized", action="store_true", help=tr("show the optimized model, as it will run")
    )
    parser.add_argument(
        "--plugins", default="", metavar="NAMES",
        help=tr("also show which operators these backends of installed packages take, like a,b"),
    )  # fmt: skip


def _call(args: argparse.Namespace) -> ModelInfo:
    from pathlib import Path

    from lite_engine.importers import load
    from lite_engine.model_file import is_lite, optimize, read_model, with_shapes
    from lite_engine.model_file.precision import DEFAULT_TARGETS
    from lite_engine.runtime.support import model_info

    path, shapes = Path(args.model), dict(args.shape)
    targets = (*DEFAULT_TARGETS, *(name for name in args.plugins.split(",") if name))
    if is_lite(path):
        model = with_shapes(read_model(path), shapes)
        info = model_info(model.described_graph(), path.name, targets)
        info.targets = model.describe()
        return info
    graph = load(path, params=args.params, shapes=shapes)
    if args.optimized:
        graph = optimize(graph).graph
    return model_info(graph, path.name, targets)


def _show(info: ModelInfo, args: argparse.Namespace) -> str:
    lines = [*_head(info), "", _operators(info), *_reasons(info.support)]
    if args.layers:
        lines += ["", _layers(info)]
    for names in info.duplicates:
        lines.append(tr("duplicate weights: {names}", names=", ".join(names)))
    if info.dead_weights:
        more = len(info.dead_weights) - _NAMES
        some = ", ".join(info.dead_weights[:_NAMES]) + (
            tr(" and {more} more", more=more) if more > 0 else ""
        )
        lines.append(tr("unused weights: {some}", some=some))
    lines += [tr("hint: {hint}", hint=h) for h in info.hints]
    return "\n".join(lines)


def _head(info: ModelInfo) -> list[str]:
    """What the model is, what it takes and gives, what its file carries."""
    from lite_engine.model_file import TRAVELLING

    macs = tr("MACs unknown") if info.macs is None else number(info.macs, "MACs")
    if info.assumed and info.macs is not None:
        sizes = ", ".join("×".join(map(str, dims)) for dims in info.assumed.values())
        macs += tr(" at {sizes}", sizes=sizes)
    return [
        tr(
            "{model} ({format}): {layers}, {params} parameters, {weights} of weights, {macs}",
            model=info.name,
            format=info.format,
            layers=trn("{n} layer", "{n} layers", len(info.layers)),
            params=number(info.params),
            weights=number(info.weight_bytes, "B"),
            macs=macs,
        ),
        *(
            tr(
                "  input   {name}: {type}",
                name=printable(p["name"]),
                type=f"{p['dtype']} {p['text']}",
            )
            for p in info.inputs
        ),
        *(
            tr(
                "  output  {name}: {type}",
                name=printable(p["name"]),
                type=f"{p['dtype']} {p['text']}",
            )
            for p in info.outputs
        ),
        *(tr("  target  {target}", target=_target(t)) for t in info.targets),
        *(
            f"  {set_cell_size(_word(k), 10)}  {_carried(info.metadata[k])}"
            for k in TRAVELLING
            if k in info.metadata
        ),
    ]


def _operators(info: ModelInfo) -> str:
    """Which operators, what the passes make of them, and which target has them."""
    targets = list(dict.fromkeys(s.target for s in info.support))
    has = {(s.op, s.target): s.runs_on for s in info.support}
    rows = [
        [op, n, info.becomes.get(op, ""), *(has[op, t] for t in targets)]
        for op, n in info.operators.items()
    ]
    return table([tr("operator"), tr("uses"), tr("becomes"), *targets], rows, right=(1,))


def _layers(info: ModelInfo) -> str:
    """With the share of zeros where a layer has many: it may run sparse kernels."""
    sparse = any(x.zeros >= 0.5 and x.params > 1000 for x in info.layers)
    rows = [
        [x.index, clip(x.name, 40), x.op, x.output, number(x.params), number(x.weight_bytes, "B"),
         "–" if x.macs is None else number(x.macs), *[f"{x.zeros:.0%}"] * sparse]
        for x in info.layers
    ]  # fmt: skip
    head = ["#", tr("layer"), "op", tr("output"), "params", tr("weights"), "MACs"]
    if sparse:
        head.append(tr("zeros"))
    return table(head, rows, right=(0, *range(4, len(head))))


#: Keys and words of what travels with a model, for people.
_WORDS = {
    "preprocess": tr("preprocess"), "labels": tr("labels"), "adapter": tr("adapter"),
    "colour": tr("colour"), "grey": tr("grey"), "layout": tr("layout"), "mean": tr("mean"),
    "std": tr("std"), "size": tr("size"), "fit": tr("fit"), "crop": tr("crop"),
    "stretch": tr("stretch"), "letterbox": tr("letterbox"), "height": tr("height"),
    "pad": tr("pad"), "kind": tr("kind"),
}  # fmt: skip


def _word(word: Any) -> Any:
    return _WORDS.get(word, word) if isinstance(word, str) else word


def _carried(said: Any) -> str:
    """Pictures' preparation, or labels, in one line; what is neither as it is."""
    if isinstance(said, dict):
        words = {k: ", ".join(map(str, v)) if isinstance(v, list) else v for k, v in said.items()}
        return "; ".join(f"{_word(k)} {_word(v)}" for k, v in words.items() if v not in (None, ""))
    if not isinstance(said, list):
        return clip(str(said), 60)
    return f"{len(said)}: {clip(', '.join(map(str, said[:20])), 60)}"


def _target(said: dict[str, Any]) -> str:
    """One line: precision, layers, what was set by hand."""
    parts = [
        f"{said['target']}: {said['precision']}, " + trn("{n} layer", "{n} layers", said["layers"])
    ]
    parts += [
        tr("{layer} overridden: {word}", layer=layer, word=word)
        for layer, word in said["set"].items()
    ]
    if said["tuned_devices"]:
        parts.append(trn("tuned on {n} device", "tuned on {n} devices", said["tuned_devices"]))
    return "; ".join([*parts, said["note"]] if said["note"] else parts)


def _reasons(support: list[Support]) -> list[str]:
    """One line for each reason: operator, targets, why not, what then."""
    targets: dict[tuple[str, str, str], list[str]] = {}
    for s in support:
        if not s.supported:
            targets.setdefault((s.op, s.reason, s.fix), []).append(s.target)
    return [
        *([""] if targets else []),
        *(
            tr("{op} on {targets}: {why}; {fix}", op=op, targets=", ".join(t), why=why, fix=fix)
            for (op, why, fix), t in targets.items()
        ),
    ]


COMMAND = Command("info", _configure, _call, _show, data=lambda result: result.to_dict())
