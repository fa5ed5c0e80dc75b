"""How a device multiplies four pairs of 8-bit integers at once: by a trial of each way."""

from __future__ import annotations

from typing import Any

import numpy as np

from .programs import KERNELS, built

#: Way (kernels/i8.h) → what a device says where it may have it: an extension, or NVIDIA's platform.
#: Qualcomm's own comes last, whose signs differ between drivers.
WAYS = {
    "khr": "cl_khr_integer_dot_product",
    "arm_add": "cl_arm_integer_dot_product_accumulate_int8",
    "arm": "cl_arm_integer_dot_product_int8",
    "ptx": "NVIDIA",
    "qcom": "cl_qcom_dot_product8",
}
_KERNEL = """
kernel void trial(global const uint *w, global const uint *x, global int *y) {
  const int i = get_global_id(0);
  y[i] = DOT(w[i], x[i], y[i]);
}
"""


def found(cl: Any, context: Any, queue: Any, options: tuple[str, ...]) -> str:
    """The first way that builds and has the right numbers, "" for plain arithmetic. `options` are
    those that kernels are built with."""
    device = queue.device
    said = {*device.extensions.split(), *device.platform.name.split()}
    for way, word in WAYS.items():
        try:
            if word in said and _right(cl, context, queue, options, way):
                return way
        except cl.Error:
            continue
    return ""


def _right(cl: Any, context: Any, queue: Any, options: tuple[str, ...], way: str) -> bool:
    rng = np.random.default_rng(6)
    w = rng.integers(-128, 128, (256, 4)).astype(np.int8)
    x = rng.integers(-128, 128, (256, 4)).astype(np.int8)
    if way == "qcom":
        x = x.view(np.uint8)
    y = rng.integers(-(2**20), 2**20, 256).astype(np.int32)
    exact = y + (w.astype(np.int32) * x).sum(1)
    headers = "\n".join((KERNELS / name).read_text() for name in ("common.h", "i8.h"))
    text = f"#define DOT_{way.upper()}\n{headers}{_KERNEL}"
    program = built(cl, cl.Program(context, text), options)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    buffers = [cl.Buffer(context, flags, hostbuf=a) for a in (w, x, y)]
    program.trial(queue, (256,), None, *buffers)
    cl.enqueue_copy(queue, y, buffers[2])
    return bool(np.array_equal(y, exact))
