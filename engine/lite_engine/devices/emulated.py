"""The AArch64 runner under qemu: right numbers on any machine, times that mean nothing."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from .._native import host_arch, runner_path
from ..backends import Usability
from ..errors import DeviceError, LiteError, UsageError
from .process import ProcessDevice

#: Any CPU model of qemu; "max" has every feature the runner knows.
DEFAULT_CPU = "max"


def emulator() -> str | None:
    return shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")


def emulator_usability() -> Usability:
    """Whether AArch64 programs run here. On an AArch64 machine they do without an emulator."""
    if host_arch() != "aarch64" and emulator() is None:
        return Usability(False, "qemu-aarch64 is not installed", "sudo apt-get install qemu-user")
    try:
        runner_path("aarch64")
    except LiteError as error:
        return Usability(False, "there is no AArch64 runner", str(error))
    return Usability(True, "AArch64 runner under qemu-aarch64; times are not meaningful")


class EmulatedDevice(ProcessDevice):
    """Runs program files with the AArch64 runner. `cpu` is a CPU model of qemu."""

    times_meaningful = False

    def __init__(self, cpu: str = DEFAULT_CPU) -> None:
        """Raises UsageError when `cpu` cannot be the name of a CPU model."""
        if not re.fullmatch(r"[A-Za-z0-9._,=-]+", cpu) or cpu.startswith("-"):
            raise UsageError(f"CPU model {cpu!r}: see `qemu-aarch64 -cpu help`")
        self.cpu = cpu
        super().__init__("emulated" if cpu == DEFAULT_CPU else f"emulated:{cpu}", "aarch64")

    def command(self, runner: Path) -> list[str]:
        state = emulator_usability()
        if not state.usable:
            raise DeviceError(f"{self.name}: {state.reason}; {state.fix}")
        found = emulator()
        return [found, "-cpu", self.cpu, str(runner)] if found else [str(runner)]
