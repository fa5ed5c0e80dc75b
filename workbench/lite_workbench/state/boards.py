"""The boards of a session: kept under names (`lite devices`), checked, and run on."""

from __future__ import annotations

from collections.abc import Iterator

from lite_engine.devices import (
    Device,
    DeviceCheck,
    Entry,
    add_entry,
    check_device,
    find_device,
    load_entries,
    open_address,
    remove_entry,
)

from ._state import SessionState, UsedBoard


class Boards:
    """``session.boards.add("rock5b", "ssh://pi@10.0.0.5")``, then `check` and `use`."""

    def __init__(self, state: SessionState) -> None:
        self._state = state

    @property
    def used(self) -> str:
        """Name of the board that runs the steps of `backends`, "" for none."""
        return self._state.board.name if self._state.board else ""

    @property
    def target(self) -> str:
        """The CPU target of the board in use, "arm" or "x86"; "" for none."""
        return self._state.board.target if self._state.board else ""

    @property
    def backends(self) -> tuple[str, ...]:
        """What runs on the board in use: its CPU target, and "opencl" where it has a usable
        device."""
        return self._state.board.backends if self._state.board else ()

    @property
    def device(self) -> Device | None:
        """The board in use, opened."""
        return self._state.board.device if self._state.board else None

    def __iter__(self) -> Iterator[Entry]:
        return iter(load_entries())

    def add(self, name: str, address: str, ssh_config: str = "") -> Entry:
        """Keeps a board; the same again is no error. Raises UsageError."""
        known = next((e for e in self if e == Entry(name, address, ssh_config)), None)
        entry = known or add_entry(name, address, ssh_config)
        config = f", {ssh_config!r}" if ssh_config else ""
        self._state.remember(f"session.boards.add({name!r}, {address!r}{config})")
        return entry

    def remove(self, name: str) -> None:
        """Forgets a board. Raises UsageError."""
        if name == self.used:
            self.use("")
        remove_entry(name)
        self._state.remember(f"session.boards.remove({name!r})")

    def check(self, name: str) -> DeviceCheck:
        """A tiny network through every stage; the DeviceCheck says which failed and why. Raises
        UsageError for a board that is not known."""
        made = check_device(find_device(name) or open_address("local"), opencl=True)
        self._state.remember(f"session.boards.check({name!r})")
        return made

    def use(self, name: str = "") -> None:
        """From here on the steps of the board's CPU target run there, and those of OpenCL where it
        has a usable device; "" is this machine again (arm: the emulator). Raises UsageError,
        DeviceError."""
        board = None
        if device := find_device(name) if name else None:
            usable = device.opencl().chosen is not None
            board = UsedBoard(name, device.target(), device, opencl=usable)
        self._state.board = board
        self._state.remember(f"session.boards.use({name!r})")
        self._state.notify("targets", self._state.targets)
