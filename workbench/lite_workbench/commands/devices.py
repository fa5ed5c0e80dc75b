"""`lite devices`: list, add, test, remove."""

from __future__ import annotations

import argparse
from typing import Any

from ..words import number
from ._base import Command, add_json, wants_json_only, write_json
from ._table import table

_MARK = {"done": "+", "failed": "-", "skipped": " ", "running": "…"}


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action", nargs="?", default="list", choices=("list", "add", "test", "remove")
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="a short name, or an address")
    parser.add_argument(
        "address", nargs="?", metavar="ADDRESS", help="ssh://user@host[:port], adb://SERIAL, …"
    )
    parser.add_argument(
        "--ssh-config", default="", metavar="FILE", help="instead of your own OpenSSH configuration"
    )
    add_json(parser)


def _call(args: argparse.Namespace) -> Any:
    from lite_engine import devices
    from lite_engine.errors import UsageError

    if args.action == "list":
        return [*devices.BUILT_IN, *devices.load_entries()]
    if not args.name:
        more = " ADDRESS" if args.action == "add" else ""
        raise UsageError(f"write `lite devices {args.action} NAME{more}`")
    if args.action == "add":
        if not args.address:
            raise UsageError(f"write `lite devices add {args.name} ADDRESS`")
        devices.add_entry(args.name, args.address, args.ssh_config)
    elif args.action == "remove":
        devices.remove_entry(args.name)
    else:
        return devices.check_device(devices.find_device(args.name) or devices.open_address("local"))
    return [*devices.BUILT_IN, *devices.load_entries()]


def _show(result: Any, args: argparse.Namespace) -> str:
    checked = args.action == "test"
    if args.json:
        listed = {} if checked else {"devices": [vars(e) for e in result]}
        write_json(result.to_dict() if checked else listed, args.json)
        if wants_json_only(args):
            return ""
    if not checked:
        rows = [[e.name, e.address, e.ssh_config] for e in result]
        return table(["name", "address", "ssh configuration"], rows)
    lines = [f"{_MARK[s.state]} {s.name:<6} {s.ms:8.1f} ms  {s.detail}" for s in result.stages]
    if result.good:
        lines.append(f"{result.device} works: {result.target} with {' '.join(result.features)}")
    else:
        lines.append(f"{result.device} does not work: {result.error}")
    for key, value in result.environment.items():
        lines.append(f"    {key}: {number(value, 'B') if key.endswith('_bytes') else value}")
    return "\n".join(lines)


COMMAND = Command(
    "devices",
    _configure,
    _call,
    _show,
    lambda result, args: 0 if args.action != "test" or result.good else 1,
)
