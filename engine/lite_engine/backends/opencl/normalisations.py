"""Launches of normalisations by mean and variance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...plan import Plan, Step
from .constants import Constant
from .launch import Launch, Scratch
from .options import activation_options, join, storage_option, widest
from .profile import DeviceProfile
from .reductions import HELD, ROW_ITEMS, blocks, folded, is_deep
from .registry import Target, builds

#: Work-items of a group that has a part, and the most neighbours that it has at once.
_GROUP_ITEMS, _MOST_LANES = 256, 32
#: Work-items that keep a unit's memory busy, and numbers of each that are worth a launch more.
_BUSY_ITEMS, _OWN_NUMBERS = 1024, 4


@builds("layer_norm", "LayerNormalization", "RMSNormalization")
def layer_norm(step: Step, plan: Plan, target: Target) -> list[Launch]:
    dims = plan.tensors[step.inputs[0]].dims
    axis = int(step.attrs.get("axis", -1)) % len(dims)
    sizes = blocks(dims, list(range(axis, len(dims))))
    more = join("#define PER_N", "#define RMS" if step.op == "RMSNormalization" else "")
    return _normalised(step, plan, target.profile, sizes, sizes[1], more)


@builds("instance_norm", "InstanceNormalization")
def instance_norm(step: Step, plan: Plan, target: Target) -> list[Launch]:
    first, *middle, channels = plan.tensors[step.inputs[0]].dims
    sizes = (first, math.prod(middle), channels)
    return _normalised(step, plan, target.profile, sizes, channels)


@builds("group_norm", "GroupNormalization")
def group_norm(step: Step, plan: Plan, target: Target) -> list[Launch]:
    first, *middle, channels = plan.tensors[step.inputs[0]].dims
    sizes = (first, math.prod(middle), channels)
    width = channels // int(step.attrs.get("num_groups", 1))
    return _normalised(step, plan, target.profile, sizes, channels, width=width)


def _normalised(
    step: Step,
    plan: Plan,
    profile: DeviceProfile,
    sizes: tuple[int, int, int],
    count: int,
    more: str = "",
    width: int = 1,
) -> list[Launch]:
    """Over the middle axis of `sizes` and `width` neighbours of the last; scale and offset have
    `count` numbers."""
    x, y = plan.tensors[step.inputs[0]], plan.tensors[step.outputs[0]]
    scale = _vector(plan, step, 1, Constant.of(np.ones(count, np.float32)))
    offset = _vector(plan, step, 2, Constant.zeros(count))
    epsilon, options = float(step.attrs.get("epsilon", 1e-5)), join(activation_options(step), more)
    if width == 1 and not _is_long(profile, widest(profile, x.dtype), sizes):
        args = [x, scale, offset, y]
        launch = folded("norm", profile, step, x, y, sizes, args, options, "normalise")
        launch.args.append(epsilon)
        return [launch]
    held = _held(profile, sizes[1] * width)
    text = join(storage_option(x.dtype), options)
    if width > 1 and held:
        return [_in_registers([x, scale, offset, y], sizes, width, held, epsilon, text)]
    return _in_parts(profile, [x, scale, offset, y], sizes, width, epsilon, text)


def _in_registers(
    operands: list[Any],
    sizes: tuple[int, int, int],
    width: int,
    held: int,
    epsilon: float,
    options: str,
) -> Launch:
    """A group of work-items for the numbers of each statistic, `held` of them an item."""
    outer, n, inner = sizes
    args = [*operands, n, inner, width, epsilon]
    grid, group = (outer * inner // width * _GROUP_ITEMS,), (_GROUP_ITEMS,)
    text = join(options, f"#define LANES 1\n#define SPAN 1\n#define HOLD {held}")
    return Launch("norm", "normalise_group", args, grid, text, group)


def _in_parts(
    profile: DeviceProfile,
    operands: list[Any],
    sizes: tuple[int, int, int],
    width: int,
    epsilon: float,
    options: str,
) -> list[Launch]:
    """Statistics of parts of the axis, then of all of them together."""
    outer, n, inner = sizes
    lanes, length = _part(profile, sizes)
    span, parts, group = math.gcd(width, lanes), -(-n // length), (_GROUP_ITEMS,)
    grid = (outer * parts * -(-inner // lanes) * _GROUP_ITEMS,)
    text = join(options, f"#define LANES {lanes}\n#define SPAN {span}")
    x, *others = operands
    moments, numbers = Scratch(outer * parts * inner // span * 2 * 4), [n, inner, length]
    last = [x, moments, *others, *numbers, width // span, epsilon]
    return [
        Launch("norm", "moments", [x, moments, *numbers], grid, text, group),
        Launch("norm", "normalise_parts", last, grid, text, group),
    ]


def _held(profile: DeviceProfile, count: int) -> int:
    """Of `count` numbers, those that each work-item of a group keeps in its registers; 0 where they
    do not fit. A phone's GPU has 64 registers for an item at most."""
    most = 16 if profile.device_class in ("mali", "adreno") else 32
    return next((h for h in (4, 16, most) if count <= _GROUP_ITEMS * h), 0)


def _is_long(profile: DeviceProfile, v: int, sizes: tuple[int, int, int]) -> bool:
    """Whether work-items that have a row, or a vector of columns, leave a GPU idle."""
    outer, n, inner = sizes
    if inner > 1 or not profile.local_tiles:
        return is_deep(profile, n, outer * inner)
    return n > ROW_ITEMS * v * HELD and outer * ROW_ITEMS < _BUSY_ITEMS * profile.compute_units


def _part(profile: DeviceProfile, sizes: tuple[int, int, int]) -> tuple[int, int]:
    """(neighbouring inner indices, positions of the axis) of a group of work-items."""
    outer, n, inner = sizes
    lanes = min(_MOST_LANES, 1 << (inner - 1).bit_length())
    wanted = _BUSY_ITEMS // _GROUP_ITEMS * profile.compute_units // (outer * -(-inner // lanes))
    worth = n // (_GROUP_ITEMS // lanes * _OWN_NUMBERS)
    return lanes, -(-n // max(1, min(wanted, worth)))


def _vector(plan: Plan, step: Step, index: int, otherwise: Constant) -> Constant:
    if index < len(step.inputs) and step.inputs[index] >= 0:
        data = plan.tensors[step.inputs[index]].data
        assert data is not None, "the registry's condition asks for constants"
        return Constant.floats(data)
    return otherwise
