"""What a step becomes on the device: kernel calls as plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir import DType
from ...plan import PlanTensor, Step
from .device import Device


@dataclass
class Launch:
    """One kernel call. `args` are PlanTensors, arrays and images (uploaded once), scratch memory,
    ints and floats; `options` are `#define` lines put before the source."""

    file: str
    kernel: str
    args: list[Any]
    global_size: tuple[int, ...]
    options: str = ""
    local_size: tuple[int, ...] | None = None


#: Work-items of a group where a kernel leaves its size open.
_GROUP_ITEMS = 128


def grouped(grid: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(grid rounded up, group size) for a kernel that checks its bounds. Left alone, a driver
    takes a divisor of the grid, which for a prime number is 1."""
    wide = 1
    while wide < min(grid[0], _GROUP_ITEMS):
        wide *= 2
    group = (wide, _GROUP_ITEMS // wide, 1)[: len(grid)]
    return tuple(-(-n // g) * g for n, g in zip(grid, group)), group


@dataclass(eq=False)
class Scratch:
    """Device memory that a step's launches share among themselves, of `dtype` numbers."""

    nbytes: int
    dtype: DType = DType.F32


@dataclass(frozen=True, eq=False)
class Image:
    """An RGBA image2d of `dtype` numbers: constant, (height, width, 4) of them, or scratch."""

    width: int
    height: int
    dtype: DType
    data: np.ndarray | None = None

    @classmethod
    def of(cls, data: np.ndarray, dtype: DType) -> Image:
        return cls(data.shape[1], data.shape[0], dtype, np.ascontiguousarray(data, dtype.np))


#: Unary functions as OpenCL expressions of x; a and b are the step's constants.
FUNCTIONS = {
    "Identity": "(x)",
    "Relu": "AT_LEAST(x,0.0f)",
    "Clip": "AT_MOST(AT_LEAST(x,ACT_A),ACT_B)",
    "LeakyRelu": "((x)<0.0f?ACT_A*(x):(x))",
    "Sigmoid": "SIGMOID(x)",
    "Tanh": "tanh(x)",
    "HardSigmoid": "CLAMP01(ACT_A*(x)+ACT_B)",
    "HardSwish": "((x)*CLAMP01((x)/6.0f+0.5f))",
    "Silu": "((x)*SIGMOID(x))",
    "Gelu": "(0.5f*(x)*(1.0f+erf((x)*0.70710678f)))",
    "GeluTanh": "(0.5f*(x)*(1.0f+tanh(0.79788456f*((x)+0.044715f*(x)*(x)*(x)))))",
    "Elu": "((x)<0.0f?ACT_A*expm1(x):(x))",
    "Selu": "(ACT_B*((x)<0.0f?ACT_A*expm1(x):(x)))",
    "Softplus": "SOFTPLUS(x)",
    "Softsign": "((x)/(1.0f+fabs(x)))",
    "Mish": "((x)*tanh(SOFTPLUS(x)))",
    "Erf": "erf(x)",
    "Exp": "exp(x)",
    "Log": "log(x)",
    "Sqrt": "sqrt(x)",
    "Reciprocal": "(1.0f/(x))",
    "Abs": "fabs(x)",
    "Neg": "(-(x))",
    "Floor": "floor(x)",
    "Ceil": "ceil(x)",
    "Round": "rint(x)",
    "Sign": "((x)!=(x)?(x):sign(x))",
    "Sin": "sin(x)",
    "Cos": "cos(x)",
}
#: Elements that a work-item of a CPU should at least move.
CPU_RUN = 4096


def widest(device: Device, dtype: DType) -> int:
    """Numbers an item of a simple kernel takes: a CPU's vector register, 16 bytes on a GPU."""
    return 16 // dtype.itemsize if device.local_tiles else device.lanes


def vector(device: Device, dtype: DType, count: int) -> int:
    """The widest vector that divides `count`."""
    most = widest(device, dtype)
    return next(v for v in (16, 8, 4, 1) if v <= most and count % v == 0)


def vectors(device: Device, v: int, aligned: bool = True) -> str:
    """Options of a kernel that takes V numbers at a time, `aligned` when only at multiples of V:
    then a device with half arithmetic reads them as what they are, in one access."""
    wide = join("#define ALIGNED", "#define HALF_TYPES" if device.half_math else "")
    return join(f"#define V {v}", wide if aligned else "")


def rows_per_item(width: int) -> int:
    """Rows of `width` elements for a CPU's work-item; powers of two, so that programs are few."""
    return 1 << (max(1, CPU_RUN // max(width, 1)).bit_length() - 1)


def storage_option(dtype: DType) -> str:
    return "#define HALF" if dtype is DType.F16 else ""


def function_options(name: str, params: list[Any]) -> str:
    """Definitions that make ACT the named function with its constants."""
    if not name:
        return ""
    if name == "Gelu" and params and params[0] in (1, 1.0, "tanh"):
        name, params = "GeluTanh", []
    if name == "Clip":
        low, high = (*params, None, None)[:2]
        params = [-math.inf if low is None else low, math.inf if high is None else high]
    numbers = [float(p) for p in params if not isinstance(p, str)]
    lines = [f"#define ACT(x) {FUNCTIONS[name]}"]
    lines += [f"#define ACT_{letter} {_literal(v)}" for letter, v in zip("AB", numbers)]
    return "\n".join(lines)


def _literal(value: float) -> str:
    if abs(value) > np.finfo(np.float32).max:
        return "INFINITY" if value > 0 else "(-INFINITY)"
    return f"{value!r}f"


def activation_options(step: Step) -> str:
    """Options of a step's fused activation, empty without one."""
    name = step.attrs.get("activation", "")
    params = list(step.attrs.get("activation_params") or [])
    if name and not params:
        from ...ops import get_op

        params = [v for v in get_op(name).attrs.values() if isinstance(v, float)]
    return function_options(name, params)


def join(*options: str) -> str:
    return "\n".join(o for o in options if o)


def strides_of(dims: tuple[int, ...]) -> list[int]:
    """Row-major element strides."""
    out, step = [], 1
    for d in reversed(dims):
        out.append(step)
        step *= d
    return out[::-1]


def place(tensor: PlanTensor | Scratch, width: int) -> list[int]:
    """Elements from row to row of `width` elements, and before the first row: other than `width`
    and 0 for a part of a Concat or Split, which lies in the whole (plan/views.py)."""
    if isinstance(tensor, PlanTensor) and tensor.dims and tensor.pitch != tensor.dims[-1]:
        return [tensor.pitch, tensor.alias_offset // tensor.dtype.itemsize]
    return [width, 0]


def element_type(tensor: PlanTensor) -> str:
    """Integer type of a tensor's element size, for copies."""
    return {1: "uchar", 2: "ushort", 4: "uint", 8: "ulong"}[tensor.dtype.itemsize]
