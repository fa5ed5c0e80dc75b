"""`lite devices`: list, add, test, remove, setup."""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lite_messages import tr

from ..words import number
from ._base import Command
from ._table import table

if TYPE_CHECKING:
    from lite_engine.devices import DeviceCheck, Entry


_MARK = {"done": "+", "failed": "-", "skipped": " ", "running": "…"}


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "action",
        nargs="?",
        default="list",
        choices=("list", "add", "test", "remove", "setup"),
        help=tr("what to do (default: list); setup gets OpenCL for the emulated device"),
    )
    parser.add_argument(
        "name", nargs="?", metavar="NAME", help=tr("a short name for the device, or its address")
    )
    parser.add_argument(
        "address", nargs="?", metavar="ADDRESS", help="ssh://user@host[:port], adb://SERIAL, …"
    )
    parser.add_argument(
        "--ssh-config",
        default="",
        metavar="FILE",
        help=tr("an OpenSSH configuration file to use instead of your own"),
    )


@dataclass
class Listed:
    """The devices that are known."""

    devices: list[Entry]

    @property
    def hint(self) -> str:
        """What the emulated device could have; empty when it has it."""
        from lite_engine.devices import arm_opencl

        return "" if arm_opencl.is_set_up() else arm_opencl.HINT

    def to_dict(self) -> dict[str, Any]:
        return {"devices": [vars(entry) for entry in self.devices], "hint": self.hint}


def _call(args: argparse.Namespace) -> Listed | DeviceCheck:
    from lite_engine import devices
    from lite_engine.errors import UsageError

    if args.action == "list":
        return Listed([*devices.BUILT_IN, *devices.load_entries()])
    if not args.name:
        more = " ADDRESS" if args.action == "add" else ""
        raise UsageError(
            tr(
                "a name is missing: `lite devices {action} NAME{more}`",
                action=args.action,
                more=more,
            )
        )
    if args.action == "add":
        if not args.address:
            raise UsageError(
                tr("the address is missing: `lite devices add {name} ADDRESS`", name=args.name)
            )
        devices.add_entry(args.name, args.address, args.ssh_config)
    elif args.action == "remove":
        devices.remove_entry(args.name)
    elif args.action == "setup":
        return _set_up(args.name)
    else:
        device = devices.find_device(args.name) or devices.open_address("local")
        return devices.check_device(device, opencl=True)
    return Listed([*devices.BUILT_IN, *devices.load_entries()])


def _set_up(name: str) -> DeviceCheck:
    """OpenCL for the emulated device, then its test. Raises UsageError, DeviceError."""
    from lite_engine import devices
    from lite_engine.errors import UsageError

    device = devices.find_device(name)
    if not isinstance(device, devices.EmulatedDevice):
        raise UsageError(tr("only the emulated device can be set up, not {name!r}", name=name))
    devices.arm_opencl.set_up(lambda text: print(text, file=sys.stderr, flush=True))
    return devices.check_device(device, opencl=True)


def _show(result: Listed | DeviceCheck, args: argparse.Namespace) -> str:
    if isinstance(result, Listed):
        rows = [[e.name, e.address, e.ssh_config] for e in result.devices]
        known = table([tr("name"), tr("address"), tr("SSH configuration")], rows)
        return f"{known}\n{result.hint}" if result.hint else known
    lines = [f"{_MARK[s.state]} {s.name:<6} {s.ms:8.1f} ms  {s.detail}" for s in result.stages]
    if result.good:
        lines.append(
            tr(
                "{device} works: {target} with {features}",
                device=result.device,
                target=result.target,
                features=" ".join(result.features),
            )
        )
    else:
        lines.append(
            tr("{device} does not work: {error}", device=result.device, error=result.error)
        )
    for key, value in result.environment.items():
        lines.append(f"    {key}: {number(value, 'B') if key.endswith('_bytes') else value}")
    if result.opencl:
        lines += [f"    OpenCL: {line}" for line in result.opencl.lines()]
        lines += [
            tr("    extensions: {extensions}", extensions=d.extensions)
            for d in result.opencl.devices
            if d.extensions
        ]
    return "\n".join(lines)


COMMAND = Command(
    "devices",
    _configure,
    _call,
    _show,
    lambda result, args: 0 if isinstance(result, Listed) or result.good else 1,
    lambda result: result.to_dict(),
)
