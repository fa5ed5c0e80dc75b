"""`#define` lines that builders put before a kernel's text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...ir import DType
from ...ops import get_op
from ...ops.activation import unary_params
from ...plan import Step
from .profile import DeviceProfile

#: Elements that a work-item of a CPU should at least move.
CPU_RUN = 4096


def widest(profile: DeviceProfile, dtype: DType) -> int:
    """Numbers an item of a simple kernel takes: a CPU's vector register, 16 bytes on a GPU."""
    return 16 // dtype.itemsize if profile.local_tiles else profile.lanes


def vector(profile: DeviceProfile, dtype: DType, count: int) -> int:
    """The widest vector that divides `count`."""
    most = widest(profile, dtype)
    return next(v for v in (16, 8, 4, 1) if v <= most and count % v == 0)


def vectors(profile: DeviceProfile, v: int, aligned: bool = True) -> str:
    """Options of a kernel that takes V numbers at a time, `aligned` when only at multiples of V:
    then a device with half arithmetic reads them as what they are, in one access."""
    wide = join("#define ALIGNED", "#define HALF_TYPES" if profile.half_math else "")
    return join(f"#define V {v}", wide if aligned else "")


def several(profile: DeviceProfile, count: int) -> tuple[int, str]:
    """(V, options) of a kernel that takes V bytes at a time: the widest vector that divides
    `count`, with sums of 32 bits in registers."""
    v = vector(profile, DType.F32, count)
    return v, join(f"#define V {v}", "#define ALIGNED" if v > 1 else "")


def rows_per_item(width: int) -> int:
    """Rows of `width` elements for a CPU's work-item; powers of two, so that programs are few."""
    return 1 << (max(1, CPU_RUN // max(width, 1)).bit_length() - 1)


def storage_option(dtype: DType) -> str:
    return "#define HALF" if dtype is DType.F16 else ""


def code_of(op: str, kernel: str) -> str:
    """The operator's own part of a kernel that several share."""
    return next(k.code for k in get_op(op).kernels if (k.backend, k.name) == ("opencl", kernel))


def function_options(name: str, params: Sequence[float | None]) -> str:
    """Definitions that make ACT the named unary operator with its attributes; Clip's are the two
    bounds, None where it is open."""
    if not name:
        return ""
    if name == "Clip":
        low, high = (*params, None, None)[:2]
        params = [-math.inf if low is None else low, math.inf if high is None else high]
    lines = [f"#define ACT(x) {code_of(name, 'unary')}"]
    lines += [f"#define ACT_{letter} {literal(float(v or 0))}" for letter, v in zip("AB", params)]
    return "\n".join(lines)


def literal(value: float) -> str:
    """A float as OpenCL C writes it."""
    if abs(value) > np.finfo(np.float32).max:
        return "INFINITY" if value > 0 else "(-INFINITY)"
    return f"{value!r}f"


@dataclass(frozen=True)
class Activation:
    """A fused activation, identity by default.

    `options` define ACT as its function. `line` is (a, b, low, high, gated) of one that is linear
    in pieces, g·min(max(a·x + b, low), high) with g = x where gated, else 1; None for any other.
    Kernels that END a layer take it as arguments, and one program does for all such functions.
    """

    options: str = ""
    line: tuple[float, float, float, float, int] | None = (1.0, 0.0, -math.inf, math.inf, 0)

    @classmethod
    def of(cls, step: Step) -> Activation:
        name = step.attrs.get("activation", "")
        params = list(step.attrs.get("activation_params") or [])
        if not name:
            return IDENTITY
        params = params or unary_params(name, {})
        return cls(function_options(name, params), _line(name, params))

    @property
    def rest(self) -> str:
        """Options of a kernel that takes `arguments`."""
        return "" if self.line else self.options

    @property
    def arguments(self) -> list[float | int]:
        return list(self.line or IDENTITY.line or ())


#: No activation.
IDENTITY = Activation()


def _line(
    name: str, params: Sequence[float | None]
) -> tuple[float, float, float, float, int] | None:
    if name == "Relu":
        return 1.0, 0.0, 0.0, math.inf, 0
    if name == "Clip":
        low, high = (*params, None, None)[:2]
        return 1.0, 0.0, -math.inf if low is None else low, math.inf if high is None else high, 0
    if name == "HardSigmoid":
        return float(params[0] or 0), float(params[1] or 0), 0.0, 1.0, 0
    return (1 / 6, 0.5, 0.0, 1.0, 1) if name == "HardSwish" else None


def activation_options(step: Step) -> str:
    """Options of a step's fused activation, empty without one."""
    return Activation.of(step).options


def join(*options: str) -> str:
    return "\n".join(o for o in options if o)
