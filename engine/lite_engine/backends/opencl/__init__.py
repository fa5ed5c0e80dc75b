"""The OpenCL backend: pyopencl host code over the kernels in `kernels/*.cl`."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import BackendUnavailableError
from ...plan import Segment
from .._base import Usability
from . import discover
from .device import DeviceReport, choose, open_device, reports
from .executable import OpenCLExecutable


@dataclass(frozen=True)
class Tried:
    """A row of `lite doctor`: a library or a device, and what came of it."""

    what: str
    found_by: str
    result: str


class OpenCLBackend:
    """Runs segments on one OpenCL device."""

    name = "opencl"

    def usability(self) -> Usability:
        try:
            report = choose()
        except BackendUnavailableError as error:
            reason, _, fix = str(error).partition("; ")
            return Usability(False, reason, fix)
        return Usability(True, f"{report.name} ({report.platform}, {report.kind})")

    def attempts(self) -> list[Tried]:
        """Libraries tried, then the devices they gave."""
        rows = [Tried(a.candidate, a.found_by, a.reason or "opened") for a in discover.attempts()]
        try:
            found: tuple[DeviceReport, ...] = reports()
        except BackendUnavailableError as error:
            return [*rows, Tried("devices", "", str(error))]
        return rows + [
            Tried(f"device {r.index}", r.platform, f"{r.name}: {r.reason or 'usable'}")
            for r in found
        ]

    def compile(self, segment: Segment, *, threads: int) -> OpenCLExecutable:
        """Raises BackendUnavailableError when the device or a kernel fails."""
        return OpenCLExecutable(segment, open_device(choose()))
