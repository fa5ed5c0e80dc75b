"""`lite edit`: cut, resize, rename, replace, and write ONNX or `.lite`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_engine.errors import UsageError
from lite_messages import tr, trn

from ..editing import Edited
from ..words import number
from ._base import PREPROCESS_HELP, Command, add_shape, at_least

if TYPE_CHECKING:
    from lite_engine.edit import Refusal, Resized
    from lite_engine.ir import Graph


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help=tr("a model file or folder"))
    parser.add_argument(
        "--params", metavar="FILE", help=tr("the weights file, for formats with two files")
    )
    parser.add_argument(
        "-o",
        "--output",
        required=True,
        metavar="OUT.onnx",
        help=tr("the file to write, .onnx or .lite"),
    )
    parser.add_argument(
        "--inputs",
        default="",
        metavar="NAMES",
        help=tr("start the model at these values, separated by commas"),
    )
    parser.add_argument(
        "--outputs",
        default="",
        metavar="NAMES",
        help=tr("end the model at these values or layers, separated by commas"),
    )
    parser.add_argument(
        "--layers",
        default="",
        metavar="NAMES",
        help=tr("keep these layers only, separated by commas"),
    )
    add_shape(parser, tr("change the shape of an input, like x:1x3x320x320; repeatable"))
    parser.add_argument(
        "--batch", type=at_least(1), metavar="N", help=tr("change the first size of every input")
    )
    parser.add_argument(
        "--rename",
        action="append",
        default=[],
        metavar="OLD=NEW",
        help=tr("rename a value or layer; repeatable"),
    )
    parser.add_argument(
        "--drop",
        action="append",
        default=[],
        metavar="LAYER",
        help=tr("remove a layer whose input and output have the same type and shape; repeatable"),
    )
    parser.add_argument(
        "--replace",
        action="append",
        default=[],
        metavar="INS:OUTS=FILE",
        help=tr("replace the layers from INS to OUTS (names, separated by commas) with a model"),
    )
    parser.add_argument(
        "--normalize",
        metavar="HOW",
        help=tr("make the normalization part of the model: {how}", how=PREPROCESS_HELP),
    )
    parser.add_argument(
        "--append",
        action="append",
        default=[],
        metavar="OP[:AXIS]",
        help=tr("append an operator to the output, like Softmax:1 or ArgMax:1; repeatable"),
    )
    parser.add_argument(
        "--nms", metavar="BOXES,SCORES", help=tr("append NonMaxSuppression to these two values")
    )
    parser.add_argument(
        "--fold", action="store_true", help=tr("compute what does not depend on an input")
    )
    parser.add_argument(
        "--optimized", action="store_true", help=tr("write the model after every pass")
    )
    parser.add_argument(
        "--opset", type=at_least(1), metavar="N",
        help=tr("opset of the ONNX file (default: 17, or the first one that has every operator)"),
    )  # fmt: skip


def _call(args: argparse.Namespace) -> Edited:
    from lite_engine.importers import load
    from lite_engine.model_file import is_lite, optimize, read_model

    source, out = Path(args.model), Path(args.output)
    if out.suffix not in (".onnx", ".lite"):
        raise UsageError(
            tr("{out} is neither .onnx nor .lite", out=out), fix=tr("choose another file with -o")
        )
    if out.exists() and source.exists() and out.samefile(source):
        raise UsageError(
            tr("{out} is the model to edit", out=out), fix=tr("choose another file with -o")
        )
    graph = read_model(source).graph if is_lite(source) else load(source, params=args.params)
    before, steps = len(graph.nodes), _Steps(graph)
    _apply(steps, args)
    if not steps.refused:
        if out.suffix == ".onnx":
            from lite_engine import write_onnx

            write_onnx(steps.graph, out, opset=args.opset)
        else:
            optimize(steps.graph).save(out)
    made = steps.graph
    return Edited(
        str(out), 0 if steps.refused else out.stat().st_size,
        {"before": before, "after": len(made.nodes)},
        {v.name: str(v.type) for v in made.inputs}, {v.name: str(v.type) for v in made.outputs},
        steps.done, steps.refused,
    )  # fmt: skip


class _Steps:
    """The graph after each step, and a sentence about each."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.done: list[str] = []
        self.refused: list[Refusal] = []

    def then(self, change: Callable[[Graph], Graph], said: str) -> None:
        self.graph = change(self.graph)
        self.done.append(said)

    def resized(self, made: Resized, said: str) -> None:
        self.graph, self.refused = made.graph, [*self.refused, *made.refused]
        layers = trn("{n} layer adapted", "{n} layers adapted", len(made.adapted))
        self.done.append(f"{said} ({layers})" if made.adapted else said)


def _apply(steps: _Steps, args: argparse.Namespace) -> None:
    """The changes in the order of the options' help."""
    from lite_engine import edit
    from lite_engine.importers import load
    from lite_engine.preprocess import Preprocess

    ins, outs, layers = (_names(text) for text in (args.inputs, args.outputs, args.layers))
    if ins or outs:
        what = ", ".join([*(ins or ["…"]), "→", *(outs or ["…"])])
        steps.then(lambda g: edit.extract(g, ins, outs), tr("extracted {what}", what=what))
    if layers:
        said = trn("extracted {n} layer", "extracted {n} layers", len(layers))
        steps.then(lambda g: edit.extract_layers(g, layers), said)
    if args.shape:
        what = ", ".join(f"{n}:{'x'.join(map(str, dims))}" for n, dims in args.shape)
        steps.resized(edit.resize(steps.graph, dict(args.shape)), tr("shapes {what}", what=what))
    if args.batch:
        steps.resized(edit.rebatch(steps.graph, args.batch), tr("batch {n}", n=args.batch))
    if steps.refused:
        return
    if args.drop:
        steps.then(
            lambda g: edit.drop(g, args.drop), tr("dropped {names}", names=", ".join(args.drop))
        )
    for text in args.replace:
        places, file = _pair(text, "--replace INS:OUTS=FILE")
        at, _, to = places.partition(":")
        steps.then(
            lambda g, at=at, to=to, file=file: edit.replace(g, _names(at), _names(to), load(file)),  # type: ignore[misc]
            tr("replaced {at} → {to} by {file}", at=at, to=to, file=file),
        )
    if args.normalize:
        how = Preprocess.parse(args.normalize, steps.graph.metadata.get("preprocess"))
        graph, why = edit.normalize(steps.graph, how)
        said = tr("normalization in the first convolution")
        if why:
            said = tr("normalization as layers ({why})", why="; ".join(why))
        steps.then(lambda _: graph, said)
    for text in args.append:
        op, _, axis = text.partition(":")
        attrs: dict[str, Any] = {"axis": _integer(axis)} if axis else {}
        steps.then(
            lambda g, op=op, attrs=attrs: edit.append(g, op, attrs=attrs),  # type: ignore[misc]
            tr("appended {op}", op=text),
        )
    if args.nms:
        names = _names(args.nms)
        if len(names) != 2:
            raise UsageError(tr("--nms takes two names, like boxes,scores"))
        steps.then(
            lambda g: edit.append_nms(g, *names), tr("appended {op}", op="NonMaxSuppression")
        )
    if args.rename:
        pairs = dict(_pair(text, "--rename OLD=NEW") for text in args.rename)
        said = ", ".join(f"{old} → {new}" for old, new in pairs.items())
        steps.then(lambda g: edit.rename(g, pairs), tr("renamed {names}", names=said))
    if args.fold:
        steps.then(edit.fold, tr("folded constants"))
    if args.optimized:
        steps.then(edit.optimized, tr("ran every pass"))


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _pair(text: str, form: str) -> tuple[str, str]:
    first, equals, second = text.rpartition("=")
    if not equals or not first or not second:
        raise UsageError(tr("{text!r} is not of the form {form}", text=text, form=form))
    return first, second


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UsageError(tr("axis {text!r} is not a whole number", text=text)) from None


def _show(made: Edited, args: argparse.Namespace) -> str:
    lines = [*made.done]
    lines += [tr("  input   {name}: {type}", name=n, type=t) for n, t in made.inputs.items()]
    lines += [tr("  output  {name}: {type}", name=n, type=t) for n, t in made.outputs.items()]
    if made.refused:
        lines += [
            tr("{layer} ({op}) refuses: {why}", layer=r.layer, op=r.op, why=r.why)
            for r in made.refused
        ]
        return "\n".join([*lines, tr("nothing was written")])
    lines.append(
        tr(
            "wrote {file}: {layers}, {size}",
            file=made.file,
            layers=trn("{n} layer", "{n} layers", made.layers["after"]),
            size=number(made.bytes, "B"),
        )
    )
    return "\n".join(lines)


COMMAND = Command(
    "edit", _configure, _call, _show,
    code=lambda made, args: 1 if made.refused else 0,
    data=lambda made: {**vars(made), "refused": [vars(r) for r in made.refused]},
)  # fmt: skip
