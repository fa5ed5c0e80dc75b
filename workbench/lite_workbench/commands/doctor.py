"""`lite doctor`: what this machine has, why not, how to fix it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ._base import Command, add_device

if TYPE_CHECKING:
    from lite_engine.doctor import Examination


_MARK = {"good": "+", "warning": "!", "bad": "-"}


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", nargs="?", metavar="MODEL", help="a .lite file to check here or on --device"
    )
    parser.add_argument(
        "--backend",
        choices=("x86", "arm", "opencl", "reference"),
        help="exit 1 unless it can be used",
    )
    add_device(parser)


def _call(args: argparse.Namespace) -> Examination:
    from lite_engine.devices import find_device
    from lite_engine.doctor import check_file, device_check, examine

    device = find_device(args.device)
    result = examine()
    if args.model:
        first = check_file(Path(args.model), args.backend or "auto", device)
    else:
        first = [device_check(device)[0]] if device else []
    result.checks[:0] = first
    return result


def _show(result: Examination, args: argparse.Namespace) -> str:
    lines = []
    for check in result.checks:
        lines.append(f"{_MARK[check.state]} {check.name}: {check.summary}")
        for attempt in check.tried:
            words = (f"{v:.0f} ms" if isinstance(v, float) else f"{v}" for v in attempt.values()
                     if v not in (None, "", [], {}))  # fmt: skip
            text = ", ".join(words)
            lines.append(f"    tried {text}")
        if check.fix:
            lines.append(f"    fix: {check.fix}")
        if check.name == "Settings":
            lines += [f"    {k}={v}" for k, v in check.facts.items() if v != "None"]
    usable = [name for name, good in result.backends.items() if good]
    lines.append(f"backends that work here: {', '.join(usable)}")
    return "\n".join(lines)


def _code(result: Examination, args: argparse.Namespace) -> int:
    if (args.model or args.device != "local") and result.checks[0].state == "bad":
        return 1
    return 0 if args.backend is None or result.backends.get(args.backend, False) else 1


COMMAND = Command("doctor", _configure, _call, _show, _code, lambda result: result.to_dict())
