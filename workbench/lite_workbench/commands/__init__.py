"""The verbs. One module each, with a `COMMAND`; loaded when first asked for."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from typing import Any

from lite_messages import tr

from ._base import Command, LiteParser, add_json

#: In the order of the walk, with what `lite --help` says of each.
VERBS = {
    "doctor": tr("check this machine: what works, what is missing, and how to fix it"),
    "info": tr("show a model's operators, sizes, costs and support per target"),
    "get": tr("list well-known public models, and fetch one from the Hugging Face hub"),
    "convert": tr("convert a model of any format to one .lite file for all targets"),
    "opt": tr("convert with Paddle-Lite's flags"),
    "quantize": tr("quantize a model and check it against the float model"),
    "prune": tr("prune weights or channels of a model and check it against the dense model"),
    "run": tr("run one inference"),
    "pipeline": tr("run several models on an image or sound, and write them as one file"),
    "evaluate": tr("measure accuracy on labeled data, and what versions or backends change"),
    "profile": tr("measure the time of each layer"),
    "sweep": tr("measure threads, batch sizes, backends and precisions, and show the best ones"),
    "recommend": tr("measure versions and write the fastest one within the budgets"),
    "tune": tr("choose the fastest OpenCL variant of each layer, measured or from a field report"),
    "compare": tr("compare two backends, precisions or models layer by layer"),
    "diff": tr("show what changed from one model to another: layers, attributes, shapes, weights"),
    "devices": tr("list, add, test and remove boards and phones"),
    "edit": tr("cut, resize, rename or replace parts of a model, and write it as ONNX or .lite"),
    "export": tr("write everything that a device needs to one folder"),
    "report": tr("write an interactive report as one HTML file"),
    "runs": tr("list, show, compare and tag saved profiles"),
    "lab": tr("open the lessons in JupyterLab"),
}

#: Verbs that open no model, and the one whose options are Paddle-Lite's.
WITHOUT_OPERATORS = ("get", "opt", "devices", "runs", "lab")


def available() -> list[str]:
    """Verbs of this installation."""
    from importlib.util import find_spec

    return [v for v in VERBS if find_spec(f"{__name__}.{v}")]


def get_command(name: str) -> Command[Any]:
    """Raises KeyError for an unknown verb."""
    if name not in VERBS:
        raise KeyError(name)
    command = importlib.import_module(f"{__name__}.{name}").COMMAND
    assert isinstance(command, Command)
    return command


def parser_for(command: Command[Any], prog: str = "lite") -> LiteParser:
    parser = LiteParser(prog=f"{prog} {command.name}", description=VERBS[command.name])
    command.configure(parser)
    if command.name not in WITHOUT_OPERATORS:
        parser.add_argument(
            "--operators", action="append", default=[], metavar="FILE.py", type=Path,
            help=tr("a Python file that defines the model's own operators; it is executed, so name "
                    "only a file that you trust; repeatable"),
        )  # fmt: skip
    if command.data is not None:
        add_json(parser)
    return parser


def call(command: Command[Any], options: argparse.Namespace) -> Any:
    """What a verb returns; the files of --operators are executed first. A file that the verb reads
    is not written over. Raises LiteError."""
    from lite_engine.extensions import python_file

    from ._own_files import check_outputs

    check_outputs(options, command.rewrites)
    for path in getattr(options, "operators", ()):
        python_file(path)
    return command.call(options)


__all__ = ["VERBS", "Command", "LiteParser", "available", "call", "get_command", "parser_for"]
