"""What a report that is sent to others must not hold: names of people and machines, serial numbers,
folders."""

from __future__ import annotations

import getpass
import os
import platform
import re
import socket
from pathlib import Path
from typing import Any

from .. import system
from ..terminal import one_line

_SERIALS = (
    "/proc/device-tree/serial-number", "/sys/devices/soc0/serial_number", "/etc/machine-id",
    "/sys/class/dmi/id/product_serial", "/sys/class/dmi/id/board_serial",
    "/sys/class/dmi/id/product_uuid",
)  # fmt: skip
_LEFT_OUT = "…"
#: /home/ann/x.cl, C:\Users\ann\x.cl, ~/x.cl: the file's own name goes too, it may be a person's.
_PATH = re.compile(r"(?:~|[A-Za-z]:|\B)[/\\](?:[^\s/\\:'\",;]+[/\\])*[^\s/\\:'\",;]*")


def secrets() -> list[str]:
    """Names of this person and machine, and its serial numbers, as far as they can be known."""
    found = {platform.node(), socket.gethostname(), Path.home().name}
    found |= {os.environ.get(name, "") for name in ("USER", "LOGNAME", "USERNAME", "HOSTNAME")}
    try:
        found.add(getpass.getuser())
    except (KeyError, OSError):  # a user without a name, as in containers
        pass
    found |= {name.partition(".")[0] for name in found}  # a host in its domain
    for path in _SERIALS:
        found.add(system.text_of(path))
    found |= {value for name, value in system.cpu_fields() if name == "Serial"}
    return sorted(filter(None, found), key=len, reverse=True)


def without(value: Any, names: list[str]) -> Any:
    """A document whose texts have one line each, without paths and without these names, whatever
    their case."""
    words = "|".join(re.escape(name) for name in names)
    named = re.compile(rf"(?<![A-Za-z0-9])(?:{words})(?![A-Za-z0-9])", re.IGNORECASE)

    def clean(part: Any) -> Any:
        if isinstance(part, str):
            text = _PATH.sub(_LEFT_OUT, one_line(part))
            return named.sub(_LEFT_OUT, text) if words else text
        if isinstance(part, dict):
            return {clean(key): clean(inner) for key, inner in part.items()}
        if isinstance(part, (list, tuple)):
            return [clean(inner) for inner in part]
        return part

    return clean(value)
