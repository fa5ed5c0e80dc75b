"""`lite opt`: Paddle-Lite's converter with its own flags."""

from __future__ import annotations

import argparse
from pathlib import Path

from lite_engine.compat.opt import add_flags, run

from ._base import Command


def _call(args: argparse.Namespace) -> list[Path]:
    return run(args)


COMMAND = Command(
    "opt",
    add_flags,
    _call,
    lambda result, args: "",  # `run` has printed what Paddle-Lite prints
)
