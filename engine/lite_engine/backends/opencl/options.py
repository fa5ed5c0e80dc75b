"""`#define` lines that builders put before a kernel's text."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir import DType
from ...ops import get_op
from ...plan import Step
from .profile import DeviceProfile

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
        params = [v for v in get_op(name).attrs.values() if isinstance(v, float)]
    return function_options(name, params)


def join(*options: str) -> str:
    return "\n".join(o for o in options if o)
