"""What to expect of an OpenCL plan before anything was measured."""

from __future__ import annotations

from lite_messages import tr

from ..plan import Plan
from .choice import host_target

#: For a first guess: ms of one kernel call or copy on a GPU, and a CPU thread's GFLOP/s.
_CALL_MS = 0.005
_THREAD_GFLOPS = 50.0


def unmeasured(plan: Plan, kind: str, threads: int) -> str:
    """What may be expected of a plan on an OpenCL device of this kind ("GPU", "CPU", "other")
    beside the CPU backend, before anything was measured."""
    host = host_target()
    if kind == "CPU":
        why = tr(
            "the device is a CPU, where OpenCL reached 0.4 to 0.8 of {host}'s speed", host=host
        )
        return tr(
            "not measured; expected to be slower than {host}: {why} (tuning measures it)",
            host=host,
            why=why,
        )
    calls = sum(s.backend == "opencl" for s in plan.steps)
    flops = sum(s.flops for s in plan.steps)
    calls_ms, host_ms = calls * _CALL_MS, flops / (threads * _THREAD_GFLOPS * 1e6)
    if calls_ms > host_ms:
        why = tr(
            "{calls} calls take about {calls_ms:.2f} ms, the CPU {host_ms:.2f} ms in all",
            calls=calls,
            calls_ms=calls_ms,
            host_ms=host_ms,
        )
        return tr(
            "not measured; expected to be slower than {host}: {why} (tuning measures it)",
            host=host,
            why=why,
        )
    return tr("not measured; every layer with an OpenCL kernel runs on OpenCL (tuning measures it)")
