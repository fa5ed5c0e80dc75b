"""Older operator forms → the newest ones, one function per operator.

    @upgrades("Clip", before=11)
    def _(call, emit): ...

`call` is changed in place; `emit(op, inputs, attrs)` puts a node before it and returns its output.
Source: Changelog.md of ONNX (each form names the opset that ended it).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import MISFIT, ModelFormatError, UnsupportedOperatorError
from ...ir import DType, Value
from ...ops import find_op
from .call import Call, Emit
from .narrow import settle_types

_UPGRADES: dict[str, list[tuple[int, Callable[[Call, Emit], None]]]] = {}


def upgrades(*ops: str, before: int = 1000) -> Callable[..., Any]:
    """Registers an upgrade of `ops` for models of an opset smaller than `before`."""

    def register(fn: Callable[[Call, Emit], None]) -> Callable[[Call, Emit], None]:
        for op in ops:
            _UPGRADES.setdefault(op, []).append((before, fn))
        return fn

    return register


#: Attributes that upgrades compute with, by what they are.
_INTEGERS = ("axis", "broadcast", "k", "num_groups", "spatial")
_LISTS = ("axes", "ends", "pads", "paddings", "shape", "split", "starts", "tiles")


def _check(call: Call) -> None:
    """Raises ModelFormatError for a call that no version of its operator has."""
    op = find_op(call.op)
    first = op.inputs[0] if op is not None and op.inputs else "x"
    may_lack_it = first.endswith("?") or (op is not None and op.has_subgraphs)
    if call.input(0) is None and not may_lack_it:
        raise ModelFormatError(
            tr("{call} needs its input {first!r}", call=call.op, first=first.lstrip("*")),
            where=call.label,
        )
    for key, value in call.attrs.items():
        if key in _INTEGERS and type(value) is not int:
            raise ModelFormatError(
                tr("attribute {key!r} is {value!r:.40}, not an integer", key=key, value=value),
                where=call.label,
            )
        if key in _LISTS and not isinstance(value, (list, tuple, np.ndarray)):
            raise ModelFormatError(
                tr("attribute {key!r} is {value!r:.40}, not a list", key=key, value=value),
                where=call.label,
            )


def upgrade(call: Call, emit: Emit) -> None:
    """Brings a call to the newest form; oldest upgrades run first. Raises ModelFormatError."""
    call.attrs.pop("consumed_inputs", None)  # opset 1: a memory hint
    if any(call.version < before for before, _ in _UPGRADES.get(call.op, ())):
        _check(call)
    for before, fn in sorted(_UPGRADES.get(call.op, ()), key=lambda item: item[0]):
        if call.version < before:
            try:
                fn(call, emit)
            except MISFIT as error:
                what = tr("its attributes do not fit {op}", op=call.op)
                raise ModelFormatError(what, where=call.label) from error
    settle_types(call)
    for key, value in call.attrs.items():
        if isinstance(value, Value):  # tensor attributes that stay are plain arrays
            call.attrs[key] = value.const


# ---- attributes that became inputs

_AXES_IN_18 = (
    "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceSumSquare",
)  # fmt: skip


@upgrades("ReduceSum", "Squeeze", "Unsqueeze", before=13)
@upgrades(*_AXES_IN_18, before=18)
def _(call: Call, emit: Emit) -> None:
    call.to_input("axes", 1)


@upgrades("Clip", before=11)
def _(call: Call, emit: Emit) -> None:
    x = call.inputs[0]
    dtype = x.dtype.np if x is not None and x.dtype not in (None, DType.BF16) else np.float32
    call.to_input("min", 1, dtype)
    call.to_input("max", 2, dtype)


@upgrades("Slice", before=10)
def _(call: Call, emit: Emit) -> None:
    axes = call.attrs.get("axes")
    call.to_input("starts", 1)
    call.to_input("ends", 2)
    if axes is not None:
        call.to_input("axes", 3)


@upgrades("Slice")
def _(call: Call, emit: Emit) -> None:
    """Slices name their axes, so that a change of layout can remap them."""
    starts = call.input(1)
    if (
        call.input(3) is None
        and starts is not None
        and starts.shape
        and isinstance(starts.shape[0], int)
    ):
        call.set_input(3, call.constant("axes", range(starts.shape[0])))


@upgrades("Pad", before=2)
def _(call: Call, emit: Emit) -> None:
    if "paddings" in call.attrs:
        call.attrs["pads"] = call.attrs.pop("paddings")


@upgrades("Pad", before=11)
def _(call: Call, emit: Emit) -> None:
    x = call.inputs[0]
    dtype = x.dtype.np if x is not None and x.dtype not in (None, DType.BF16) else np.float32
    call.to_input("pads", 1)
    call.to_input("value", 2, dtype)


@upgrades("TopK", before=10)
def _(call: Call, emit: Emit) -> None:
    if "k" in call.attrs:
        call.set_input(1, call.constant("k", [call.attrs.pop("k")]))


@upgrades("Reshape", before=5)
def _(call: Call, emit: Emit) -> None:
    call.to_input("shape", 1)


@upgrades("Split", before=13)
def _(call: Call, emit: Emit) -> None:
    call.to_input("split", 1)


@upgrades("Split", before=18)
def _(call: Call, emit: Emit) -> None:
    if call.input(1) is None:
        call.attrs.setdefault("num_outputs", len(call.outputs))


@upgrades("DFT", before=20)
def _(call: Call, emit: Emit) -> None:
    call.set_input(2, call.constant("axis", call.attrs.pop("axis", 1)))


@upgrades("Tile", before=6)
def _(call: Call, emit: Emit) -> None:
    """Tile-1 repeated one axis: inputs tiles and axis."""
    tiles, axis, rank = call.input(1), call.input(2), call.rank()
    if axis is None:
        return
    if tiles is None or tiles.const is None or axis.const is None or rank is None:
        raise UnsupportedOperatorError(
            tr("Tile-1 with an axis that is computed at run time is not supported"),
            (call.label,),
            where=call.label,
            fix=tr("export with opset 13"),
        )
    if not axis.const.size == tiles.const.size == 1:
        raise ModelFormatError(tr("Tile-1 takes one axis and one number"), where=call.label)
    at = int(axis.const.item())
    if not -rank <= at < rank:
        raise ModelFormatError(
            tr("axis {axis} is outside a rank-{rank} tensor", axis=at, rank=rank),
            where=call.label,
        )
    repeats = [1] * rank
    repeats[at] = int(tiles.const.item())
    call.inputs = [call.inputs[0], call.constant("repeats", repeats)]


# ---- meanings that changed


@upgrades("BatchNormalization", before=14)
def _(call: Call, emit: Emit) -> None:
    if call.attrs.pop("spatial", 1) == 0:
        raise UnsupportedOperatorError(
            tr("BatchNormalization with spatial=0 is not supported"),
            (call.label,),
            where=call.label,
            fix=tr("export with opset 9 or newer"),
        )
    trains = call.version < 7 and not call.attrs.pop("is_test", 0)
    if trains and len(call.outputs) > 1:  # is_test is 0 in inference graphs of one output as well
        raise UnsupportedOperatorError(
            tr("BatchNormalization in training mode is not supported"),
            (call.label,),
            where=call.label,
            fix=tr("export the model for inference"),
        )
    call.attrs.pop("is_test", None)
    del call.outputs[1:]


@upgrades("Dropout", before=12)
def _(call: Call, emit: Emit) -> None:
    for key in ("ratio", "is_test"):
        call.attrs.pop(key, None)


@upgrades("Dropout", before=10)
def _(call: Call, emit: Emit) -> None:
    """The mask had the data's type; nobody reads it in inference."""
    if len(call.outputs) > 1 and not call.outputs[1].readers:
        del call.outputs[1:]


@upgrades("Softmax", "LogSoftmax", "Hardmax", before=13)
def _(call: Call, emit: Emit) -> None:
    """The older forms flattened the axes from `axis` on into one."""
    x, axis = call.inputs[0], call.attrs.get("axis", 1)
    rank = call.rank()
    if x is None:
        return
    if rank is not None:
        axis = axis % rank if rank else 0
        rest = (x.shape or ())[axis + 1 :]
        if all(d == 1 for d in rest):  # nothing to flatten (the last axis, or C×1×1)
            call.attrs["axis"] = axis
            return
    shape = emit("Shape", [x])
    flat = emit("Flatten", [x], {"axis": axis})
    call.attrs["axis"] = 1
    soft = emit(call.op, [flat], call.attrs)
    call.op, call.inputs, call.attrs = "Reshape", [soft, shape], {"allowzero": 1}


_BROADCAST_7 = ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less")


@upgrades(*_BROADCAST_7, before=7)
def _(call: Call, emit: Emit) -> None:
    """Before opset 7 the second input was aligned with `axis`, not with the last axis."""
    call.attrs.pop("broadcast", None)
    axis = call.attrs.pop("axis", None)
    a, b = call.rank(0), call.rank(1)
    if axis is None or a is None or b is None or b == 0:
        return
    trailing = a - (axis % a) - b
    if trailing > 0:
        axes = call.constant("axes", range(b, b + trailing))
        call.inputs[1] = emit("Unsqueeze", [call.inputs[1], axes])


@upgrades("PRelu", before=7)
def _(call: Call, emit: Emit) -> None:
    """The slope was one number per channel."""
    rank, slope = call.rank(0), call.input(1)
    if rank is None or slope is None or slope.shape is None or len(slope.shape) != 1:
        return
    if rank > 2 and slope.shape != (1,):
        axes = call.constant("axes", range(1, rank - 1))
        call.inputs[1] = emit("Unsqueeze", [slope, axes])


@upgrades("Gemm", before=7)
def _(call: Call, emit: Emit) -> None:
    call.attrs.pop("broadcast", None)


@upgrades("Cast", before=6)
def _(call: Call, emit: Emit) -> None:
    names = {"FLOAT": DType.F32, "FLOAT16": DType.F16, "DOUBLE": DType.F64, "BOOL": DType.BOOL}
    names |= {f"INT{n}": DType(f"i{n}") for n in (8, 16, 32, 64)}
    names |= {f"UINT{n}": DType(f"u{n}") for n in (8, 16, 32, 64)}
    to = call.attrs.get("to")
    if isinstance(to, str) and not isinstance(to, DType):
        if to not in names:
            raise ModelFormatError(
                tr("Cast to {to!r}, which is not an element type", to=to), where=call.label
            )
        call.attrs["to"] = names[to]


@upgrades("Concat", before=4)
def _(call: Call, emit: Emit) -> None:
    call.attrs.setdefault("axis", 1)


@upgrades("LSTM", "GRU", "RNN", before=7)
def _(call: Call, emit: Emit) -> None:
    call.attrs.pop("output_sequence", None)


@upgrades("LpPool", "GlobalLpPool", "LpNormalization", before=2)
def _(call: Call, emit: Emit) -> None:
    if "p" in call.attrs:
        call.attrs["p"] = int(call.attrs["p"])


@upgrades("Scatter")
def _(call: Call, emit: Emit) -> None:
    call.op = "ScatterElements"


@upgrades("MeanVarianceNormalization", before=9)
def _(call: Call, emit: Emit) -> None:
    call.attrs.pop("normalize_variance", None)
    if call.attrs.pop("across_channels", 0):
        call.attrs["axes"] = [1, 2, 3]
    else:
        call.attrs["axes"] = [2, 3]


@upgrades("GroupNormalization", before=21)
def _(call: Call, emit: Emit) -> None:
    """Scale and bias were per group; they are per channel now."""
    x, groups = call.inputs[0], call.attrs.get("num_groups", 1)
    channels = x.shape[1] if x is not None and x.shape and len(x.shape) > 1 else None
    if not isinstance(channels, int) or groups <= 0 or channels % groups:
        raise UnsupportedOperatorError(
            tr(
                "GroupNormalization-18 needs a known number of channels that splits into its groups"
            ),
            (call.label,),
            where=call.label,
            fix=tr("export with opset 21"),
        )
    per_channel = call.constant("groups", np.arange(channels) // (channels // groups))
    for i in (1, 2):
        value = call.input(i)
        if (
            value is None
            or value.shape is None
            or math.prod(d for d in value.shape if isinstance(d, int)) != groups
        ):
            continue
        call.inputs[i] = emit("Gather", [value, per_channel])


@upgrades("Reshape", before=14)
def _(call: Call, emit: Emit) -> None:
    call.attrs.pop("allowzero", None)


@upgrades("Scan", before=9)
def _(call: Call, emit: Emit) -> None:
    """Scan-8 ran over the second axis of batches: it is marked, and runs batch by batch."""
    if call.input(0) is not None:
        raise UnsupportedOperatorError(
            tr("Scan-8 with lengths of its sequences is not supported"),
            (call.label,),
            where=call.label,
            fix=tr("export with opset 9 or newer"),
        )
    call.inputs = call.inputs[1:]
    call.attrs["batched"] = 1
