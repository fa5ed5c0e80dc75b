"""The table of translations: Paddle operator type → function that emits ONNX operators.

@translates("relu6")
def _(op: Call) -> None:
    op.set("Out", op.node("Clip", [op["X"], op.const(0.0), op.const(op.attr("threshold", 6.0))]))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import UnsupportedOperatorError
from ...ir import DType, Value
from .program import DTYPES, Op
from .scope import Scope

Translation = Callable[["Call"], None]
_TABLE: dict[str, Translation] = {}


def translates(*types: str) -> Callable[[Translation], Translation]:
    """Registers a translation for Paddle operator types."""

    def register(fn: Translation) -> Translation:
        for name in types:
            if name in _TABLE:
                raise ValueError(tr("{name} is translated twice", name=name))
            _TABLE[name] = fn
        return fn

    return register


def find_translation(name: str) -> Translation | None:
    return _TABLE.get(name)


def known_types() -> list[str]:
    return sorted(_TABLE)


def translate_block(scope: Scope) -> None:
    """Runs the translations of a block's operators in their order.

    Raises UnsupportedOperatorError."""
    for op, source in zip(scope.block.ops, scope.block.sources()):
        if op.type in ("feed", "fetch"):
            continue
        fn = find_translation(op.type)
        if fn is None:
            raise UnsupportedOperatorError(
                tr("this operator is not supported"), (op.type,), where=source
            )
        scope.emit.source = source
        fn(Call(scope, op, source))


class Call:
    """One Paddle operator being translated; `call["X"]` is the Value in slot X, or None."""

    def __init__(self, scope: Scope, op: Op, source: str) -> None:
        self.scope = scope
        self.op = op
        self.source = source

    # ---- reading
    @property
    def type(self) -> str:
        return self.op.type

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute, of the kind that `default` has. Raises ModelFormatError."""
        return self.op.attr(name, default, self.source)

    def flag(self, name: str, default: bool = False) -> bool:
        return bool(self.op.attrs.get(name, default))

    def ints(self, name: str, default: Sequence[int] = ()) -> list[int]:
        """An attribute that is an integer or a list of integers, as a list."""
        return self.op.ints(name, default, self.source)

    def all(self, slot: str) -> list[Value]:
        """Every Value in a slot."""
        return [self.scope.read(n) for n in self.op.inputs.get(slot, ()) if n]

    def __getitem__(self, slot: str) -> Value | None:
        values = self.all(slot)
        return values[0] if values else None

    def need(self, slot: str) -> Value:
        """Raises UnsupportedOperatorError when the slot is empty."""
        value = self[slot]
        if value is None:
            raise self.unsupported(tr("its input {slot!r} is missing", slot=slot))
        return value

    def out_name(self, slot: str) -> str | None:
        names = self.op.outputs.get(slot)
        return names[0] if names else None

    def unsupported(self, why: str) -> UnsupportedOperatorError:
        return UnsupportedOperatorError(why, (self.source,), where=self.source)

    # ---- types
    def rank(self, value: Value) -> int:
        """Raises UnsupportedOperatorError when it is not known."""
        if value.shape is None:
            raise self.unsupported(
                tr(
                    "the rank of {name} is not known; export the model again with input shapes",
                    name=value.name,
                )
            )
        return len(value.shape)

    def size(self, value: Value, axis: int) -> int | None:
        """Its size along an axis, None when it is not known. Raises UnsupportedOperatorError for
        an axis that it does not have."""
        if value.shape is None:
            return None
        if not -len(value.shape) <= axis < len(value.shape):
            raise self.unsupported(
                tr(
                    "axis {axis} is outside {name}, which has rank {rank}",
                    axis=axis,
                    name=value.name,
                    rank=self.rank(value),
                )
            )
        size = value.shape[axis]
        return size if isinstance(size, int) else None

    def dtype(self, value: Value) -> DType:
        return value.dtype or DType.F32

    def attr_dtype(self, name: str, default: int) -> DType:
        number = int(self.attr(name, default))
        if number == -1:
            number = default
        if number not in DTYPES:
            raise self.unsupported(tr("element type {number} is not supported", number=number))
        return DTYPES[number]

    # ---- emitting
    def const(self, data: Any, dtype: DType | None = None, like: Value | None = None) -> Value:
        """A constant: float32 or int64 unless `dtype` (or the dtype of `like`) says otherwise."""
        if like is not None and like.dtype is not None:
            dtype = like.dtype
        try:
            array = np.asarray(data)
            if dtype is None:
                dtype = DType.F32 if array.dtype.kind == "f" else DType.I64
            array = array.astype(dtype.np)
        except (OverflowError, ValueError, TypeError):
            # an integer of more than 64 bits, a ragged list, what is no number
            raise self.unsupported(tr("its value is not valid tensor data")) from None
        return self.scope.emit.const(array)

    def node(self, kind: str, inputs: Sequence[Value | None], **attrs: Any) -> Value:
        """Emits an operator; its first output."""
        return self.nodes(kind, inputs, 1, **attrs)[0]

    def nodes(
        self, kind: str, inputs: Sequence[Value | None], outputs: int, **attrs: Any
    ) -> list[Value]:
        """Emits an operator; all its outputs, with types where they can be inferred. Attributes
        that are None are left out."""
        inputs = list(inputs)
        while inputs and inputs[-1] is None:
            inputs.pop()
        given = {k: v for k, v in attrs.items() if v is not None}
        return self.scope.emit.outputs(kind, inputs, outputs, **given)

    def set(self, slot: str, value: Value, index: int = 0) -> None:
        """Binds the output variable of a slot (absent ones are ignored)."""
        names = self.op.outputs.get(slot, ())
        if index < len(names) and names[index]:
            self.scope.bind(names[index], value)

    # ---- small steps that many translations need
    def transpose(self, x: Value, perm: Sequence[int]) -> Value:
        return self.scope.emit.transpose(x, perm)

    def to_shape(self, x: Value, dims: Sequence[int]) -> Value:
        """Reshape; 0 copies a dimension, -1 is inferred."""
        return self.node("Reshape", [x, self.const(list(dims))])

    def cast(self, x: Value, dtype: DType) -> Value:
        return x if x.dtype is dtype else self.node("Cast", [x], to=dtype)

    def vector(self, x: Value) -> Value:
        """A tensor of integers as int64 of rank 1."""
        if x.const is not None:
            return self.const(x.const.reshape(-1), DType.I64)
        x = self.cast(x, DType.I64)
        return x if x.shape is not None and len(x.shape) == 1 else self.to_shape(x, [-1])

    def list_input(self, tensor: str, tensors: str, attr: str | Sequence[int]) -> Value | None:
        """A list of integers given as one tensor, as a list of scalars, or as an attribute (or
        numbers already read), in this order → int64 vector, None when it is nowhere."""
        one = self[tensor] if tensor else None
        if one is not None:
            return self.vector(one)
        parts = [self.vector(v) for v in self.all(tensors)] if tensors else []
        if parts:
            if all(p.const is not None for p in parts):
                return self.const(np.concatenate([p.const for p in parts]))
            return parts[0] if len(parts) == 1 else self.node("Concat", parts, axis=0)
        if isinstance(attr, str):
            if self.attr(attr) is None:
                return None
            attr = self.ints(attr)
        return self.const(list(attr))

    def fixed_ints(self, value: Value | None, what: str) -> list[int]:
        """The contents of a constant. Raises UnsupportedOperatorError when it is computed."""
        if value is None or value.const is None:
            raise self.unsupported(
                tr("{what} is computed at run time; export it as a constant", what=what)
            )
        return [int(v) for v in value.const.reshape(-1)]

    def fixed_int(self, value: Value | None, what: str) -> int:
        """The one number of a constant. Raises UnsupportedOperatorError."""
        numbers = self.fixed_ints(value, what)
        if len(numbers) != 1:
            raise self.unsupported(
                tr("{what} must be one number, found {numbers}", what=what, numbers=len(numbers))
            )
        return numbers[0]
