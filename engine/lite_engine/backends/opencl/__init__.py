"""The OpenCL backend: pyopencl host code over the kernels in `kernels/*.cl`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from lite_messages import tr

from ... import settings
from ...errors import BackendUnavailableError, check_choice
from ...plan import Segment
from .. import Backend, Executable, Measured, Offload, Probed, Tried, Tunable, Usability
from . import discover
from .device import DeviceReport, choose, copy_cost, open_device, reports
from .executable import OpenCLExecutable
from .tuning import EFFORTS, Tuning


class OpenCLBackend(Backend, Tunable, Offload, Probed):
    """Runs segments on one OpenCL device."""

    name = "opencl"

    def __init__(self) -> None:
        self._effort = "none"

    def usability(self) -> Usability:
        try:
            report = choose()
        except BackendUnavailableError as error:
            return Usability.refused(error)
        return Usability(True, f"{report.name} ({report.platform}, {report.kind})")

    def attempts(self) -> list[Tried]:
        """Libraries tried, then the devices they gave."""
        rows = [Tried(a.candidate, a.found_by, a.reason or "opened") for a in discover.attempts()]
        try:
            found: tuple[DeviceReport, ...] = reports()
        except BackendUnavailableError as error:
            return [*rows, Tried("devices", "", str(error))]
        return rows + [
            Tried(
                tr("device {name}", name=r.index),
                r.platform,
                f"{r.name}: {r.reason or tr('usable')}",
            )
            for r in found
        ]

    def failed(self) -> list[Tried]:
        """Kernel variants that failed with this driver. Raises BackendUnavailableError."""
        device = open_device(choose())
        known = device.verdicts.failures.values()
        driver = tr("driver {version}", version=device.report.driver)
        return [
            Tried(tr("kernel {name}", name=f.name), driver, f"{f.what}: {f.detail}") for f in known
        ]

    def compile(self, segment: Segment, *, threads: int) -> Executable:
        """Raises BackendUnavailableError when the device or a kernel fails."""
        if settings.get("LITE_OPENCL_EXECUTOR") == "native":
            from .native_executable import NativeOpenCLExecutable

            return NativeOpenCLExecutable(segment, open_device(choose()), threads=threads)
        return OpenCLExecutable(segment, open_device(choose()), self._effort)

    def device_kind(self) -> str:
        """ "GPU", "CPU" or "other"."""
        return choose().kind

    def copy_cost(self) -> tuple[float, float]:
        """ms of a copy between host and device, as (each, for every byte)."""
        return copy_cost(open_device(choose()))

    def learn(self, tuning: Mapping[str, Mapping[str, str]], beside: Path | None = None) -> None:
        """A model's measured ways (its `tuning`), if they are of this device, then those that
        `lite_run --tune` kept in the model's folder."""
        own = open_device(choose()).tuning
        own.learn(tuning.get(f"opencl/{own.key}", {}))
        if beside is not None:
            own.learn(Tuning.load(beside / own.path.name).table)

    def learned(self) -> dict[str, dict[str, str]]:
        """Measured ways of the layers compiled so far, as a model's `tuning` holds them."""
        tuning = open_device(choose()).tuning
        known = {size: tuning.table[size] for size in tuning.sizes & tuning.table.keys()}
        return {f"opencl/{tuning.key}": dict(sorted(known.items()))} if known else {}

    @contextmanager
    def measuring(self, effort: str) -> Iterator[list[Measured]]:
        """Segments compiled in this block measure the ways of layers that the tuning table does
        not know, and note them in the list. Raises UsageError for an unknown effort."""
        check_choice(tr("tuning effort"), effort, EFFORTS)
        before, self._effort = self._effort, effort
        tuning = open_device(choose()).tuning
        tuning.sizes.clear()
        tuning.measured = []
        try:
            yield tuning.measured
        finally:
            self._effort = before
