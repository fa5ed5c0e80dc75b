"""Where programs run besides this process: emulated AArch64, ssh, adb."""

from ._base import Device, RunnerResult
from .backend import DeviceBackend
from .emulated import EmulatedDevice, emulator_usability

__all__ = ["Device", "DeviceBackend", "EmulatedDevice", "RunnerResult", "emulator_usability"]
