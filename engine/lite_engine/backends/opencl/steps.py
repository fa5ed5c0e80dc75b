"""Step → launches, by kernel name. Kernel names are those of `op.kernel("opencl", …)` in `ops/`."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import UnsupportedOperatorError
from ...plan import Plan, Step
from .device import Device
from .launch import Launch

Builder = Callable[[Step, Plan, Device], list[Launch]]
_BUILDERS: dict[str, Builder] = {}


def builds(*names: str) -> Callable[[Builder], Builder]:
    """Registers a function that makes the launches of these kernels."""

    def register(builder: Builder) -> Builder:
        for name in names:
            _BUILDERS[name] = builder
        return builder

    return register


def _fill() -> None:
    """The modules register their builders when they are imported; they import this one."""
    from . import convolutions, elementwise, movement, recurrent, reductions  # noqa: F401


def launches_of(step: Step, plan: Plan, device: Device) -> list[Launch]:
    """Raises UnsupportedOperatorError for a kernel that this backend does not have."""
    _fill()

    builder = _BUILDERS.get(step.kernel)
    if builder is None:
        raise UnsupportedOperatorError(
            f"{step.name}: no OpenCL kernel is called {step.kernel}", (step.name,)
        )
    return [x for x in builder(step, plan, device) if all(x.global_size)]


def kernel_names() -> frozenset[str]:
    _fill()
    return frozenset(_BUILDERS)
