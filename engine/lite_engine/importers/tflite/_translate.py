"""Tensors of one subgraph as graph values, and the registry of operator translators.

A quantised tensor is one integer Value; `real` is its DequantizeLinear, made once and shared. A
translator answers real numbers and the result is put through QuantizeLinear with the file's scale.
An
operator that only moves elements (`moves=True`) works on the integers when every quantised tensor
it touches has the same scale and zero point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError, UnsupportedOperatorError
from ...ir import DType, QuantParams, Value
from .._emit import Emitter
from .model import File, Operator, Quantization, Subgraph, Tensor
from .schema import ACTIVATIONS, padding_name

#: nesting of subgraphs, and operators that unrolled loops may translate
MAX_DEPTH = 8
MAX_OPERATORS = 100_000

_QUANTISED = (DType.I8, DType.U8, DType.I16)

Result = Value | Sequence[Value]
Translator = Callable[["Call"], Result]


@dataclass(frozen=True)
class Entry:
    """`moves`: works on integers of one scale; `raw`: answers tensors as the file holds them."""

    run: Translator
    moves: bool = False
    raw: bool = False


BUILTIN: dict[str, Entry] = {}
CUSTOM: dict[str, Entry] = {}


def builtin(
    *codes: str, moves: bool = False, raw: bool = False
) -> Callable[[Translator], Translator]:
    """Registers the translator of built-in operators."""

    def register(fn: Translator) -> Translator:
        for code in codes:
            BUILTIN[code] = Entry(fn, moves, raw)
        return fn

    return register


def custom(*names: str) -> Callable[[Translator], Translator]:
    """Registers the translator of custom operators."""

    def register(fn: Translator) -> Translator:
        for name in names:
            CUSTOM[name] = Entry(fn)
        return fn

    return register


def find(op: Operator) -> Entry | None:
    return (CUSTOM if op.is_custom else BUILTIN).get(op.code)


@dataclass
class Tensors:
    """Values of a subgraph's tensors while its operators are translated."""

    emit: Emitter
    file: File
    subgraph: Subgraph
    depth: int = 0
    #: operators that may still be translated inside loops, shared by all subgraphs
    budget: list[int] = field(default_factory=lambda: [MAX_OPERATORS])
    values: dict[int, Value] = field(default_factory=dict)
    #: tensors whose quantized_dimension names an axis that does not fit
    repaired: list[str] = field(default_factory=list)
    _reals: dict[int, Value] = field(default_factory=dict)
    _named: set[int] = field(default_factory=set)

    def tensor(self, index: int) -> Tensor:
        return self.subgraph.tensors[index]

    def is_quantised(self, index: int) -> bool:
        tensor = self.tensor(index)
        return tensor.quant is not None and tensor.dtype in _QUANTISED

    def raw(self, index: int) -> Value:
        """The tensor as the file holds it. Raises ModelFormatError when nothing makes it."""
        if index not in self.values:
            tensor = self.tensor(index)
            data = tensor.data
            if data is None and tensor.is_variable:
                data = np.zeros(tensor.shape, tensor.dtype.np if tensor.dtype else np.float32)
            if data is None and 0 in tensor.shape and tensor.dtype is not None:
                data = np.zeros(tensor.shape, tensor.dtype.np)
            if data is None:
                raise ModelFormatError(
                    tr(
                        "tflite: {source} reads tensor {tensor} ({type_name}) before "
                        "anything makes it",
                        source=self.emit.source,
                        tensor=tensor.name,
                        type_name=tensor.type_name,
                    )
                )
            value = self.emit.const(data, tensor.name, tensor.dtype)
            if self.is_quantised(index):
                value.quant = self.params(index)
            self.values[index] = value
        return self.values[index]

    def real(self, index: int) -> Value:
        """The tensor as real numbers: dequantised once; half-precision constants widened."""
        if index not in self._reals:
            value = self.raw(index)
            if value.const is not None and value.dtype is DType.F16:
                value = self.emit.const(value.const.astype(np.float32), value.name + "/f32")
            elif self.is_quantised(index):
                value = self.dequantise(value, self.params(index))
            self._reals[index] = value
        return self._reals[index]

    def dequantise(self, value: Value, quant: QuantParams) -> Value:
        attrs = {} if quant.axis is None else {"axis": quant.axis}
        zero = None if quant.zero_point.dtype == np.int32 else quant.zero_point
        return self.emit("DequantizeLinear", value, quant.scale, zero, **attrs)

    def quantise(self, value: Value, index: int) -> Value:
        quant = self.params(index)
        if not (quant.scale > 0).all():
            raise ModelFormatError(
                tr("tflite: {tensor} has a scale of zero", tensor=self.tensor(index).name)
            )
        attrs = {} if quant.axis is None else {"axis": quant.axis}
        out = self.emit("QuantizeLinear", value, quant.scale, quant.zero_point, **attrs)
        out.quant = quant
        return out

    def params(self, index: int) -> QuantParams:
        """Parameters in our form: () or (C,) with the channel axis. A channel axis that does not
        fit is replaced by the only one that does, with a warning."""
        tensor = self.tensor(index)
        quant, dtype = tensor.quant, tensor.dtype
        assert quant is not None and dtype is not None
        info = np.iinfo(dtype.np)
        zero = quant.zero_point
        outside = zero[(zero < info.min) | (zero > info.max)]
        if outside.size:
            raise ModelFormatError(
                tr(
                    "tflite: {tensor} has zero point {outside} in {dtype}",
                    tensor=tensor.name,
                    outside=outside[0],
                    dtype=dtype,
                )
            )
        if len(quant.scale) == 1:
            return QuantParams(
                np.array(quant.scale[0], np.float32), np.array(zero[0], dtype.np), None
            )
        return QuantParams(
            quant.scale.astype(np.float32), zero.astype(dtype.np), self._axis(tensor, quant)
        )

    def _axis(self, tensor: Tensor, quant: Quantization) -> int:
        count = len(quant.scale)
        if quant.axis in range(len(tensor.shape)) and tensor.shape[quant.axis] == count:
            return quant.axis
        fits = [i for i, d in enumerate(tensor.shape) if d == count]
        if len(fits) != 1:
            raise ModelFormatError(
                tr(
                    "tflite: {tensor} has {scales} scales on axis {axis} of shape {shape}",
                    tensor=tensor.name,
                    scales=count,
                    axis=quant.axis,
                    shape=list(tensor.shape),
                )
            )
        if tensor.name not in self.repaired:
            self.repaired.append(tensor.name)
        return fits[0]

    def inline(self, number: int, args: Sequence[Value]) -> list[Value]:
        """Outputs of another subgraph of the file, its operators emitted here."""
        if not 0 <= number < len(self.file.subgraphs):
            raise ModelFormatError(
                tr(
                    "tflite: {source} names subgraph {number} of {count}",
                    source=self.emit.source,
                    number=number,
                    count=len(self.file.subgraphs),
                )
            )
        target = self.file.subgraphs[number]
        self.budget[0] -= len(target.operators) + 1
        if self.depth >= MAX_DEPTH or self.budget[0] < 0:
            raise ModelFormatError(
                tr(
                    "tflite: {source}: loops nested or repeated too often to be unrolled",
                    source=self.emit.source,
                )
            )
        inner = Tensors(self.emit, self.file, target, self.depth + 1, self.budget)
        if len(args) != len(inner.subgraph.inputs):
            raise ModelFormatError(
                tr(
                    "tflite: {source} gives {arguments} arguments to subgraph {number}",
                    source=self.emit.source,
                    arguments=len(args),
                    number=number,
                )
            )
        inner.values.update(zip(inner.subgraph.inputs, args))
        inner.repaired = self.repaired
        translate(inner)
        return [inner.raw(i) for i in inner.subgraph.outputs]

    def define(self, index: int, value: Value, *, is_raw: bool) -> None:
        """Gives an operator's result to its tensor: quantised, named, typed."""
        tensor = self.tensor(index)
        if index in self.values:
            raise ModelFormatError(tr("tflite: tensor {tensor} is made twice", tensor=tensor.name))
        if tensor.dtype is None or tensor.type_name == "int4":
            raise UnsupportedOperatorError(
                tr(
                    "computed tensors of type {type_name} are not supported",
                    type_name=tensor.type_name,
                ),
                (tensor.name,),
                where=tensor.name,
                fix=tr("convert with 8-bit or float activations"),
            )
        if self.is_quantised(index) and not is_raw:
            value = self.quantise(value, index)
        elif self.is_quantised(index):
            value.quant = self.params(index)
        if value.producer is not None and id(value) not in self._named:
            self._named.add(id(value))
            value.name = self.emit.unique(tensor.name)
        if value.dtype is None:
            value.dtype = tensor.dtype
        if value.shape is None and -1 not in tensor.signature:
            value.shape = tensor.shape
        self.values[index] = value


class Call:
    """One operator call as its translator sees it."""

    def __init__(self, tensors: Tensors, op: Operator, entry: Entry) -> None:
        self.tensors = tensors
        self.emit = tensors.emit
        self.op = op
        self.is_raw = entry.raw or (entry.moves and self._one_scale())

    def _one_scale(self) -> bool:
        """True when no quantised tensor of this call has another scale than the others."""
        touched = [i for i in (*self.op.inputs, *self.op.outputs) if i >= 0]
        quants = [self.tensors.tensor(i).quant for i in touched if self.tensors.is_quantised(i)]
        known = [q for q in quants if q is not None]
        return all(
            len(q.scale) == 1
            and q.scale[0] == known[0].scale[0]
            and q.zero_point[0] == known[0].zero_point[0]
            for q in known
        )

    def opt(self, name: str) -> Any:
        """An option by the name that the schema gives it."""
        return self.op.options[name]

    def has(self, index: int) -> bool:
        return index < len(self.op.inputs) and self.op.inputs[index] >= 0

    def index(self, index: int) -> int:
        """Tensor number of an input. Raises ModelFormatError when it is absent."""
        if not self.has(index):
            raise ModelFormatError(
                tr(
                    "tflite: {code} {index} has no input {input}",
                    code=self.op.code,
                    index=self.op.index,
                    input=index,
                )
            )
        return self.op.inputs[index]

    def tensor(self, index: int) -> Tensor:
        return self.tensors.tensor(self.index(index))

    def raw(self, index: int) -> Value:
        return self.tensors.raw(self.index(index))

    def x(self, index: int = 0) -> Value:
        """Input as numbers to compute with (integers for an operator that only moves them)."""
        at = self.index(index)
        return self.tensors.raw(at) if self.is_raw else self.tensors.real(at)

    def xs(self) -> list[Value]:
        return [self.x(i) for i in range(len(self.op.inputs))]

    def ints(self, index: int, what: str) -> list[int]:
        return self.emit.ints(self.raw(index), what)

    def output(self, index: int = 0) -> Tensor:
        if index >= len(self.op.outputs):
            raise ModelFormatError(
                tr(
                    "tflite: {code} {index} has no output {output}",
                    code=self.op.code,
                    index=self.op.index,
                    output=index,
                )
            )
        return self.tensors.tensor(self.op.outputs[index])

    def output_dtype(self, index: int = 0) -> DType:
        tensor = self.output(index)
        if tensor.dtype is None:
            raise UnsupportedOperatorError(
                tr("element type {type_name} is not supported", type_name=tensor.type_name),
                (tensor.name,),
                where=tensor.name,
            )
        return tensor.dtype

    @property
    def padding(self) -> str:
        return padding_name(self.opt("padding"))

    def activation(self, y: Value) -> Value:
        """The fused activation of the options."""
        code = int(self.op.options.get("activation", 0))
        name = ACTIVATIONS[code] if 0 <= code < len(ACTIVATIONS) else f"code {code}"
        if not name:
            return y
        if name == "RELU":
            return self.emit("Relu", y)
        if name == "TANH":
            return self.emit("Tanh", y)
        bounds = {"RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0)}.get(name)
        if bounds is None:
            raise UnsupportedOperatorError(
                tr("fused activation {name} is not supported", name=name),
                (self.emit.source,),
                where=self.emit.source,
            )
        return self.emit("Clip", y, *bounds)

    def weight(self, index: int, perm: Sequence[int]) -> Value:
        """A weight with its axes permuted to ONNX's order; quantised ones stay integers behind a
        DequantizeLinear whose channel axis moved along."""
        at = self.index(index)
        if len(self.tensor(index).shape) != len(perm):
            raise ModelFormatError(
                tr(
                    "tflite: {code} {index} has a weight of shape {shape}, expected {axes} axes",
                    code=self.op.code,
                    index=self.op.index,
                    shape=list(self.tensor(index).shape),
                    axes=len(perm),
                )
            )
        return self.emit.transpose(self.tensors.real(at), perm)

    def bias(self, index: int, x: int = 0, w: int = 1) -> Value | None:
        """The bias as real numbers; an int32 one behind a DequantizeLinear with its own scale, or
        scale(x)·scale(w) when the file leaves it out."""
        if not self.has(index):
            return None
        at = self.index(index)
        tensor, data = self.tensors.tensor(at), self.tensors.raw(at).const
        if tensor.dtype not in (DType.I32, DType.I64):
            return self.tensors.real(at)
        if data is None:
            raise ModelFormatError(
                tr("tflite: the integer bias {tensor} is not constant", tensor=tensor.name)
            )
        if tensor.quant is not None:
            scale = tensor.quant.scale
            if len(scale) > 1:
                self.tensors._axis(tensor, tensor.quant)
        else:
            sx, sw = self.tensor(x).quant, self.tensor(w).quant
            if sx is None or sw is None:
                raise ModelFormatError(
                    tr("tflite: the integer bias {tensor} has no scale", tensor=tensor.name)
                )
            scale = sx.scale * sw.scale
        if np.abs(data).max(initial=0) > np.iinfo(np.int32).max:
            return self.emit.const((data * scale.astype(np.float64)).astype(np.float32))
        scale = np.array(scale[0] if len(scale) == 1 else scale, np.float32)
        stored = self.emit.const(np.ascontiguousarray(data, np.int32), tensor.name + "/i32")
        attrs = {} if scale.ndim == 0 else {"axis": 0}
        return self.emit("DequantizeLinear", stored, scale, None, **attrs)


def translate(tensors: Tensors) -> None:
    """Every operator of the subgraph, in the file's order (which is the order of execution)."""
    for op in tensors.subgraph.operators:
        entry = find(op)
        assert entry is not None  # `open` has named the missing ones already
        name = tensors.tensor(op.outputs[0]).name if op.outputs else f"{op.code}:{op.index}"
        tensors.emit.source = name
        call = Call(tensors, op, entry)
        result = entry.run(call)
        values = [result] if isinstance(result, Value) else list(result)
        if len(values) < len(op.outputs):
            raise ModelFormatError(
                tr(
                    "tflite: {code} {index} has {outputs} outputs, expected {count}",
                    code=op.code,
                    index=op.index,
                    outputs=len(op.outputs),
                    count=len(values),
                )
            )
        for index, value in zip(op.outputs, values):
            tensors.define(index, value, is_raw=call.is_raw)
