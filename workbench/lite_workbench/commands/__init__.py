"""The verbs. One module each, with a `COMMAND`; loaded when first asked for."""

from __future__ import annotations

import importlib

from ._base import Command, LiteParser

#: In the order of the walk.
VERBS = (
    "doctor",
    "info",
    "convert",
    "opt",
    "quantize",
    "run",
    "profile",
    "compare",
    "devices",
    "export",
    "report",
    "runs",
    "lab",
)


def available() -> list[str]:
    """Verbs of this installation."""
    from importlib.util import find_spec

    return [v for v in VERBS if find_spec(f"{__name__}.{v}")]


def get_command(name: str) -> Command:
    """Raises KeyError for an unknown verb."""
    if name not in VERBS:
        raise KeyError(name)
    command = importlib.import_module(f"{__name__}.{name}").COMMAND
    assert isinstance(command, Command)
    return command


def parser_for(command: Command, prog: str = "lite") -> LiteParser:
    parser = LiteParser(prog=f"{prog} {command.name}", description=command.help)
    command.configure(parser)
    return parser


__all__ = ["VERBS", "Command", "LiteParser", "available", "get_command", "parser_for"]
