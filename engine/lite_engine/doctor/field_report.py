"""A field report: what OpenCL on one device is like, in one JSON file that a user can send.

It has nothing personal (`privacy.py`), and what it says can be taken over by others with the same
device and driver (`adopt`). docs/field_report.md describes every key. A report comes from
strangers: `read` checks all of it before anything is used.
"""

from __future__ import annotations

import math
import platform
import stat
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lite_messages import tr

from .._version import __version__
from ..backends import Probed, get_backend
from ..backends.opencl import check, facts
from ..backends.opencl.check_process import check_apart
from ..backends.opencl.device import Device, choose, open_device
from ..backends.opencl.verdicts import KINDS, MOST_FAILURES, Failure
from ..documents import parse
from ..errors import (
    BackendUnavailableError,
    ModelFormatError,
    TargetMismatchError,
    VersionError,
    reason_of,
)
from ..files import about
from ..terminal import one_line, shortened
from . import privacy
from .condition import clocks_and_heat

FORMAT, VERSION = "lite-field-report", 1
_MOST_BYTES = 4 << 20
_MOST_TEXT = 400
_MOST_VALUES = 200_000
_MOST_DEPTH = 8


@dataclass
class DeviceFacts:
    """`key` names device and driver, as the files of the cache folder do. `profile` is what the
    builders of launches know of it, `limits` and `extensions` are the driver's own words."""

    key: str
    name: str
    platform: str
    vendor: str
    version: str
    driver: str
    language: str
    profile: dict[str, Any]
    limits: dict[str, int]
    extensions: list[str]


@dataclass
class FailedKernel:
    """As `backends/opencl/verdicts.py` keeps it."""

    program: str
    kernel: str
    variant: str
    kind: str
    detail: str


@dataclass
class Attempt:
    """A library or device that was tried, and what came of it."""

    what: str
    result: str


@dataclass
class FieldReport:
    """`device` is None where no device can be used; `attempts` then say why. `rates` are those of
    the device at its best, `failures` and `tuning` what the cache folder holds for it."""

    engine: str
    machine: str
    system: str
    attempts: list[Attempt]
    device: DeviceFacts | None = None
    condition: dict[str, Any] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    kernels: list[check.KernelVerdict] = field(default_factory=list)
    failures: list[FailedKernel] = field(default_factory=list)
    tuning: dict[str, str] = field(default_factory=dict)

    @property
    def sound(self) -> bool:
        """Whether there is a device, and all its kernels run and have the right numbers."""
        bad = [k for k in self.kernels if k.verdict in ("wrong", "failed")]
        return self.device is not None and not bad

    def to_dict(self) -> dict[str, Any]:
        """The file's JSON, nothing personal in it."""
        document = {"format": FORMAT, "version": VERSION, **asdict(self)}
        cleaned: dict[str, Any] = privacy.without(document, privacy.secrets())
        return cleaned


@dataclass
class Adopted:
    """What a report changed here: variants that are not used any more, and sizes (of layers) with
    the way they take. `known` counts what was measured or found here already."""

    device: str
    failures: list[FailedKernel]
    tuning: dict[str, str]
    known: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def examine_opencl(note: check.Note = lambda kernel, done, total: None) -> FieldReport:
    """Checks every kernel on the chosen device; takes minutes.

    Raises BackendUnavailableError when the device is lost while it is checked.
    """
    backend = get_backend("opencl")
    rows = backend.attempts() if isinstance(backend, Probed) else []
    tried = [Attempt(Path(t.what).name, shortened(t.result, _MOST_TEXT)) for t in rows]
    report = FieldReport(__version__, platform.machine(), platform.system(), tried)
    try:
        device = open_device(choose())
    except BackendUnavailableError as error:
        report.attempts.append(Attempt("OpenCL", shortened(str(error), _MOST_TEXT)))
        return report
    report.device = _facts(device)
    before = clocks_and_heat()
    rates, report.kernels = check_apart(device, note=note)
    report.condition = {"before": before, "after": clocks_and_heat()}
    report.rates = rates.to_dict()
    report.failures = [FailedKernel(**f._asdict()) for f in device.verdicts.failures.values()]
    report.tuning = dict(sorted(device.tuning.table.items()))
    return report


def _facts(device: Device) -> DeviceFacts:
    own = device.report
    return DeviceFacts(
        device.tuning.key, own.name, own.platform, device.device.vendor.strip(), own.version,
        own.driver, facts.language(device), asdict(device.profile), facts.limits(device),
        facts.extensions(device),
    )  # fmt: skip


def read(path: Path) -> FieldReport:
    """Raises ModelFormatError for what is not a report, VersionError for a newer one."""
    with about(path):
        document = parse(_bytes(path), tr("field report"))
        if document["format"].text() != FORMAT:
            raise ModelFormatError(tr("expected format {format!r}", format=FORMAT), where="format")
        if document["version"].integer() > VERSION:
            raise VersionError(
                tr(
                    "a field report of version {document}, this engine reads up to {version}",
                    document=document["version"].integer(),
                    version=VERSION,
                ),
                command="pip install --upgrade lite-workbench",
            )
        _check(document.value)
        report = document.into(FieldReport)
        for i, failure in enumerate(report.failures):
            if failure.kind not in KINDS:
                known = ", ".join(KINDS)
                raise ModelFormatError(
                    tr("{kind!r}, expected one of {known}", kind=failure.kind, known=known),
                    where=f"failures[{i}].kind",
                )
        for i, row in enumerate(report.kernels):
            if row.verdict not in check.VERDICTS:
                known = ", ".join(check.VERDICTS)
                raise ModelFormatError(
                    tr("{verdict!r}, expected one of {known}", verdict=row.verdict, known=known),
                    where=f"kernels[{i}].verdict",
                )
        if len(report.failures) > MOST_FAILURES:
            raise ModelFormatError(
                tr("more than {most_failures} failures", most_failures=MOST_FAILURES),
                where="failures",
            )
        return report


def _bytes(path: Path) -> bytes:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ModelFormatError(tr("not a regular file"))
        if status.st_size > _MOST_BYTES:
            raise ModelFormatError(
                tr(
                    "{size} bytes, a report has at most {most_bytes}",
                    size=status.st_size,
                    most_bytes=_MOST_BYTES,
                )
            )
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise ModelFormatError(tr("cannot be read ({reason})", reason=reason_of(error))) from None


def _check(document: Any) -> None:
    """Raises ModelFormatError for what no report holds: endless or unprintable texts, numbers that
    are none, values without end."""
    waiting, count = [(document, 0)], 0
    while waiting:
        value, depth = waiting.pop()
        count += 1
        if depth > _MOST_DEPTH or count > _MOST_VALUES:
            raise ModelFormatError(tr("larger or nested deeper than any field report"))
        if isinstance(value, dict):
            waiting += [(part, depth + 1) for pair in value.items() for part in pair]
        elif isinstance(value, list):
            waiting += [(part, depth + 1) for part in value]
        elif isinstance(value, str) and (len(value) > _MOST_TEXT or one_line(value) != value):
            raise ModelFormatError(
                tr(
                    "{one_line:.40} … is not a valid string of a field report",
                    one_line=one_line(value),
                )
            )
        elif isinstance(value, float) and not math.isfinite(value):
            raise ModelFormatError(
                tr("{value} is not a valid number of a field report", value=value)
            )


def adopt(report: FieldReport) -> Adopted:
    """Takes over what failed and what was fastest, on the same device with the same driver. What
    was measured here comes first.

    Raises TargetMismatchError for another device or driver, BackendUnavailableError without one.
    """
    device = open_device(choose())
    own, theirs = device.report, report.device
    if theirs is None or theirs.key != device.tuning.key:
        said = (
            tr("{theirs} with driver {driver}", theirs=theirs.name, driver=theirs.driver)
            if theirs
            else tr("a machine without OpenCL")
        )
        raise TargetMismatchError(
            tr(
                "the report belongs to {said}, but this machine has {own} with driver {driver}",
                said=said,
                own=own.name,
                driver=own.driver,
            ),
            fix=tr("write a report on this device"),
            command="lite doctor --field-report report.json",
        )
    verdicts, tuning = device.verdicts, device.tuning
    lasting = [f for f in report.failures if KINDS[f.kind][1]]
    failures = [f for f in lasting if f.program not in verdicts.failures]
    for failure in failures:
        verdicts.add(Failure(**asdict(failure)))
    new = {size: way for size, way in report.tuning.items() if size not in tuning.table}
    tuning.learn(new)
    tuning.save()
    known = len(lasting) - len(failures) + len(report.tuning) - len(new)
    return Adopted(own.name, failures, new, known)
