"""A device that is given by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..devices import Device


def device_of(device: Device | str | None) -> Device | None:
    """The device, or the one of this name or address; None is this process. Raises UsageError."""
    if not isinstance(device, str):
        return device
    from ..devices import find_device  # a program on this machine needs none of them

    return find_device(device)
