"""Tensors of one TFLite subgraph as graph values.

A quantised tensor is one integer Value; `real` is its DequantizeLinear, made once and shared. A
translator answers real numbers; the result is put through QuantizeLinear with the file's scale.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError, UnsupportedOperatorError
from ...ir import DType, QuantParams, Value
from ...ops.litert import LITERT
from .._emit import Emitter
from .model import File, Quantization, Subgraph, Tensor

MAX_OPERATORS = 100_000

_QUANTISED = (DType.I8, DType.U8, DType.I16)


@dataclass
class Tensors:
    """Values of a subgraph's tensors while its operators are translated."""

    emit: Emitter
    file: File
    subgraph: Subgraph
    #: float inputs of layers with int8 weights become bytes as they run (ops/dynamic_quantize.py)
    dynamic: bool = False
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
                        "tflite: {source} reads tensor {tensor} ({type_name}) before it is "
                        "computed",
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
        attrs: dict[str, Any] = {} if quant.axis is None else {"axis": quant.axis}
        if quant.zero_point.dtype in (np.int8, np.uint8, np.int16):
            attrs["rounding"] = LITERT
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

    def define(self, index: int, value: Value, *, is_raw: bool) -> None:
        """Gives an operator's result to its tensor: quantised, named, typed."""
        tensor = self.tensor(index)
        if index in self.values:
            raise ModelFormatError(
                tr("tflite: tensor {tensor} is computed twice", tensor=tensor.name)
            )
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
