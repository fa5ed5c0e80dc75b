"""Launches of unary, binary, cast and normalisation-by-constants steps."""

from __future__ import annotations

import numpy as np

from ...ir import DType
from ...ops.activation import unary_params
from ...plan import Plan, Step
from .constants import Constant
from .launch import Launch
from .options import (
    activation_options,
    code_of,
    function_options,
    join,
    rows_per_item,
    storage_option,
    vector,
    vectors,
    widest,
)
from .registry import Target, builds
from .strides import broadcast_strides, collapsed


@builds("unary")
def unary(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    params: list[float | None] = []
    if step.op == "Clip":
        bounds = [step.attrs.get("min"), step.attrs.get("max")]
        params = [None if b is None else float(np.ravel(b)[0]) for b in bounds]
    else:
        params += unary_params(step.op, step.attrs)
    v = widest(target.profile, y.dtype)
    options = join(
        storage_option(y.dtype), function_options(step.op, params), vectors(target.profile, v)
    )
    return [Launch("unary", "unary", [x, y, y.size], (-(-y.size // v),), options)]


@builds("binary")
def binary(step: Step, plan: Plan, target: Target) -> list[Launch]:
    profile = target.profile
    a, b = (plan.tensors[i] for i in step.inputs[:2])
    y = plan.tensors[step.outputs[0]]
    options = join(
        storage_option(y.dtype),
        f"#define OP(p,q) {code_of(step.op, step.kernel)}",
        activation_options(step),
    )
    merged = collapsed(y.dims, broadcast_strides(a, y.dims), broadcast_strides(b, y.dims))
    assert merged is not None, "the registry's condition keeps larger ranks away"
    dims, (sa, sb) = merged
    wide = join("#define A_WIDE" if sa[5] else "", "#define B_WIDE" if sb[5] else "")
    if dims[:5] == [1] * 5:
        v = widest(profile, y.dtype)
        options, grid = join(options, vectors(profile, v), wide), (-(-y.size // v),)
        return [Launch("binary", "binary_same", [a, b, y, y.size], grid, options)]
    if dims[:4] == [1] * 4 and not profile.local_tiles:
        per, rows = rows_per_item(dims[5]), dims[4]
        text = join(options, vectors(profile, profile.lanes, aligned=False), wide)
        args = [a, b, y, rows, dims[5], sa[4], sb[4], per]
        return [Launch("binary", "binary_rows", args, (-(-rows // per),), text, (1,))]
    v = vector(profile, y.dtype, dims[5])
    options = join(options, vectors(profile, v), wide)
    args = [a, b, y, y.size, *dims[1:], *sa, *sb]
    return [Launch("binary", "binary", args, (y.size // v,), options)]


@builds("turn_pairs", "TurnPairs")
def turn_pairs(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, cos, sin = (plan.tensors[i] for i in step.inputs[:3])
    y = plan.tensors[step.outputs[0]]
    rows, size = (1, 1, 1, *x.dims)[-4:-1], x.dims[-1]
    apart = [0, 0, 0, *broadcast_strides(cos, x.dims)][-4:-1]
    between = "#define INTERLEAVED" if step.attrs.get("interleaved") else ""
    args = [x, cos, sin, y, y.size // 2, *rows[1:], size, *apart]
    text = join(storage_option(y.dtype), between)
    return [Launch("rotary", "turn_pairs", args, (y.size // 2,), text)]


@builds("cast", "Cast")
def cast(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    options = [f"#define TI {_c_type(x.dtype)}", f"#define TO {_c_type(y.dtype)}"]
    options += ["#define FROM_HALF"] if x.dtype is DType.F16 else []
    options += ["#define TO_HALF"] if y.dtype is DType.F16 else []
    options += ["#define FINITE"] if step.attrs.get("finite") else []
    options += ["#define WHOLE"] if y.dtype.np.kind in "iu" else []
    options += ["#define TO_BOOL"] if y.dtype is DType.BOOL else []
    return [Launch("cast", "cast", [x, y, y.size], (y.size,), join(*options))]


def _c_type(dtype: DType) -> str:
    return {
        DType.F32: "float", DType.F16: "half", DType.F64: "double", DType.I8: "char",
        DType.U8: "uchar", DType.I16: "short", DType.U16: "ushort", DType.I32: "int",
        DType.U32: "uint", DType.I64: "long", DType.U64: "ulong", DType.BOOL: "uchar",
    }[dtype]  # fmt: skip


@builds("batch_norm", "BatchNormalization")
def batch_norm(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    gamma, beta, mean, var = (plan.tensors[i].data for i in step.inputs[1:5])
    assert gamma is not None and beta is not None and mean is not None and var is not None
    factor = gamma / np.sqrt(var + np.float32(step.attrs.get("epsilon", 1e-5)))
    scale, offset = (Constant.of(a.astype(np.float32)) for a in (factor, beta - mean * factor))
    channels = scale.size
    v = vector(target.profile, y.dtype, channels)
    options = join(storage_option(y.dtype), activation_options(step), vectors(target.profile, v))
    args = [x, scale, offset, y, y.size, channels]
    return [Launch("norm", "affine", args, (y.size // v,), options)]
