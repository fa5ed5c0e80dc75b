"""Where programs run besides this process: emulated AArch64, ssh, adb."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from . import arm_opencl, condition
    from ._base import STAGES, Device, Job, RunnerResult, Stage
    from .backend import DeviceBackend
    from .check import DeviceCheck, check_device, device_features, usable_opencl
    from .emulated import EmulatedDevice, emulator_usability
    from .opencl import OpenCLDevice, OpenCLListing
    from .process import ProcessDevice
    from .registry import (
        BUILT_IN,
        DeviceNameError,
        Entry,
        add_entry,
        find_device,
        load_entries,
        open_address,
        remove_entry,
    )
    from .remote import RemoteDevice
    from .wasm import WasmDevice, wasm_usability

__all__ = [
    "BUILT_IN",
    "STAGES",
    "Device",
    "DeviceBackend",
    "DeviceCheck",
    "DeviceNameError",
    "EmulatedDevice",
    "Entry",
    "Job",
    "OpenCLDevice",
    "OpenCLListing",
    "ProcessDevice",
    "RemoteDevice",
    "RunnerResult",
    "Stage",
    "WasmDevice",
    "add_entry",
    "arm_opencl",
    "check_device",
    "condition",
    "device_features",
    "emulator_usability",
    "find_device",
    "load_entries",
    "open_address",
    "remove_entry",
    "usable_opencl",
    "wasm_usability",
]

_WHERE = {
    "_base": ("STAGES", "Device", "Job", "RunnerResult", "Stage"),
    "backend": ("DeviceBackend",),
    "check": ("DeviceCheck", "check_device", "device_features", "usable_opencl"),
    "emulated": ("EmulatedDevice", "emulator_usability"),
    "opencl": ("OpenCLDevice", "OpenCLListing"),
    "process": ("ProcessDevice",),
    "registry": (
        "BUILT_IN", "DeviceNameError", "Entry", "add_entry", "find_device", "load_entries",
        "open_address", "remove_entry",
    ),
    "remote": ("RemoteDevice",),
    "wasm": ("WasmDevice", "wasm_usability"),
}  # fmt: skip
__getattr__ = lazily(__name__, {name: module for module, names in _WHERE.items() for name in names})
