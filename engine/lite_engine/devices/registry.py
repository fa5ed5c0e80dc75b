"""Devices by name: what `--device` accepts, and the list that `lite devices` keeps."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lite_messages import tr

from .. import settings
from ..documents import parse
from ..errors import LiteError, ModelFormatError, UsageError, reason_of
from ..files import locked, write_file

if TYPE_CHECKING:
    from ._base import Device


class DeviceNameError(UsageError):
    """The name of a device is taken, or no name."""


@dataclass
class Entry:
    """A kept device: a short name for an address. `ssh_config` may be empty."""

    name: str
    address: str
    ssh_config: str = ""

    def open(self) -> Device:
        return open_address(self.address, self.ssh_config)


#: Always there.
BUILT_IN = (Entry("local", "local"), Entry("wasm", "wasm"), Entry("emulated", "emulated"))
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def open_address(address: str, ssh_config: str = "") -> Device:
    """local, wasm, emulated[:cpu], ssh://user@host[:port] or adb://serial → Device.

    Nothing is reached yet. Raises UsageError.
    """
    from .adb import AdbTransport  # "local" needs none of them
    from .emulated import EmulatedDevice
    from .process import ProcessDevice
    from .remote import RemoteDevice
    from .ssh import SshTransport
    from .wasm import WasmDevice

    kind, _, rest = address.partition(":")
    if address == "local":
        return ProcessDevice()
    if address == "wasm":
        return WasmDevice()
    if kind == "emulated":
        return EmulatedDevice(rest) if rest else EmulatedDevice()
    if kind == "ssh":
        return RemoteDevice(SshTransport(address, ssh_config))
    if kind == "adb":
        return RemoteDevice(AdbTransport(address))
    raise UsageError(
        tr(
            "device {address!r} is not known",
            address=address,
        ),
        fix=tr(
            "use local, wasm, emulated, emulated:cortex-a53, ssh://user@host, adb://SERIAL, "
            "or a name from `lite devices`"
        ),
    )


def find_device(text: str) -> Device | None:
    """What `--device` names; None for this process itself ("local"). Raises UsageError."""
    if text == "local":
        return None
    for entry in load_entries():
        if entry.name == text:
            return entry.open()
    return open_address(text)


def _path() -> Path:
    return settings.cache_dir() / "devices.json"


def load_entries() -> list[Entry]:
    """The kept devices. Raises LiteError when the list is damaged."""
    try:
        kept = parse(_path().read_bytes(), "devices").items()
        return [Entry(*(d[key].text() for key in ("name", "address", "ssh_config"))) for d in kept]
    except FileNotFoundError:
        return []
    except (OSError, ModelFormatError) as error:
        reason = reason_of(error)
        raise LiteError(
            tr("damaged ({reason})", reason=reason),
            where=_path(),
            fix=tr("remove it and add the devices"),
        ) from None


def add_entry(name: str, address: str, ssh_config: str = "") -> Entry:
    """Keeps a device. Raises UsageError for a taken or impossible name or address."""
    if not _NAME.fullmatch(name):
        raise DeviceNameError(
            tr("device name {name!r}: letters, digits, '.', '_' and '-' only", name=name)
        )
    config = str(Path(ssh_config).expanduser().resolve()) if ssh_config else ""
    if config and not Path(config).is_file():
        raise UsageError(tr("no such file"), where=ssh_config)
    entry = Entry(name, address, config)
    entry.open()
    with locked(_path()):
        entries = load_entries()
        if any(e.name == name for e in BUILT_IN):
            raise DeviceNameError(
                tr("the device {name!r} exists on every machine", name=name),
                fix=tr("choose another name"),
            )
        if any(e.name == name for e in entries):
            raise DeviceNameError(
                tr("the device {name!r} exists already", name=name),
                fix=tr("choose another name, or remove that device"),
                command=f"lite devices remove {name}",
            )
        _save([*entries, entry])
    return entry


def remove_entry(name: str) -> None:
    """Forgets a device. Raises UsageError when it is not kept."""
    with locked(_path()):
        entries = load_entries()
        if all(e.name != name for e in entries):
            known = ", ".join(e.name for e in entries) or "none"
            raise UsageError(
                tr("there is no saved device {name!r}", name=name),
                fix=tr("saved devices: {known}", known=known),
            )
        _save([e for e in entries if e.name != name])


def _save(entries: list[Entry]) -> None:
    write_file(_path(), json.dumps([asdict(e) for e in entries], indent=1))
