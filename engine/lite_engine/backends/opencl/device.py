"""The chosen OpenCL device: context, queue, programs built and cached."""

from __future__ import annotations

import os
import threading
import time
import warnings
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from lite_messages import tr

from ... import settings
from ...errors import BackendUnavailableError
from ...ir import DType
from . import discover, dot_products, matrix_units
from .profile import BUILD_OPTIONS, DeviceProfile, class_of
from .programs import Programs, built, first_error
from .registry import Target
from .tuning import Tuning
from .verdicts import Verdicts
from .weight_buffers import WeightBuffers

_HALF_SOURCE = """
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
kernel void h(global half *x, global float *y) {
  const half4 a = *(global const half4 *)x;
  const half2 s = a.xx * a.xy + a.zw;
  y[0] = (float)s.x;
  x[4] = s.y;
}
"""
_PROBE_SOURCE = "kernel void twice(global float *x) { x[get_global_id(0)] *= 2; }"


@dataclass(frozen=True)
class DeviceReport:
    """One device of one platform; `reason` says why it cannot be used, empty when it can."""

    index: int
    platform: str
    name: str
    kind: str  # "GPU" | "CPU" | "other"
    version: str
    driver: str
    compute_units: int
    global_memory_bytes: int
    fp16: bool
    image2d: bool
    reason: str


@dataclass
class Device:
    """A usable device. One queue for all, and one that notes times; `lock` guards building and
    enqueueing."""

    report: DeviceReport
    cl: Any
    device: Any
    context: Any
    queue: Any
    timed_queue: Any
    profile: DeviceProfile
    tuning: Tuning
    programs: Programs
    verdicts: Verdicts
    own_memory: bool = False  # apart from the host's
    weights: WeightBuffers = field(default_factory=WeightBuffers)
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def target(self) -> Target:
        """What launches for this device are made for, before anything failed on it."""
        return Target(self.profile, self.tuning.pick)

    def program(self, file: str, defines: str = "") -> Any:
        """The built program of kernels/FILE.cl after `#define` lines.

        Raises BackendUnavailableError with the first error of the build log.
        """
        with self.lock:
            return self.programs.get(file, defines)

    def buffer(self, nbytes: int, data: np.ndarray | None = None) -> Any:
        """Device memory. Raises BackendUnavailableError when there is not enough."""
        flags = self.cl.mem_flags.READ_WRITE
        try:
            if data is None:
                return self.cl.Buffer(self.context, flags, max(nbytes, 4))
            flags |= self.cl.mem_flags.COPY_HOST_PTR
            return self.cl.Buffer(self.context, flags, hostbuf=np.ascontiguousarray(data))
        except self.cl.Error as error:
            raise BackendUnavailableError(
                tr(
                    "{nbytes} bytes of memory could not be allocated ({error})",
                    nbytes=nbytes,
                    error=error,
                ),
                where=self.report.name,
            ) from None

    def image(self, width: int, height: int, dtype: DType, data: np.ndarray | None = None) -> Any:
        """An RGBA image2d of f32, f16 or u32. Raises BackendUnavailableError without enough
        memory."""
        cl = self.cl
        kind = cl.channel_type
        kinds = {DType.F32: kind.FLOAT, DType.F16: kind.HALF_FLOAT, DType.U32: kind.UNSIGNED_INT32}
        form = cl.ImageFormat(cl.channel_order.RGBA, kinds[dtype])
        flags = cl.mem_flags.READ_WRITE
        flags |= cl.mem_flags.COPY_HOST_PTR if data is not None else 0
        try:
            return cl.create_image(self.context, flags, form, shape=(width, height), hostbuf=data)
        except cl.Error as error:
            raise BackendUnavailableError(
                tr(
                    "an image of {width} x {height} could not be allocated ({error})",
                    width=width,
                    height=height,
                    error=error,
                ),
                where=self.report.name,
            ) from None


def import_pyopencl() -> Any:
    """pyopencl, told about a driver library without ICD file. Raises BackendUnavailableError."""
    named = settings.get("LITE_OPENCL_LIBRARY")
    tried = discover.attempts()
    if not any(a.good for a in tried):
        reason, fix = discover.why_not()
        raise BackendUnavailableError(reason, fix=fix)
    if named:
        if not tried[0].good:
            raise BackendUnavailableError(
                f"LITE_OPENCL_LIBRARY={named}: {tried[0].reason}",
                fix=tried[0].opening.fix,
            )
        os.environ["OCL_ICD_VENDORS"] = named
    elif "OCL_ICD_VENDORS" not in os.environ:
        good = [a for a in tried if a.good]
        if all(a.found_by.startswith("vendor") for a in good):
            os.environ["OCL_ICD_VENDORS"] = good[0].candidate
    try:
        import pyopencl
    except ImportError:
        raise BackendUnavailableError(
            tr("pyopencl is not installed"), command="pip install 'lite-workbench[opencl]'"
        ) from None
    # What a compiler says goes to the debug log (programs.py), not to the terminal.
    warnings.filterwarnings("ignore", category=pyopencl.CompilerWarning)
    return pyopencl


#: Where drivers were first used: their threads do not live on in a forked process, which would wait
#: for them forever.
_process: list[int] = []


def check_process() -> None:
    """Raises BackendUnavailableError in a process that was forked after drivers were used."""
    if _process and _process[0] != os.getpid():
        raise BackendUnavailableError(
            tr("OpenCL was used before this process was forked, and its drivers do not go on here"),
            fix=tr("start the process with multiprocessing's spawn, or use the CPU"),
        )


@lru_cache(maxsize=1)
def reports() -> tuple[DeviceReport, ...]:
    """Every device of every platform. Raises BackendUnavailableError when there is no platform."""
    cl = import_pyopencl()
    _process.append(os.getpid())
    out: list[DeviceReport] = []
    for device in _all_devices(cl):
        out.append(_report(cl, device, len(out)))
    if not out:
        raise BackendUnavailableError(
            tr("OpenCL has platforms but no device"), fix=tr("install a driver")
        )
    return tuple(out)


def _all_devices(cl: Any) -> list[Any]:
    try:
        platforms = cl.get_platforms()
    except cl.Error as error:
        reason, fix = discover.why_not()
        raise BackendUnavailableError(
            tr("no OpenCL platform ({error}; {reason})", error=error, reason=reason), fix=fix
        ) from None
    devices = []
    for platform in platforms:
        try:
            devices += platform.get_devices()
        except cl.Error:
            continue  # a platform without devices
    return devices


def _report(cl: Any, device: Any, index: int) -> DeviceReport:
    kind = {cl.device_type.GPU: "GPU", cl.device_type.CPU: "CPU"}.get(device.type & 6, "other")
    return DeviceReport(
        index,
        device.platform.name.strip(),
        device.name.strip(),
        kind,
        device.version.strip(),
        device.driver_version.strip(),
        device.max_compute_units,
        device.global_mem_size,
        has_fp16(cl, device),
        bool(device.image_support),
        _probe(cl, device),
    )


def has_fp16(cl: Any, device: Any) -> bool:
    """Half arithmetic. NVIDIA's driver has it without listing the extension, so it is asked for
    what the kernels use."""
    if "cl_khr_fp16" in device.extensions.split():
        return True
    if "NVIDIA" not in device.platform.name:
        return False
    try:
        built(cl, cl.Program(cl.Context([device]), _HALF_SOURCE))
    except cl.Error:
        return False
    return True


def _probe(cl: Any, device: Any) -> str:
    """Builds and runs a trivial kernel; why it failed, empty when the numbers are right."""
    try:
        context = cl.Context([device])
        return runs_trivially(cl, context, cl.CommandQueue(context))
    except cl.Error as error:
        return tr(
            "a trivial kernel does not run: {first_error}", first_error=first_error(str(error))
        )


def runs_trivially(cl: Any, context: Any, queue: Any) -> str:
    """Why not even a trivial kernel runs; empty when its numbers are right."""
    try:
        values = np.arange(4, dtype=np.float32)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        buffer = cl.Buffer(context, flags, hostbuf=values)
        built(cl, cl.Program(context, _PROBE_SOURCE)).twice(queue, (4,), None, buffer)
        cl.enqueue_copy(queue, values, buffer)
    except cl.Error as error:
        return tr(
            "a trivial kernel does not run: {first_error}", first_error=first_error(str(error))
        )
    return (
        "" if np.array_equal(values, [0, 2, 4, 6]) else tr("a trivial kernel gives wrong numbers")
    )


def choose() -> DeviceReport:
    """LITE_OPENCL_DEVICE (index or part of the name), else the first usable, GPUs first.

    Raises BackendUnavailableError naming each device and why it is out, or as `check_process`.
    """
    check_process()
    found = reports()
    wanted = settings.get("LITE_OPENCL_DEVICE")
    if wanted is not None:
        match = [r for r in found if wanted == str(r.index) or wanted.lower() in r.name.lower()]
        if not match:
            names = ", ".join(f"{r.index} {r.name}" for r in found)
            raise BackendUnavailableError(
                tr("LITE_OPENCL_DEVICE={wanted} is not one of: {names}", wanted=wanted, names=names)
            )
        found = tuple(match)
    usable = [r for r in found if not r.reason]
    if not usable:
        raise BackendUnavailableError("; ".join(f"{r.name}: {r.reason}" for r in found))
    return min(usable, key=lambda r: (r.kind != "GPU", r.index))


@lru_cache(maxsize=4)
def open_device(report: DeviceReport) -> Device:
    """The device ready for use. Raises BackendUnavailableError."""
    cl = import_pyopencl()
    device = _all_devices(cl)[report.index]
    try:
        context = cl.Context([device])
        queue = cl.CommandQueue(context)
        timed = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    except cl.Error as error:
        raise BackendUnavailableError(
            tr("{report} cannot be opened: {error}", report=report.name, error=error)
        ) from None
    facts = (report.platform, report.name, report.version, report.driver)
    tuning = Tuning.of_device(settings.cache_dir() / "opencl", *facts)
    profile = _profile(cl, device, report)
    if profile.half_math and matrix_units.work(cl, context, queue, BUILD_OPTIONS):
        profile = replace(profile, matrix_units=True)
    profile = replace(profile, dot=dot_products.found(cl, context, queue, BUILD_OPTIONS))
    programs = Programs(cl, context, facts, report.index, profile.build_options)
    table = tuning.path.with_name(f"verdicts-{tuning.key}.json")
    verdicts = Verdicts.load(table, report.name, report.driver)
    return Device(
        report, cl, device, context, queue, timed, profile, tuning, programs, verdicts,
        own_memory=not device.host_unified_memory,
    )  # fmt: skip


def _profile(cl: Any, device: Any, report: DeviceReport) -> DeviceProfile:
    """What a device says of itself; whether its matrix units and dot products work is found out
    later."""
    tiles = report.kind != "CPU"
    device_class = class_of(report.kind, report.platform, report.name, device.vendor)
    return DeviceProfile(
        report.kind,
        device_class,
        report.name,
        report.compute_units,
        device.local_mem_size,
        lanes=next(v for v in (16, 8, 4) if v <= max(4, device.native_vector_width_float)),
        fp16=report.fp16,
        dot="khr" if "cl_khr_integer_dot_product" in device.extensions.split() else "",
        images=(device.image2d_max_width, device.image2d_max_height) if report.image2d else (0, 0),
        prefers_images=device_class == "adreno",
        fast_fma=not tiles and bool(device.single_fp_config & cl.device_fp_config.FMA),
        local_tiles=tiles,
    )


_COPIED_BYTES = (1 << 12, 1 << 22)
_COPIES = 10


def copy_cost(device: Device) -> tuple[float, float]:
    """ms of a copy between host and device, as (each, for every byte): the slower way of both."""
    least = []
    for nbytes in _COPIED_BYTES:
        array, buffer = np.zeros(nbytes, np.uint8), device.buffer(nbytes)
        ways = [float("inf")] * 2
        with device.lock:
            for _ in range(_COPIES):
                for i, pair in enumerate(((buffer, array), (array, buffer))):
                    began = time.perf_counter()
                    device.cl.enqueue_copy(device.queue, *pair)
                    device.queue.finish()
                    ways[i] = min(ways[i], (time.perf_counter() - began) * 1e3)
        least.append(max(ways))
    each = max(0.0, (least[1] - least[0]) / (_COPIED_BYTES[1] - _COPIED_BYTES[0]))
    return least[0], each
