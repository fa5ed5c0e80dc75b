"""One node at a time: the registry of operator translators and what they see of a node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from lite_messages import tr

from ...errors import LiteError, ModelFormatError, UnsupportedOperatorError
from ...ir import DType, Value
from .. import _nhwc
from .._emit import Emitter
from .functions import Flat, Ref
from .graphdef import NodeDef, read_tensor


@dataclass
class TensorList:
    """A list of tensors of an unrolled loop; None where nothing was written. `placeholder` stands
    for it among the values."""

    items: list[Value | None]
    placeholder: Value = field(default_factory=lambda: Value("list"))


Result = Value | TensorList | Sequence[Value | TensorList]
Translator = Callable[["Call"], Result]

OPS: dict[str, Translator] = {}


def op(*names: str) -> Callable[[Translator], Translator]:
    def register(fn: Translator) -> Translator:
        for name in names:
            OPS[name] = fn
        return fn

    return register


@dataclass
class Nodes:
    """Values of a graph's nodes while it is translated."""

    emit: Emitter
    flat: Flat
    #: contents of variables (or why they cannot be read) by the name of their handle node
    variables: dict[str, tuple[np.ndarray, DType] | LiteError] = field(default_factory=dict)
    values: dict[Ref, Value] = field(default_factory=dict)
    #: by the id of the placeholder
    lists: dict[int, TensorList] = field(default_factory=dict)
    _named: set[int] = field(default_factory=set)

    def value(self, ref: Ref) -> Value:
        ref = self.flat.resolve(ref)
        if ref not in self.values:
            raise ModelFormatError(
                tr(
                    "tensorflow: {source} reads output {index} of {name}, which does not exist",
                    source=self.emit.source,
                    index=ref[1],
                    name=ref[0],
                )
            )
        return self.values[ref]

    def list_of(self, ref: Ref) -> TensorList:
        found = self.lists.get(id(self.value(ref)))
        if found is None:
            raise ModelFormatError(
                tr(
                    "tensorflow: {source} reads {ref}, which is not a list",
                    source=self.emit.source,
                    ref=ref[0],
                )
            )
        return found

    def call(self, name: str, function: str, inputs: list[Ref]) -> list[Ref]:
        """Translates the body of a function now; references to what it returns."""
        source = self.emit.source
        returned = self.flat.call(name, function, inputs)
        for node in self.flat.order(returned, self.values):
            self.translate(node)
        self.emit.source = source
        return returned

    def translate(self, name: str) -> None:
        """Gives a node's outputs their values; an input that is set already is left alone."""
        if (name, 0) in self.values:
            return
        node = self.flat.nodes[name]
        self.emit.source = name
        if node.op not in OPS:
            raise UnsupportedOperatorError(
                tr(
                    "TensorFlow operator {node} inside a loop or branch is not supported",
                    node=node.op,
                ),
                (name,),
                where=name,
            )
        result = OPS[node.op](Call(self, name, node))
        values = [result] if isinstance(result, (Value, TensorList)) else list(result)
        shapes = node.attrs.shapes("_output_shapes")
        for index, value in enumerate(values):
            if isinstance(value, TensorList):
                self.lists[id(value.placeholder)] = value
                self.values[name, index] = value.placeholder
                continue
            if value.producer is not None and id(value) not in self._named:
                self._named.add(id(value))
                value.name = self.emit.unique(f"{name}:{index}" if index else name)
                if index < len(shapes):
                    _refine(value, shapes[index])
            self.values[name, index] = value


def _refine(value: Value, stated: tuple[object, ...] | None) -> None:
    """Sizes that the file states where none could be inferred."""
    if stated is None:
        return
    if value.shape is None:
        value.shape = stated  # type: ignore[assignment]
    elif len(value.shape) == len(stated):
        value.shape = tuple(
            own if isinstance(own, int) or not isinstance(other, int) else other
            for own, other in zip(value.shape, stated)
        )


class Call:
    """One node with its inputs as values."""

    def __init__(self, nodes: Nodes, name: str, node: NodeDef) -> None:
        self.nodes = nodes
        self.emit = nodes.emit
        self.name = name
        self.node = node
        self.attrs = node.attrs
        self.refs = nodes.flat.inputs[name]

    def x(self, index: int = 0) -> Value:
        if not -len(self.refs) <= index < len(self.refs):
            raise ModelFormatError(
                tr(
                    "tensorflow: {node} {name} has only {inputs} inputs",
                    node=self.node.op,
                    name=self.name,
                    inputs=len(self.refs),
                )
            )
        return self.nodes.value(self.refs[index])

    def xs(self) -> list[Value]:
        return [self.nodes.value(ref) for ref in self.refs]

    def ints(self, index: int, what: str) -> list[int]:
        return self.emit.ints(self.x(index), what)

    def integer(self, index: int, what: str) -> int:
        return self.emit.integer(self.x(index), what)

    def producer(self, index: int) -> tuple[str, NodeDef]:
        """The node that makes an input."""
        name = self.nodes.flat.resolve(self.refs[index])[0]
        return name, self.nodes.flat.nodes[name]

    # ---- spatial operators
    @property
    def is_channels_last(self) -> bool:
        return not self.attrs.text("data_format", "NHWC").startswith("NC")

    def spatial(self, index: int = 0) -> Value:
        """An input as (N,*S,C), whatever the data_format."""
        x = self.x(index)
        return x if self.is_channels_last else _nhwc.to_last(self.emit, x)

    def from_first(self, y: Value) -> Value:
        """A channels-first result in the node's data_format."""
        return _nhwc.to_last(self.emit, y) if self.is_channels_last else y

    def window(self, name: str) -> list[int]:
        """strides, dilations or ksize of the spatial axes."""
        values = self.attrs.ints(name)
        if not values:
            return []
        if len(values) not in (4, 5):
            raise ModelFormatError(
                tr(
                    "tensorflow: {name}: {attribute} must have 4 or 5 values, found {values}",
                    name=self.name,
                    attribute=name,
                    values=values,
                )
            )
        return values[1:-1] if self.is_channels_last else values[2:]

    @property
    def explicit_pads(self) -> list[int]:
        values = self.attrs.ints("explicit_paddings")
        return values[2:-2] if self.is_channels_last else values[4:]

    @property
    def padding(self) -> str:
        return self.attrs.text("padding", "VALID")

    def constant(self) -> Value:
        """The `value` attribute of a Const."""
        message = self.attrs.tensor("value")
        if message is None:
            raise ModelFormatError(
                tr("tensorflow: the constant {name} has no value", name=self.name)
            )
        array, dtype = read_tensor(message, self.name)
        return self.emit.const(array, self.name, dtype)
