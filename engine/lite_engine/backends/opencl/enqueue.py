"""Kernel calls and copies with everything fixed beforehand, straight into the OpenCL loader.

A call through pyopencl makes an event and converts its arguments each time, which costs more than
a small kernel runs. Here a call is one foreign function with ready arguments. The loader is the
one that pyopencl has loaded already; handles are plain pointers in both.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from ... import system

Call = Callable[[], int]  # gives an OpenCL status, 0 when it went well


@cache
def _entry(name: str) -> Any | None:
    """A function of the loader in this process, None where it cannot be found."""
    for path in (p for p in system.mapped_files() if "libOpenCL" in p):
        entry = getattr(ctypes.CDLL(path), name, None)
        if entry is not None:
            entry.restype = ctypes.c_int
            return entry
    return None


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
    sizes = (ctypes.c_size_t * len(grid))(*grid)
    local = (ctypes.c_size_t * len(grid))(*group) if group else None
    return partial(
        entry, ctypes.c_void_p(queue.int_ptr), ctypes.c_void_p(kernel.int_ptr),
        ctypes.c_uint(len(grid)), None, sizes, local, ctypes.c_uint(0), None, None,
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
