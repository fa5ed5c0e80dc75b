"""Kernel calls and copies with everything fixed beforehand, straight into the OpenCL loader.

A call through pyopencl makes an event and converts its arguments each time, which costs more than
a small kernel runs. Here a call is one foreign function with ready arguments. The loader is the
one that pyopencl has loaded already; handles are plain pointers in both.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from ... import system

Call = Callable[[], int]  # gives an OpenCL status, 0 when it went well


@cache
def _entry(name: str, restype: Any = ctypes.c_int) -> Any | None:
    """A function of the loader in this process, None where it cannot be found."""
    for path in (p for p in system.mapped_files() if "libOpenCL" in p):
        entry = getattr(ctypes.CDLL(path), name, None)
        if entry is not None:
            entry.restype = restype
            return entry
    return None


class Refused(Exception):
    """A call that the driver refuses, by its name, and the status."""

    def __init__(self, cl: Any, call: str, status: int) -> None:
        super().__init__(": ".join([call, cl.status_code.to_string(status, "%d")]))


class Handle:
    """A kernel object of the driver. pyopencl's own writes, compiles and keeps a Python function
    for each, which takes longer than making it and setting its arguments."""

    def __init__(self, int_ptr: int, function_name: str, release: Any) -> None:
        self.int_ptr, self.function_name = int_ptr, function_name
        self._release, self._pointer = release, ctypes.c_void_p(int_ptr)

    def __del__(self) -> None:
        self._release(self._pointer)


def bound(cl: Any, program: Any, name: str, args: Sequence[Any]) -> Any:
    """A kernel of a built program with its arguments set: buffers, images, NumPy's scalars, which
    the caller keeps alive. Raises Refused, pyopencl's Error."""
    create = _entry("clCreateKernel", ctypes.c_void_p)
    set_arg, release = _entry("clSetKernelArg"), _entry("clReleaseKernel")
    if create is None or set_arg is None or release is None:
        kernel = cl.Kernel(program, name)
        kernel.set_args(*args)
        return kernel
    status = ctypes.c_int()
    made = create(ctypes.c_void_p(program.int_ptr), name.encode(), ctypes.byref(status))
    if not made:
        raise Refused(cl, "clCreateKernel", status.value)
    handle, kernel = Handle(made, name, release), ctypes.c_void_p(made)
    for i, arg in enumerate(args):
        number = isinstance(arg, np.generic)
        raw = arg.tobytes() if number else bytes(ctypes.c_void_p(arg.int_ptr))
        refused = set_arg(kernel, ctypes.c_uint(i), ctypes.c_size_t(len(raw)), raw)
        if refused:
            raise Refused(cl, "clSetKernelArg", refused)
    return handle


def prepared(
    cl: Any, queue: Any, kernel: Any, grid: tuple[int, ...], group: tuple[int, ...] | None
) -> Call:
    """A call that enqueues `kernel` as it stands. The caller keeps queue and kernel alive."""
    entry = _entry("clEnqueueNDRangeKernel")
    if entry is None:

        def through_pyopencl() -> int:
            cl.enqueue_nd_range_kernel(queue, kernel, grid, group)
            return 0

        return through_pyopencl
    return partial(entry, *_range(queue, kernel, grid, group), None)


def noted(
    cl: Any, queue: Any, kernel: Any, grid: tuple[int, ...], group: tuple[int, ...] | None
) -> Any:
    """Enqueues `kernel` once: the event. Raises Refused, pyopencl's Error."""
    entry = _entry("clEnqueueNDRangeKernel")
    if entry is None:
        return cl.enqueue_nd_range_kernel(queue, kernel, grid, group)
    event = ctypes.c_void_p()
    status = entry(*_range(queue, kernel, grid, group), ctypes.byref(event))
    if status:
        raise Refused(cl, "clEnqueueNDRangeKernel", status)
    return cl.Event.from_int_ptr(event.value, retain=False)


def _range(
    queue: Any, kernel: Any, grid: tuple[int, ...], group: tuple[int, ...] | None
) -> tuple[Any, ...]:
    """Arguments of clEnqueueNDRangeKernel up to the event: no offset, nothing to wait for."""
    sizes = (ctypes.c_size_t * len(grid))(*grid)
    local = (ctypes.c_size_t * len(grid))(*group) if group else None
    return (
        ctypes.c_void_p(queue.int_ptr), ctypes.c_void_p(kernel.int_ptr), ctypes.c_uint(len(grid)),
        None, sizes, local, ctypes.c_uint(0), None,
    )  # fmt: skip


def prepared_copy(cl: Any, queue: Any, buffer: Any, array: np.ndarray, upload: bool) -> Call:
    """A call that enqueues the copy of a whole array to a buffer, `upload`, or from it. The caller
    keeps all three alive."""
    entry = _entry("clEnqueueWriteBuffer" if upload else "clEnqueueReadBuffer")
    if entry is None:

        def through_pyopencl() -> int:
            ends = (buffer, array) if upload else (array, buffer)
            cl.enqueue_copy(queue, *ends, is_blocking=False)
            return 0

        return through_pyopencl
    return partial(
        entry, ctypes.c_void_p(queue.int_ptr), ctypes.c_void_p(buffer.int_ptr), ctypes.c_uint(0),
        ctypes.c_size_t(0), ctypes.c_size_t(array.nbytes), ctypes.c_void_p(array.ctypes.data),
        ctypes.c_uint(0), None, None,
    )  # fmt: skip
