"""What a node of ONNX becomes in a TFLite file: its tensors, and the operators in its place.

A value may have two tensors: its own order, and channels-last (N, H, W, C) if it has rank 4.
Spatial operators give the second, operators on elements keep what their inputs have, and a
TRANSPOSE makes the one that is asked for and not there: so transposes stand at the borders only.
Source: schema.fbs of TFLite, version 3, in the generated module of ai-edge-litert.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from lite_engine.errors import UnsupportedOperatorError
from lite_engine.ir import DType, Node, Value
from lite_engine.ops import find_op

LAST = (0, 2, 3, 1)
FIRST = (0, 3, 1, 2)
TYPES = {
    DType.F32: schema.TensorType.FLOAT32, DType.I32: schema.TensorType.INT32,
    DType.I64: schema.TensorType.INT64, DType.BOOL: schema.TensorType.BOOL,
}  # fmt: skip
#: Versions of operators that have the form in use; 1 for the others.
VERSIONS = {"FULLY_CONNECTED": 5, "BATCH_MATMUL": 3, "BROADCAST_TO": 2}

#: The function that writes each operator.
WRITERS: dict[str, Callable[[Call], None]] = {}


def writes(*ops: str) -> Callable[[Callable[[Call], None]], Callable[[Call], None]]:
    """Registers what writes these operators of ONNX."""

    def register(fn: Callable[[Call], None]) -> Callable[[Call], None]:
        WRITERS.update(dict.fromkeys(ops, fn))
        return fn

    return register


def refused(node: Node, why: str) -> UnsupportedOperatorError:
    return UnsupportedOperatorError(why, (node.op,), where=node.name)


class File:
    """Tensors, buffers and operators as they are added."""

    def __init__(self) -> None:
        self.tensors: list[Any] = []
        self.buffers = [schema.BufferT()]
        self.operators: list[Any] = []
        self.codes: dict[int, Any] = {}
        #: tensors of a value: in its own order, and channels-last
        self.forms: dict[Value, dict[bool, int]] = {}

    def add(self, shape: Sequence[int], dtype: DType | None, data: np.ndarray | None = None) -> int:
        if dtype not in TYPES:
            raise UnsupportedOperatorError(f"values of type {dtype} are not written", ())
        made = schema.TensorT()
        made.shape = np.array(shape, np.int32)
        made.type = TYPES[dtype]
        made.name = f"t{len(self.tensors)}"
        if data is not None:
            buffer = schema.BufferT()
            buffer.data = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
            self.buffers.append(buffer)
            made.buffer = len(self.buffers) - 1
        self.tensors.append(made)
        return len(self.tensors) - 1

    def place(self, value: Value, last: bool = False) -> int:
        """A new tensor for a value that an operator, or the caller, fills."""
        shape = static(value)
        at = self.add([shape[i] for i in LAST] if last else shape, value.dtype, None)
        self.forms.setdefault(value, {})[last] = at
        return at

    def tensor(self, value: Value, last: bool = False) -> int:
        """The tensor of a value in that order; one that is not there yet is transposed."""
        forms = self.forms.setdefault(value, {})
        if last in forms:
            return forms[last]
        if value.const is not None:
            data = value.const.transpose(LAST) if last else value.const
            forms[last] = self.add(data.shape, value.dtype, data)
            return forms[last]
        source = forms[not last]
        perm = self.add((4,), DType.I32, np.array(LAST if last else FIRST, np.int32))
        target = self.place(value, last)
        self.op("TRANSPOSE", [source, perm], [target], schema.TransposeOptionsT())
        return target

    def has_last(self, value: Value) -> bool:
        return True in self.forms.get(value, ())

    def op(self, code: str, inputs: Sequence[int], outputs: Sequence[int], options: Any) -> None:
        number = getattr(schema.BuiltinOperator, code)
        if number not in self.codes:
            made = schema.OperatorCodeT()
            made.builtinCode, made.deprecatedBuiltinCode = number, min(number, 127)
            made.version = VERSIONS.get(code, 1)
            self.codes[number] = made
        op = schema.OperatorT()
        op.opcodeIndex = list(self.codes).index(number)
        op.inputs, op.outputs = np.array(inputs, np.int32), np.array(outputs, np.int32)
        if options is not None:
            kind = type(options).__name__.removesuffix("T")
            op.builtinOptionsType = getattr(schema.BuiltinOptions, kind)
            op.builtinOptions = options
        self.operators.append(op)

    def packed(self, inputs: list[int], outputs: list[int]) -> bytes:
        graph = schema.SubGraphT()
        graph.tensors, graph.operators, graph.name = self.tensors, self.operators, b"main"
        graph.inputs, graph.outputs = np.array(inputs, np.int32), np.array(outputs, np.int32)
        model = schema.ModelT()
        model.version, model.subgraphs, model.buffers = 3, [graph], self.buffers
        model.operatorCodes = list(self.codes.values())
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


class Call:
    """A node, its inputs as tensors, and the operators that take its place."""

    def __init__(self, file: File, node: Node) -> None:
        self.file, self.node = file, node
        op = find_op(node.op)
        assert op is not None
        self.attrs = {**op.attrs, **node.attrs}

    def value(self, index: int) -> Value:
        value = self.node.input(index)
        if value is None:
            raise self.refused(f"input {index} is missing")
        return value

    def const(self, index: int) -> np.ndarray:
        """The contents of a constant input."""
        value = self.value(index)
        if value.const is None:
            raise self.refused(f"input {index} is computed")
        return value.const

    def ints(self, index: int) -> list[int] | None:
        """A constant list of whole numbers, None when the input is absent."""
        if self.node.input(index) is None:
            return None
        return [int(v) for v in self.const(index).ravel()]

    def x(self, index: int = 0, last: bool = False) -> int:
        return self.file.tensor(self.value(index), last)

    def shape(self, index: int = 0) -> tuple[int, ...]:
        return static(self.value(index))

    def rank(self, index: int = 0) -> int:
        return len(self.shape(index))

    def array(self, data: Any, dtype: type = np.float32) -> int:
        """A constant tensor."""
        array = np.asarray(data, dtype)
        return self.file.add(array.shape, DType.of(array.dtype), array)

    def emit(
        self, code: str, inputs: Sequence[int], shape: Sequence[int], options: Any = None,
        dtype: DType | None = None,
    ) -> int:  # fmt: skip
        """An operator before the last one; its output is float32 unless another type is given."""
        made = self.file.add(shape, dtype or self.node.output.dtype, None)
        self.file.op(code, inputs, [made], options)
        return made

    def last(
        self, code: str, inputs: Sequence[int], options: Any = None, last: bool = False
    ) -> None:
        """The operator that gives the node's outputs, in that order."""
        outputs = [self.file.place(v, last) for v in self.node.outputs]
        self.file.op(code, inputs, outputs, options)

    def keeps_last(self) -> bool:
        """Whether an operator on elements computes in channels-last: an input of rank 4 is there
        in it, and what is broadcast to it is constant."""
        given = [v for v in self.node.inputs if v is not None]
        return (
            len(static(self.node.output)) == 4
            and any(self.file.has_last(v) for v in given)
            and all(len(static(v)) in (0, 4) or v.const is not None for v in given)
        )

    def operand(self, index: int, last: bool) -> int:
        """An input that broadcasts to the output."""
        value = self.value(index)
        if last and value.const is not None and 0 < value.const.ndim < 4:
            data = value.const.reshape((1,) * (4 - value.const.ndim) + value.const.shape)
            return self.file.add([data.shape[i] for i in LAST], value.dtype, data.transpose(LAST))
        return self.file.tensor(value, last and len(static(value)) == 4)

    def refused(self, why: str) -> UnsupportedOperatorError:
        return refused(self.node, why)


def static(value: Value) -> tuple[int, ...]:
    shape = value.shape if value.const is None else value.const.shape
    if shape is None or not all(isinstance(d, int) for d in shape):
        raise UnsupportedOperatorError(f"the shape of {value.name} is not known", ())
    return tuple(int(d) for d in shape)


def options(kind: str, **fields: Any) -> Any:
    """An option table by the schema's name of it, like options("Reducer", keepDims=True)."""
    made = getattr(schema, f"{kind}OptionsT")()
    for name, value in fields.items():
        setattr(made, name, value)
    return made
