"""OpenCL on a device: what the runner there lists, without Python."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from lite_messages import tr

from ..documents import parse
from ..errors import DeviceError, ModelFormatError


@dataclass(frozen=True)
class Library:
    """A library that was tried; `state` is "opened", or the kind of its `reason`."""

    library: str
    found_by: str
    state: str
    reason: str
    fix: str


@dataclass(frozen=True)
class OpenCLDevice:
    """What an OpenCL device says of itself. `reason` says why it cannot be used, empty when it can;
    `images` is the largest image2d in columns and rows, 0 without images."""

    index: int
    library: str
    platform: str
    name: str
    vendor: str
    kind: str
    device_class: str
    version: str
    driver: str
    extensions: str
    reason: str
    compute_units: int
    global_memory_bytes: int
    local_memory_bytes: int
    images: list[int]
    fp16: bool
    integer_dot: bool
    matrix_units: bool
    unified_memory: bool

    def text(self) -> str:
        """One line: name, driver, library, abilities, or why not."""
        able = {
            "fp16": self.fp16,
            tr("int8 dot products"): self.integer_dot,
            tr("matrix units"): self.matrix_units,
            tr("images"): all(self.images),
        }
        words = [self.device_class, *(word for word, has in able.items() if has)]
        lead = tr(
            "{name} ({platform}, driver {driver}) from {library}",
            name=self.name, platform=self.platform, driver=self.driver, library=self.library,
        )  # fmt: skip
        return f"{lead}: {self.reason or ', '.join(words)}"


@dataclass
class OpenCLListing:
    """Everything that was found; `failure` where the list could not be made."""

    libraries: list[Library] = field(default_factory=list)
    devices: list[OpenCLDevice] = field(default_factory=list)
    #: SHA-256 of each kernel text that the runner carries, by name.
    kernels: dict[str, str] = field(default_factory=dict)
    failure: str = ""

    @property
    def chosen(self) -> OpenCLDevice | None:
        """The device that is used when none is named: the first usable, GPUs first."""
        usable = [d for d in self.devices if not d.reason]
        return min(usable, key=lambda d: (d.kind != "GPU", d.index), default=None)

    def lines(self) -> list[str]:
        """A line for each device; one that says why there is none."""
        if self.failure or self.devices:
            return [self.failure] if self.failure else [d.text() for d in self.devices]
        there = [x for x in self.libraries if x.state != "missing"]
        if not there:
            return [
                tr(
                    "no OpenCL library in the {searched} locations searched",
                    searched=len(self.libraries),
                )
            ]
        return [
            f"{x.library} ({x.found_by}): {x.reason or tr('it has no device')}"
            + (f"; {x.fix}" if x.fix else "")
            for x in there
        ]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def read_listing(device: str, text: str) -> OpenCLListing:
    """What `lite_run_opencl --list-devices` printed. Raises DeviceError when it is damaged."""
    try:
        listing = parse(text, tr("OpenCL listing")).into(OpenCLListing)
    except (ModelFormatError, TypeError) as error:
        raise DeviceError(
            tr("the runner's list is damaged ({error})", error=error), where=device
        ) from None
    if any(len(d.images) != 2 for d in listing.devices):
        raise DeviceError(tr("the runner's list is damaged (images)"), where=device)
    return listing
