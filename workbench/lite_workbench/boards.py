"""The boards of a Session: kept under names (`lite devices`), checked, and run on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .session import Session


class Boards:
    """``session.boards.add("rock5b", "ssh://pi@10.0.0.5")``, then `check` and `use`.

    used    name of the board that runs the steps of its CPU target, "" for none
    target  that CPU target, "arm" or "x86"
    device  the opened device
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.used, self.target = "", ""
        self.device: Any = None

    def __iter__(self) -> Any:
        from lite_engine.devices import load_entries

        return iter(load_entries())

    def add(self, name: str, address: str, ssh_config: str = "") -> Any:
        """Keeps a board; the same again is no error. Raises UsageError."""
        from lite_engine.devices import Entry, add_entry

        known = next((e for e in self if e == Entry(name, address, ssh_config)), None)
        entry = known or add_entry(name, address, ssh_config)
        config = f", {ssh_config!r}" if ssh_config else ""
        self._session.remember(f"session.boards.add({name!r}, {address!r}{config})")
        return entry

    def remove(self, name: str) -> None:
        """Forgets a board. Raises UsageError."""
        from lite_engine.devices import remove_entry

        if name == self.used:
            self.use("")
        remove_entry(name)
        self._session.remember(f"session.boards.remove({name!r})")

    def check(self, name: str) -> Any:
        """A tiny network through every stage; the DeviceCheck says which failed and why. Raises
        UsageError for a board that is not known."""
        from lite_engine.devices import check_device, find_device, open_address

        made = check_device(find_device(name) or open_address("local"))
        self._session.remember(f"session.boards.check({name!r})")
        return made

    def use(self, name: str = "") -> None:
        """From here on the steps of the board's CPU target run there; "" is this machine again
        (arm: the emulator). Raises UsageError, DeviceError."""
        from lite_engine.devices import find_device

        device = find_device(name) if name else None
        self.target = device.target() if device is not None else ""
        self.device, self.used = device, name
        self._session.forget_predictors()
        self._session.remember(f"session.boards.use({name!r})")
        self._session.notify("targets", self._session.targets)
