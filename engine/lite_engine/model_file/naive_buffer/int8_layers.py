"""Layers that compute in int8, as Paddle-Lite's opt writes a quantised network.

enable_int8, bit_length      the layer's kernel multiplies integers
Input0_scale                 step of the input, which a `calib` operator made int8
Filter0_scale or W0_scale    steps of the weight's output channels; the weight is stored as int8
Output0_scale or Out0_scale  step of the output, where the kernel writes int8: all who read it do so

The bias stays float32. Operators of other kinds run in floats: `calib` stands between.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ...importers.paddle.program import Op, Program, Var
from ...ir import DType
from .place import KERNEL_ATTR
from .quantize import quantized
from .ranges import Ranges


@dataclass(frozen=True)
class _Kind:
    """Slots of an operator with int8 kernels, and the axis of its output channels."""

    weight: str
    axis: int
    output: str


_CONV = _Kind("Filter", 0, "Output")
_KINDS = {"conv2d": _CONV, "depthwise_conv2d": _CONV, "fc": _Kind("W", 1, "Out")}
#: paddle_place.h's numbers of two targets and of the precision.
_X86, _ARM, _INT8 = "2", "4", "2"
#: alias/target/precision/layout of the float kernels that have an int8 sister: x86's and arm's.
_FLOAT_KERNELS = [["def", _X86, "1", "1"], ["def", _ARM, "1", "1"]]
#: Activations that int8 kernels of arm and x86 apply to their result.
_FUSED = frozenset(["relu", "relu6", "leaky_relu"])


@dataclass
class Int8Layers:
    """What came of a network in integers: layers that compute in int8, and those in floats."""

    done: list[str] = field(default_factory=list)
    floats: list[str] = field(default_factory=list)


def layers_in_int8(program: Program, ranges: Ranges, found: Int8Layers) -> None:
    """Rewrites the main block of a placed program, and its weights."""
    _Rewriter(program, ranges, found).run()


class _Rewriter:
    def __init__(self, program: Program, ranges: Ranges, found: Int8Layers) -> None:
        self.program, self.ranges, self.found = program, ranges, found
        self.block = program.blocks[0]
        self.readers: dict[str, list[Op]] = {}
        for op in self.block.ops:
            for name in _names(op):
                self.readers.setdefault(name, []).append(op)
        self.chosen = {id(op) for op in self.block.ops if self.fits(op)}
        self.copies: dict[str, str] = {}

    def run(self) -> None:
        ops: list[Op] = []
        for op in self.block.ops:
            if id(op) in self.chosen:
                ops += self.rewritten(op)
                self.found.done.append(op.outputs[_KINDS[op.type].output][0])
            else:
                ops.append(op)
                if op.type in _KINDS:
                    self.found.floats.append(op.outputs[_KINDS[op.type].output][0])
        self.block.ops = ops

    def fits(self, op: Op) -> bool:
        kind = _KINDS.get(op.type)
        if kind is None or op.attrs[KERNEL_ATTR].split("/")[1:] not in _FLOAT_KERNELS:
            return False
        (name,) = op.inputs[kind.weight]
        weight = self.program.params.get(name)
        plain = weight is not None and weight.dtype == np.float32 and len(self.readers[name]) == 1
        return plain and op.inputs["Input"][0] in self.ranges.steps

    def rewritten(self, op: Op) -> Iterator[Op]:
        kind = _KINDS[op.type]
        target = op.attrs[KERNEL_ATTR].split("/")[2]
        (source,), (out,) = op.inputs["Input"], op.outputs[kind.output]
        step = self.ranges.steps[source]
        if self.block.vars[source].dtype is not DType.I8:
            if source not in self.copies:
                self.copies[source] = self.copy(source, "int8", DType.I8)
                kernel = f"calib/fp32_to_int8/{target}/{_INT8}/1"
                slots = {"Input": [source]}, {"Out": [self.copies[source]]}
                yield Op("calib", *slots, {KERNEL_ATTR: kernel, "scale": step})
            op.inputs["Input"] = [self.copies[source]]
        op.attrs.update({"enable_int8": True, "bit_length": 8, "Input0_scale": [step]})
        op.attrs[f"{kind.weight}0_scale"] = self.store(op, kind)
        after = self.split_activation(op, kind, target)
        written = "fp32"
        if out in self.ranges.steps and not after and self.read_as_int8(out):
            written = "int8"
            op.attrs[f"{kind.output}0_scale"] = [self.ranges.steps[out]]
            self.block.vars[out].dtype = DType.I8
        op.attrs[KERNEL_ATTR] = f"{op.type}/{_alias(op, written, target)}/{target}/{_INT8}/1"
        yield op
        yield from after

    def copy(self, name: str, suffix: str, dtype: DType) -> str:
        new = f"{name}/{suffix}"
        self.block.vars[new] = Var(new, dtype=dtype, shape=self.block.vars[name].shape)
        return new

    def store(self, op: Op, kind: _Kind) -> list[float]:
        """The weight as int8: the file's own integers where it stored int8 without zero points."""
        (name,) = op.inputs[kind.weight]
        weight = self.program.params[name]
        integers, steps = quantized(weight, 8, kind.axis)
        given = self.ranges.weights.get(name)
        if given is not None and given.size in (1, steps.size):
            shape = [1] * weight.ndim
            shape[kind.axis] = -1
            given = np.broadcast_to(given, steps.shape)
            exact = np.rint(weight / given.reshape(shape))
            if np.array_equal((exact * given.reshape(shape)).astype(np.float32), weight):
                integers, steps = exact.astype(np.int8), given
        self.program.params[name] = integers
        self.block.vars[name].dtype = DType.I8
        return [float(s) for s in steps]

    def split_activation(self, op: Op, kind: _Kind, target: str) -> list[Op]:
        """Activations that int8 kernels lack become an operator of their own."""
        if op.attrs.get("act_type", "relu") in _FUSED:
            return []
        name = op.attrs.pop("act_type")
        op.attrs.pop("with_act")
        (out,) = op.outputs[kind.output]
        before = self.copy(out, "before", DType.F32)
        op.outputs[kind.output] = [before]
        prefix = f"{name}_"
        attrs = {
            k.removeprefix(prefix): op.attrs.pop(k) for k in list(op.attrs) if k.startswith(prefix)
        }
        attrs[KERNEL_ATTR] = f"{name}/def/{target}/1/1"
        return [Op(name, {"X": [before]}, {"Out": [out]}, attrs)]

    def read_as_int8(self, name: str) -> bool:
        ops = self.readers.get(name, [])
        return bool(ops) and all(
            id(op) in self.chosen and op.inputs["Input"] == [name] for op in ops
        )


def _alias(op: Op, written: str, target: str) -> str:
    """The kernel that writes floats or int8: arm's fc spells it without an underscore."""
    return f"{written}out" if op.type == "fc" and target == _ARM else f"{written}_out"


def _names(op: Op) -> Iterator[str]:
    return (name for names in op.inputs.values() for name in names)
