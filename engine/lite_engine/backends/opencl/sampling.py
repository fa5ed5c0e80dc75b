"""Launches of steps that read at computed places: GatherND, GatherElements, GridSample."""

from __future__ import annotations

import math

from ...ir import DType
from ...plan import Plan, Step
from .launch import Launch, element_type
from .options import join
from .registry import Target, builds
from .strides import strides_of

_INDEX = {DType.I32: "int", DType.I64: "long"}
#: Axes that an index of GatherND may have.
_AXES = 6


@builds("gather_nd", "GatherND")
def gather_nd(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, index = (plan.tensors[i] for i in step.inputs)
    y = plan.tensors[step.outputs[0]]
    batch, depth = int(step.attrs.get("batch_dims", 0)), index.dims[-1]
    axes = x.dims[batch : batch + depth]
    inner = math.prod(x.dims[batch + depth :])
    places = math.prod(index.dims[batch:-1])  # of each element of the batch
    sizes = [*axes, *[1] * (_AXES - depth)]
    options = join(f"#define E {element_type(y)}", f"#define I {_INDEX[index.dtype]}")
    args = [x, index, y, y.size, places, inner, depth, *sizes]
    return [Launch("gather_nd", "gather_nd", args, (y.size,), options)]


@builds("gather_elements", "GatherElements")
def gather_elements(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, index = (plan.tensors[i] for i in step.inputs)
    y = plan.tensors[step.outputs[0]]
    rank = len(x.dims)
    axis = int(step.attrs.get("axis", 0)) % rank
    strides = strides_of(x.dims)
    beside = [0 if i == axis else stride for i, stride in enumerate(strides)]
    more = _AXES - rank
    dims, steps = [*[1] * more, *y.dims], [*[0] * more, *beside]
    options = join(f"#define E {element_type(y)}", f"#define I {_INDEX[index.dtype]}")
    args = [x, index, y, y.size, *dims[1:], *steps, x.dims[axis], strides[axis]]
    return [Launch("gather_nd", "gather_elements", args, (y.size,), options)]


#: Of GridSample's attributes: the options of its kernel.
_OPTIONS = {"nearest": "NEAREST", "cubic": "CUBIC", "bicubic": "CUBIC", "border": "BORDER",
            "reflection": "REFLECT"}  # fmt: skip


@builds("grid_sample", "GridSample")
def grid_sample(step: Step, plan: Plan, target: Target) -> list[Launch]:
    x, grid = (plan.tensors[i] for i in step.inputs)
    y = plan.tensors[step.outputs[0]]
    words = [_OPTIONS.get(step.attrs[key], "") for key in ("mode", "padding_mode")]
    words += ["CORNERS"] if step.attrs["align_corners"] else []
    options = join(*(f"#define {word}" for word in words if word))
    (images, channels, height, width), pixels = x.dims, math.prod(y.dims[2:])
    planes = images * channels
    args = [x, grid, y, planes, channels, height, width, pixels]
    return [Launch("grid_sample", "grid_sample", args, (pixels, planes), options)]
