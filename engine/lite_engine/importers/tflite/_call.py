"""One TFLite operator as its translator sees it, and the register of translators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError, UnsupportedOperatorError
from ...ir import DType, Value
from ._tensors import Tensors
from .model import Operator, Tensor
from .schema import ACTIVATIONS, padding_name

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
        """The fused activation of the options. LiteRT clamps integers: behind an operator into
        which no activation is fused, it follows the result's quantization."""
        code = int(self.op.options.get("activation", 0))
        name = ACTIVATIONS[code] if 0 <= code < len(ACTIVATIONS) else tr("code {code}", code=code)
        if not name:
            return y
        if y.producer is not None and y.producer.op in ("Sub", "Mul"):
            at = self.op.outputs[0]
            if self.tensors.is_quantised(at):
                y = self.tensors.dequantise(self.tensors.quantise(y, at), self.tensors.params(at))
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
