"""Kernel calls and copies with everything fixed beforehand, straight into the OpenCL loader.

A call through pyopencl makes an event and converts its arguments each time, which costs more than
a small kernel runs. Here a call is one foreign function with ready arguments. The loader is the
one that pyopencl has loaded already; handles are plain pointers in both.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from ... import system

Call = Callable[[], int]  # gives an OpenCL status, 0 when it went well
#: Of clGetEventProfilingInfo.
_QUEUED, _START, _END = ctypes.c_uint(0x1280), ctypes.c_uint(0x1282), ctypes.c_uint(0x1283)
_EIGHT_BYTES = ctypes.c_size_t(8)
_SET_ARG = (ctypes.c_int, ctypes.c_void_p, ctypes.c_uint, ctypes.c_size_t, ctypes.c_char_p)
_POINTER_BYTES = ctypes.sizeof(ctypes.c_void_p)


@cache
def _entry(name: str, restype: Any = ctypes.c_int, *argtypes: Any) -> Any | None:
    """A function of the loader in this process, None where it cannot be found."""
    for path in (p for p in system.mapped_files() if "libOpenCL" in p):
        entry = getattr(ctypes.CDLL(path), name, None)
        if entry is not None:
            entry.restype, entry.argtypes = restype, argtypes or None
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
    set_arg, release = _entry("clSetKernelArg", *_SET_ARG), _entry("clReleaseKernel")
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
        raw = arg.tobytes() if number else arg.int_ptr.to_bytes(_POINTER_BYTES, sys.byteorder)
        refused = set_arg(kernel, i, len(raw), raw)
        if refused:
            raise Refused(cl, "clSetKernelArg", refused)
    return handle


def prepared(
    cl: Any, queue: Any, kernel: Any, grid: tuple[int, ...], group: tuple[int, ...] | None
) -> partial[int]:
    """A call that enqueues `kernel` as it stands. The caller keeps queue and kernel alive."""
    entry = _entry("clEnqueueNDRangeKernel")
    if entry is None:
        return partial(_through_pyopencl, cl, queue, kernel, grid, group)
    return partial(entry, *_range(queue, kernel, grid, group), None)


def _through_pyopencl(cl: Any, queue: Any, *launch: Any) -> int:
    cl.enqueue_nd_range_kernel(queue, *launch)
    return 0


class Noted:
    """An event of the driver: when a call was put into its queue, started and ended, in ns."""

    def __init__(self, cl: Any, event: ctypes.c_void_p) -> None:
        self._cl, self._event = cl, event
        self._ask, self._release = _entry("clGetEventProfilingInfo"), _entry("clReleaseEvent")

    def __del__(self) -> None:
        if self._release is not None:
            self._release(self._event)

    def span(self) -> tuple[int, int, int]:
        """Once its queue has finished. Raises Refused."""
        return self._time(_QUEUED), self._time(_START), self._time(_END)

    def _time(self, what: ctypes.c_uint) -> int:
        time = ctypes.c_uint64()
        assert self._ask is not None  # it is where clEnqueueNDRangeKernel is
        status = self._ask(self._event, what, _EIGHT_BYTES, ctypes.byref(time), None)
        if status:
            raise Refused(self._cl, "clGetEventProfilingInfo", status)
        return time.value


def noted(cl: Any, queue: Any, call: partial[int]) -> Any:
    """Enqueues what a prepared `call` does on another queue, once: its event, for `span`. Raises
    Refused, pyopencl's Error."""
    if call.func is _through_pyopencl:
        return cl.enqueue_nd_range_kernel(queue, *call.args[2:])
    event = ctypes.c_void_p()
    status = call.func(ctypes.c_void_p(queue.int_ptr), *call.args[1:-1], ctypes.byref(event))
    if status:
        raise Refused(cl, "clEnqueueNDRangeKernel", status)
    return Noted(cl, event)


def span(event: Any) -> tuple[int, int, int]:
    """`Noted.span`, of an event of pyopencl's, too."""
    if isinstance(event, Noted):
        return event.span()
    times = event.profile
    return times.queued, times.start, times.end


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
