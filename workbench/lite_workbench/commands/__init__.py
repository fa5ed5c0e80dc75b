"""The verbs. One module each, with a `COMMAND`; loaded when first asked for."""

from __future__ import annotations

import importlib
from typing import Any

from ._base import Command, LiteParser, add_json

#: In the order of the walk, with what `lite --help` says of each.
VERBS = {
    "doctor": "what this machine has, what it lacks, how to fix it",
    "info": "operators, sizes, costs and support per target",
    "convert": "any model to one .lite file for every target",
    "opt": "the same with Paddle-Lite's flags",
    "quantize": "int8, checked against its float parent",
    "run": "one inference",
    "profile": "per-layer times",
    "tune": "OpenCL: the fastest way of each layer, measured or taken from a field report",
    "compare": "layer by layer: which one is wrong",
    "devices": "list, add, test and remove boards and phones",
    "export": "what goes to the device, in one folder",
    "report": "one interactive HTML file",
    "runs": "kept profiles: list, show, diff, tag",
    "lab": "JupyterLab on the lessons",
}


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
    if command.data is not None:
        add_json(parser)
    return parser


__all__ = ["VERBS", "Command", "LiteParser", "available", "get_command", "parser_for"]
