"""Launches of integer steps on one tensor: conversions, tables, pools, resizing, softmax."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from ...ir import DType
from ...ops import get_op
from ...ops.litert import LITERT
from ...ops.pool import Window
from ...ops.quant_fixed import line
from ...plan import Plan, PlanTensor, Step
from .constants import Constant
from .integers import Quantization, flip_of, number
from .launch import Launch
from .movement import taps
from .options import CPU_RUN, join, several, storage_option, vector, vectors
from .problem import DEPTHWISE_ITEMS
from .profile import DeviceProfile
from .reductions import blocks
from .registry import Target, builds

_C_TYPES = {
    DType.I8: "char", DType.U8: "uchar", DType.I16: "short", DType.U16: "ushort", DType.I32: "int",
}  # fmt: skip
#: Work-items of a GPU's group that makes a series of a softmax.
_SERIES_ITEMS = 64
#: Bytes of a work-item of a GPU.
_RUN = 16
#: Rows and columns of a window whose loops are unrolled.
_UNROLLED = 3
#: A threshold that no e / S reaches: S is at least 2^30.
_NEVER = (1 << 63, 0, 0)


@builds("quantize", "QuantizeLinear", "DequantizeLinear")
def quantize(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    scale = plan.tensors[step.inputs[1]].data
    assert scale is not None, "the registry's condition asks for constants"
    scale = scale.astype(np.float32).ravel()
    zero = np.full(scale.size, number(plan, step, 2), np.int32)
    if len(step.inputs) > 2 and step.inputs[2] >= 0:
        given = plan.tensors[step.inputs[2]].data
        assert given is not None
        zero = np.broadcast_to(given.ravel(), scale.size).astype(np.int32)
    inner = 1
    if scale.size > 1:
        inner = math.prod(x.dims[int(step.attrs["axis"]) % len(x.dims) + 1 :])
    constants = [Constant.of(scale), Constant.of(zero)]
    v = vector(target.profile, DType.F32, math.gcd(x.size, inner if scale.size > 1 else x.size))
    wide, grid = vectors(target.profile, v, aligned=False), (y.size // v,)
    if step.op == "DequantizeLinear":
        options = join(f"#define TI {_C_TYPES[x.dtype]}", "#define TO float", wide)
        args = [x, *constants, y, y.size, scale.size, inner]
        return [Launch("i8_quantize", "dequantize", args, grid, options)]
    with np.errstate(divide="ignore", over="ignore"):
        constants.insert(1, Constant.of((np.float32(1) / scale).astype(np.float32)))
    limits = np.iinfo(y.dtype.np)
    kinds = join(f"#define TI {_C_TYPES[y.dtype]}", f"#define TO {_C_TYPES[y.dtype]}")
    product = "#define BY_PRODUCT" if step.attrs.get("rounding") == LITERT else ""
    options = join(storage_option(x.dtype), kinds, wide, product)
    args = [x, *constants, y, y.size, scale.size, inner, float(limits.min), float(limits.max)]
    return [Launch("i8_quantize", "quantize", args, grid, options)]


def mapped(
    profile: DeviceProfile, x: PlanTensor, y: PlanTensor, table: np.ndarray,
    size: tuple[int, int] | None = None, lie: tuple[int, int, int, int] | None = None,
) -> Launch:  # fmt: skip
    """Rows of x through 256 answers, by x's bits as u8. `size` is (elements of a row, rows), `lie`
    the elements from row to row and before the first of x and of y."""
    width, rows = size or (y.size, 1)
    run = _RUN if profile.local_tiles else CPU_RUN
    args = [x, Constant.of(table), y, width, rows, *(lie or (width, 0, width, 0))]
    group = None if profile.local_tiles else (1, 1)  # for all cores: a group is one core's
    return Launch("i8_map", "map", args, (-(-width // run), rows), f"#define RUN {run}", group)


def _answers(step: Step, dtype: DType, inputs: list[Any], attrs: dict[str, Any]) -> np.ndarray:
    """The reference's answers to all bytes of x, by their bits as u8."""
    every = np.arange(256, dtype=np.uint8).view(dtype.np)
    reference = get_op(step.op)._reference
    assert reference is not None
    return np.asarray(reference(every, *inputs, **attrs)).view(np.uint8)


@builds("i8_table", "QLookup", "QLinearSigmoid", "QLinearLeakyRelu")
def table(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    parameters = [plan.tensors[i].data if i >= 0 else None for i in step.inputs[1:]]
    known = get_op(step.op).attrs
    attrs = {k: v for k, v in step.attrs.items() if k in known}
    return [mapped(target.profile, x, y, _answers(step, x.dtype, parameters, attrs))]


@builds("i8_concat", "QLinearConcat")
def concat(step: Step, plan: Plan, target: Target) -> list[Launch]:
    """Each input through the table of its scale."""
    y = plan.tensors[step.outputs[0]]
    axis = int(step.attrs["axis"]) % len(y.dims)
    rows, pitch, at, out = math.prod(y.dims[:axis]), math.prod(y.dims[axis:]), 0, []
    reference = get_op(step.op)._reference
    assert reference is not None
    of_y = [plan.tensors[i].data for i in step.inputs[:2]]
    for i in range(2, len(step.inputs), 3):
        x = plan.tensors[step.inputs[i]]
        every = np.arange(256, dtype=np.uint8).view(x.dtype.np)
        of_x = [plan.tensors[k].data for k in step.inputs[i + 1 : i + 3]]
        answers = reference(*of_y, every, *of_x, axis=0).view(np.uint8)
        width = math.prod(x.dims[axis:])
        if x.size:
            lie = (width, 0, pitch, at)
            out.append(mapped(target.profile, x, y, answers, (width, rows), lie))
        at += width
    return out


@builds(
    "i8_pool", "MaxPool", "GlobalMaxPool", "QLinearAveragePool", "QLinearGlobalAveragePool"
)  # fmt: skip
def pool(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    one = (1,) * (4 - len(x.dims))
    xd, yd = (x.dims[0], *one, *x.dims[1:]), (y.dims[0], *one, *y.dims[1:])
    if "Global" in step.op:  # one row, of which the kernel has several loads under way
        xd = (xd[0], 1, xd[1] * xd[2], xd[3])
        geometry = [1, xd[2], 1, 1, 0, 0, 0, 0, 1, 1]
    else:
        window = Window((x.dims[0], x.dims[-1], *x.dims[1:-1]), step.attrs)
        begin, end = window.pads[: len(window.kernel)], window.pads[len(window.kernel) :]
        zero = (0,) * len(one)
        geometry = [
            *one, *window.kernel, *one, *window.strides, *zero, *begin, *zero, *end, *one,
            *window.dilations,
        ]  # fmt: skip
    v, text = several(target.profile, xd[3])
    enough = y.size >= _RUN * DEPTHWISE_ITEMS * target.profile.compute_units
    if target.profile.local_tiles and xd[3] % _RUN == 0 and enough:
        v, text = _RUN, f"#define V {_RUN}\n#define ALIGNED"
    options, ratios, zeros = [text], np.zeros(1, np.float32), [0, 0.0]
    options += [f"#define MOST {most}"] if 2 <= (most := max(geometry[:2])) <= _UNROLLED else []
    if "Global" in step.op and step.attrs.get("rounding") == LITERT:
        of_x, of_y = (Quantization.read(plan, step, t, i) for t, i in ((x, 1), (y, 3)))
        ratio = of_x.scale / of_y.scale
        bias = np.float32(of_y.zero - of_y.flip) - np.float32(of_x.zero - of_x.flip) * ratio
        ratios = np.array([ratio / np.float32(geometry[1]), bias, 0], np.float32)
        zeros = [of_x.flip, float(of_y.flip)]
        options.append("#define MEAN")
    elif "Average" in step.op:
        of_x, of_y = (Quantization.read(plan, step, t, i) for t, i in ((x, 1), (y, 3)))
        counts = np.arange(geometry[0] * geometry[1] + 1, dtype=np.float32)
        ratios = of_x.scale / (of_y.scale * np.maximum(counts, np.float32(1)))
        zeros = [of_x.zero, float(of_y.zero)]
        options.append("#define AVERAGE")
        options += ["#define COUNT_PAD"] if step.attrs.get("count_include_pad") else []
        if step.attrs.get("rounding") == LITERT:
            zeros = [of_x.flip, float(of_y.flip)]
            options.append("#define AWAY")
    if "Global" in step.op and target.profile.local_tiles:
        args = [x, Constant.of(ratios), y, xd[2], xd[3], flip_of(x), *zeros]
        grid, text = (-(-xd[3] // (16 * v)) * 256, xd[0]), join(*options, "#define GROUPS")
        return [Launch("i8_pool", "pool_group", args, grid, text, (256, 1))]
    args = [x, Constant.of(ratios), y, y.size, *xd[1:], yd[1], yd[2], *geometry]
    args += [flip_of(x), *zeros]
    return [Launch("i8_pool", "pool", args, (y.size // v,), join(*options))]


@builds("i8_resize", "Resize")
def resize(step: Step, plan: Plan, target: Target) -> list[Launch]:
    """The nearest pixel's bytes."""
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    places = [Constant.of(taps(step, x, y, a)[0][:, 0].astype(np.int32)) for a in (1, 2)]
    v, options = several(target.profile, x.dims[3])
    args = [x, *places, y, *x.dims, y.dims[1], y.dims[2]]
    grid = (x.dims[3] // v, y.dims[2], y.dims[0] * y.dims[1])
    return [Launch("i8_resize", "resize", args, grid, options)]


@builds("i8_resize_linear", "QLinearResize")
def interpolate(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    tables = []
    for axis in (1, 2):
        of_axis = line(x.dims[axis], y.dims[axis], step.attrs["coordinate_transformation_mode"])
        pairs = np.stack([of_axis.low, of_axis.high], 1)
        tables += [Constant.of(t.astype(np.int32)) for t in (pairs, of_axis.weight)]
    v, options = several(target.profile, x.dims[3])
    args = [x, *tables, y, *x.dims, y.dims[1], y.dims[2], flip_of(x)]
    grid = (x.dims[3] // v, y.dims[2], y.dims[0] * y.dims[1])
    return [Launch("i8_resize", "interpolate", args, grid, options)]


@builds("i8_softmax", "QLinearSoftmax")
def softmax(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    of_x, of_y = (Quantization.read(plan, step, t, i) for t, i in ((x, 1), (y, 3)))
    e = np.rint(np.exp(np.arange(256) * -float(of_x.scale)) * 2**30).astype(np.uint32)
    lowest, factors, shifts, above = thresholds(float(of_y.scale), of_y.zero)
    outer, n, inner = blocks(x.dims, [int(step.attrs.get("axis", -1)) % len(x.dims)])
    items = _SERIES_ITEMS if target.profile.local_tiles else 1
    tables = [Constant.of(a) for a in (e, factors, shifts, above)]
    args = [x, y, *tables, n, inner, of_x.flip, lowest, len(factors)]
    options = f"#define ITEMS {items}"
    return [Launch("i8_softmax", "softmax", args, (outer * inner * items,), options, (items,))]


def thresholds(scale: float, zero: int) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
    """(lowest answer, factors, shifts, above): number k of the thresholds is the smallest double t
    with clamp(rint(t / scale) + zero) > lowest + k. e / S rounds to t or more where it is beyond
    the middle of t and the double before it, or just there and t is the even one: where
    e·2^shift >= S·factor + above. Those beyond 1 are left out, which no e / S reaches."""
    lowest = min(max(zero, 0), 255)
    rows: list[tuple[int, int, int]] = []
    for k in range(255 - lowest):
        least = _smallest(lowest + k + 1 - zero, scale)
        middle = (Fraction(math.nextafter(least, 0.0)) + Fraction(least)) / 2
        if middle > 1:
            break
        even = int(math.frexp(least)[0] * 2**53) % 2 == 0
        rows.append((middle.numerator, middle.denominator.bit_length() - 1, int(not even)))
    factors, shifts, above = zip(*rows, _NEVER)
    return (
        lowest, np.array(factors, np.uint64), np.array(shifts, np.int32), np.array(above, np.int32)
    )  # fmt: skip


def _smallest(whole: int, scale: float) -> float:
    """The smallest double t with rint(t / scale) >= whole, which is positive."""
    t = (whole - 0.5) * scale
    while np.rint(t / scale) >= whole:
        t = math.nextafter(t, 0.0)
    while np.rint(t / scale) < whole:
        t = math.nextafter(t, math.inf)
    return t
