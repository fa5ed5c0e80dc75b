"""`lite edit`: cut, resize, rename, replace, and write ONNX or `.lite`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING

from lite_engine.errors import UsageError
from lite_messages import tr, trn

from ..editing import Edited, Edits, check_ending, write_edited
from ..words import number
from ._base import PREPROCESS_HELP, Command, add_shape, at_least

if TYPE_CHECKING:
    from lite_engine.ir import Graph


def _batch(text: str) -> int | str:
    """8 → 8, N → "N". Raises argparse's error."""
    return text if text.isidentifier() else at_least(1)(text)


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
        help=tr("keep only these layers, separated by commas"),
    )
    add_shape(parser, tr("change the shape of an input, like x:1x3x320x320; repeatable"))
    parser.add_argument(
        "--batch",
        type=_batch,
        metavar="N",
        help=tr("change the first dimension of every input to a number, or open it under a name"),
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
        "--replace-pattern",
        action="append",
        default=[],
        metavar="PATTERN=FILE",
        help=tr(
            "replace every match of a pattern, like 'Mul(x, Sigmoid(x))' or "
            "'LeakyRelu[alpha<0.2](x)', with a model whose inputs are named like the variables of "
            "the pattern; repeatable"
        ),
    )
    parser.add_argument(
        "--remove-normalization",
        action="store_true",
        help=tr("remove the layers that normalize the input"),
    )
    parser.add_argument(
        "--remove-postprocessing",
        action="store_true",
        help=tr("end the model before Softmax, ArgMax, TopK and non-maximum suppression"),
    )
    parser.add_argument(
        "--normalize",
        metavar="HOW",
        help=tr("add the normalization to the model. HOW is {how}", how=PREPROCESS_HELP),
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
        "--fold",
        action="store_true",
        help=tr("fold constants: compute everything that does not depend on an input"),
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
    from lite_engine.model_file import is_lite, read_model

    source, out = Path(args.model), Path(args.output)
    check_ending(out)
    model = read_model(source) if is_lite(source) else None
    graph = load(source, params=args.params) if model is None else model.described_graph()
    edits = Edits(
        inputs=_names(args.inputs), outputs=_names(args.outputs), layers=_names(args.layers),
        shapes=dict(args.shape), batch=args.batch, drop=args.drop,
        replace=[_places(text, _known(graph)) for text in args.replace],
        replace_pattern=[_pair(t, "--replace-pattern PATTERN=FILE") for t in args.replace_pattern],
        remove_normalization=args.remove_normalization,
        remove_postprocessing=args.remove_postprocessing, normalize=args.normalize or "",
        append=args.append, nms=_names(args.nms or ""),
        rename=dict(_pair(text, "--rename OLD=NEW") for text in args.rename),
        fold=args.fold, optimized=args.optimized,
    )  # fmt: skip
    return write_edited(graph, out, edits, opset=args.opset, like=model)


def _known(graph: Graph) -> set[str]:
    """What values and layers are called."""
    return {v.name for v in graph.values()} | {n.name for n in graph.nodes}


def _places(text: str, known: Container[str]) -> tuple[list[str], list[str], str]:
    """INS:OUTS=FILE. Names of TensorFlow hold colons: the one between the two is that with known
    names on both sides, else the first."""
    form = "--replace INS:OUTS=FILE"
    places, file = _pair(text, form)
    words = places.split(":")
    both = [
        (_names(":".join(words[:i])), _names(":".join(words[i:]))) for i in range(1, len(words))
    ]
    both = [(ins, outs) for ins, outs in both if ins and outs]
    if not both:
        raise UsageError(tr("{text!r} is not of the form {form}", text=text, form=form))
    fits = [(ins, outs) for ins, outs in both if all(name in known for name in (*ins, *outs))]
    return *(fits or both)[0], file


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _pair(text: str, form: str) -> tuple[str, str]:
    first, equals, second = text.rpartition("=")
    if not equals or not first or not second:
        raise UsageError(tr("{text!r} is not of the form {form}", text=text, form=form))
    return first, second


def _show(made: Edited, args: argparse.Namespace) -> str:
    lines = [*made.done]
    lines += [tr("  input   {name}: {type}", name=n, type=t) for n, t in made.inputs.items()]
    lines += [tr("  output  {name}: {type}", name=n, type=t) for n, t in made.outputs.items()]
    if made.targets:
        lines.append(tr("  targets {targets}", targets=", ".join(made.targets)))
    if made.refused:
        lines += [
            tr("{layer} ({op}) does not accept this: {why}", layer=r.layer, op=r.op, why=r.why)
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
    if made.file.endswith(".lite") and not made.targets:
        made_by = "lite convert {0} -o {0}".format(shlex.quote(made.file))
        lines.append(tr("it has no program for a device yet; `{command}` makes it",
                        command=made_by))  # fmt: skip
    return "\n".join(lines)


COMMAND = Command(
    "edit", _configure, _call, _show,
    code=lambda made, args: 1 if made.refused else 0,
    data=lambda made: {**vars(made), "refused": [vars(r) for r in made.refused]},
)  # fmt: skip
