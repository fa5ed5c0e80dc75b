"""Kernel calls with everything fixed beforehand, straight into the OpenCL loader.

A call through pyopencl makes an event and converts its arguments each time, which costs more than
a small kernel runs. Here a call is one foreign function with ready arguments. The loader is the
one that pyopencl has loaded already; handles are plain pointers in both.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from ... import system

Call = Callable[[], int]  # gives an OpenCL status, 0 when it went well


@lru_cache(maxsize=1)
def _entry() -> Any | None:
    """clEnqueueNDRangeKernel of the loader in this process, None where it cannot be found."""
    for path in (p for p in system.mapped_files() if "libOpenCL" in p):
        entry = getattr(ctypes.CDLL(path), "clEnqueueNDRangeKernel", None)
        if entry is not None:
            entry.restype = ctypes.c_int
            return entry
    return None


def prepared(
    cl: Any, queue: Any, kernel: Any, grid: tuple[int, ...], group: tuple[int, ...] | None
) -> Call:
    """A call that enqueues `kernel` as it stands. The caller keeps queue and kernel alive."""
    entry = _entry()
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
