"""What a device does at best, by kernels that do nothing else.

Multiply-adds in registers give the arithmetic peak, a copy of memory larger than any cache the
bandwidth (bytes read and bytes written), empty kernels what one more call costs host and device.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .device import Device
from .enqueue import prepared
from .profile import BUILD_OPTIONS
from .programs import built

_CHAINS, _ROUNDS = 16, 256
_SOURCE = """
#ifdef HALF
#pragma OPENCL EXTENSION cl_khr_fp16 : enable
#define N half2
#else
#define N float
#endif
kernel void multiply(global float *y, float a) {
  N s[CHAINS];
  const N f = (N)(a), g = (N)(0.25f);
  for (int i = 0; i < CHAINS; ++i) s[i] = (N)(i + get_local_id(0));
  for (int r = 0; r < ROUNDS; ++r)
    for (int i = 0; i < CHAINS; ++i) s[i] = s[i] * f + g;
  N t = (N)(0);
  for (int i = 0; i < CHAINS; ++i) t += s[i];
#ifdef HALF
  y[get_global_id(0)] = (float)t.x + (float)t.y;
#else
  y[get_global_id(0)] = t;
#endif
}
kernel void move(global const float4 *x, global float4 *y) {
  y[get_global_id(0)] = x[get_global_id(0)];
}
kernel void nothing(global float *y) { if (get_global_id(0) > 1 << 30) y[0] = 0; }
"""
#: Work-items of a group, where the device takes as many.
_GROUP = 256


@dataclass(frozen=True)
class Roofs:
    """GFLOP/s (a multiply-add counts two), GB/s, µs. `f16_gflops` is 0 without half arithmetic."""

    f32_gflops: float
    f16_gflops: float
    gbytes_per_s: float
    enqueue_us: float
    empty_kernel_us: float

    def least_us(self, flops: int, nbytes: int, precision: str = "fp32") -> float:
        """What a layer needs at least: the longer of its arithmetic and its memory traffic."""
        rate = self.f16_gflops if precision == "fp16" and self.f16_gflops else self.f32_gflops
        return max(flops / rate, nbytes / self.gbytes_per_s) / 1e3

    def to_dict(self) -> dict[str, float]:
        return {k: round(v, 2) for k, v in asdict(self).items()}


def measure(
    device: Device, *, items: int = 1 << 20, megabytes: int = 512, calls: int = 1000
) -> Roofs:
    """Raises BackendUnavailableError without memory for two buffers of that size, pyopencl's Error
    when the device fails."""
    cl = device.cl
    group = min(_GROUP, device.device.max_work_group_size)

    def program(half: bool) -> Any:
        head = f"#define CHAINS {_CHAINS}\n#define ROUNDS {_ROUNDS}\n"
        head += "#define HALF\n" if half else ""
        return built(cl, cl.Program(device.context, head + _SOURCE), BUILD_OPTIONS)

    def seconds(kernel: Any, grid: int, *args: Any) -> float:
        kernel.set_args(*args)
        best = float("inf")
        for _ in range(8):
            event = cl.enqueue_nd_range_kernel(device.timed_queue, kernel, (grid,), (group,))
            device.timed_queue.finish()
            best = min(best, (event.profile.end - event.profile.start) / 1e9)
        return best

    small = device.buffer(items * 4)
    flops = items * _CHAINS * _ROUNDS * 2
    single = program(False)
    rates = [flops / seconds(cl.Kernel(single, "multiply"), items, small, np.float32(0.5))]
    if device.profile.half_math:
        half = cl.Kernel(program(True), "multiply")
        rates.append(2 * flops / seconds(half, items, small, np.float32(0.5)))
    nbytes = megabytes << 20
    source, target = device.buffer(nbytes), device.buffer(nbytes)
    moved = 2 * nbytes / seconds(cl.Kernel(single, "move"), nbytes // 16, source, target)
    empty = cl.Kernel(single, "nothing")
    empty.set_args(small)
    call = prepared(cl, device.queue, empty, (group,), (group,))
    enqueue, alone = _empty(device, call, calls)
    return Roofs(rates[0] / 1e9, rates[1] / 1e9 if rates[1:] else 0, moved / 1e9, enqueue, alone)


def _empty(device: Device, call: Any, calls: int) -> tuple[float, float]:
    """µs of the host for one more call, and from call to call when the queue is full."""
    best = [float("inf")] * 2
    for _ in range(5):
        device.queue.finish()
        begin = time.perf_counter()
        for _ in range(calls):
            call()
        given = time.perf_counter()
        device.queue.finish()
        times = (given - begin, time.perf_counter() - begin)
        best = [min(a, b) for a, b in zip(best, times)]
    return best[0] / calls * 1e6, best[1] / calls * 1e6
