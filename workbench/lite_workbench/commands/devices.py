"""`lite devices`: list, add, test, remove."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..words import number
from ._base import Command
from ._table import table

if TYPE_CHECKING:
    from lite_engine.devices import DeviceCheck, Entry


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


@dataclass
class Listed:
    """The devices that are known."""

    devices: list[Entry]

    def to_dict(self) -> dict[str, Any]:
        return {"devices": [vars(entry) for entry in self.devices]}


def _call(args: argparse.Namespace) -> Listed | DeviceCheck:
    from lite_engine import devices
    from lite_engine.errors import UsageError

    if args.action == "list":
        return Listed([*devices.BUILT_IN, *devices.load_entries()])
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
    return Listed([*devices.BUILT_IN, *devices.load_entries()])


def _show(result: Listed | DeviceCheck, args: argparse.Namespace) -> str:
    if isinstance(result, Listed):
        rows = [[e.name, e.address, e.ssh_config] for e in result.devices]
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
    lambda result, args: 0 if isinstance(result, Listed) or result.good else 1,
    lambda result: result.to_dict(),
)
