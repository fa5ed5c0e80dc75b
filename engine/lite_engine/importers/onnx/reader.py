"""ModelProto → Graph: scopes, nodes, subgraphs and functions.

Each node is read into a Call, brought to its newest form by `upgrade`, and appended with its types
inferred, so that upgrades may ask for ranks and constants of what came before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import LiteError, ModelFormatError, UnsupportedOperatorError
from ...ir import DType, Graph, Node, Value
from ...ops import infer_node
from .._protobuf import Message
from .order import in_order
from .tensors import TensorReader, dtype_of, read_type
from .upgrade import Call, upgrade
from .vendor import vendor_op

MAX_NODES = 200_000
MAX_CALL_DEPTH = 32

#: Attributes that hold a TensorProto.DataType.
_DTYPE_ATTRS = {
    "Cast": "to",
    "BitCast": "to",
    "EyeLike": "dtype",
    "RandomNormal": "dtype",
    "RandomUniform": "dtype",
    "RandomNormalLike": "dtype",
    "RandomUniformLike": "dtype",
    "Bernoulli": "dtype",
    "Multinomial": "dtype",
    "HannWindow": "output_datatype",
    "HammingWindow": "output_datatype",
    "BlackmanWindow": "output_datatype",
    "MelWeightMatrix": "output_datatype",
    "Attention": "softmax_precision",
    "FlexAttention": "softmax_precision",
    "QuantizeLinear": "output_dtype",
    "DequantizeLinear": "output_dtype",
}


@dataclass
class Scope:
    """Names visible to a graph's nodes; `prefix` keeps inlined functions apart."""

    graph: Graph
    opsets: dict[str, int]
    values: dict[str, Value] = field(default_factory=dict)
    outer: Scope | None = None
    prefix: str = ""
    path: str = ""  # the calls this scope is inside of, for `sources`
    attrs: dict[str, Any] = field(default_factory=dict)  # a function's attribute values
    absent: set[str] = field(default_factory=set)  # a function's inputs that were not given
    depth: int = 0
    ends: frozenset[str] | None = None  # a graph's outputs; None in a function

    def look_up(self, name: str) -> Value | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        return None

    def is_absent(self, name: str) -> bool:
        return name in self.absent or (self.outer is not None and self.outer.is_absent(name))


class ModelReader:
    """Reads one ModelProto."""

    def __init__(self, model: Message, folder: Path) -> None:
        self.model = model
        self.tensors = TensorReader(folder)
        self.functions = {(f.text(10), f.text(1), f.text(13)): f for f in model.messages(25)}
        self._node_names: set[str] = set()
        self._node_count = 0
        self._serial = 0

    def graph(self) -> Graph:
        proto = self.model.message(7)
        opsets = _opsets(self.model.messages(8))
        if proto is None:
            raise ModelFormatError("not an ONNX model: it holds no graph")
        if not opsets:
            raise ModelFormatError("the model does not say its opset version")
        self._check_expansion(proto)
        graph = self._graph(proto, opsets, None)
        graph.metadata = {
            "format": "onnx",
            "opset": opsets.get("", 0),
            "opsets": opsets,
            "ir_version": self.model.int(1),
            "producer": f"{self.model.text(2)} {self.model.text(3)}".strip(),
            "properties": {e.text(1): e.text(2) for e in self.model.messages(14)},
        }
        graph.metadata.update(_travelling(graph.metadata["properties"]))
        read = _read_names(proto)
        stored = [tensor.text(8) for tensor in proto.messages(5)]
        graph.metadata["unused_weights"] = [name for name in stored if name not in read]
        return graph

    def _check_expansion(self, proto: Message) -> None:
        """Functions that call each other can stand for more nodes than any memory holds."""
        if not self.functions:
            return
        sizes: dict[tuple[str, str, str], int] = {}

        def size(nodes: list[Message], depth: int) -> int:
            if depth > MAX_CALL_DEPTH:
                raise ModelFormatError(f"functions call each other more than {MAX_CALL_DEPTH} deep")
            total = 0
            for node in nodes:
                key = (node.text(7), node.text(4), node.text(8))
                if key in self.functions and key not in sizes:
                    sizes[key] = size(self.functions[key].messages(7), depth + 1)
                total += sizes.get(key, 1)
            return total

        if (total := size(proto.messages(1), 0)) > MAX_NODES:
            raise ModelFormatError(f"its functions stand for {total} nodes, more than {MAX_NODES}")

    # ---- graphs

    def _graph(self, proto: Message, opsets: dict[str, int], outer: Scope | None) -> Graph:
        graph = Graph(proto.text(2))
        scope = Scope(
            graph,
            opsets,
            outer=outer,
            depth=outer.depth if outer else 0,
            attrs=outer.attrs if outer else {},
            prefix=outer.prefix if outer else "",
            path=outer.path if outer else "",
            ends=frozenset(info.text(1) for info in proto.messages(12)),
        )
        self._initialisers(proto, scope)
        for info in proto.messages(11):
            name = info.text(1)
            if name in scope.values:  # old exporters list initialisers as inputs too
                continue
            value = self._define(scope, name)
            value.dtype, value.shape = read_type(info.message(2), name)
            graph.inputs.append(value)
        hints = {info.text(1): info for info in (*proto.messages(13), *proto.messages(12))}
        self._nodes(proto.messages(1), scope, hints)
        for info in proto.messages(12):
            name = info.text(1)
            found = scope.look_up(name)
            if found is None:
                raise ModelFormatError(f"graph output {name!r} is made by no node")
            graph.outputs.append(found)
        self._separate_outputs(scope, [info.text(1) for info in proto.messages(12)])
        graph._serial = max(self._serial, _largest_suffix(graph))
        return graph

    def _initialisers(self, proto: Message, scope: Scope) -> None:
        for tensor in proto.messages(5):
            name = tensor.text(8)
            array, dtype = self.tensors.read(tensor)
            if name in scope.values:
                raise ModelFormatError(f"initialiser {name!r} is given twice")
            scope.values[name] = Value(scope.prefix + name, dtype, const=array)
        for sparse in proto.messages(15):
            array, dtype, name = self.tensors.read_sparse(sparse)
            scope.values[name] = Value(scope.prefix + name, dtype, const=array)

    def _define(self, scope: Scope, name: str) -> Value:
        if name in scope.values:
            raise ModelFormatError(f"two nodes or inputs make the value {name!r}")
        value = Value(scope.prefix + name)
        scope.values[name] = value
        return value

    def _separate_outputs(self, scope: Scope, names: list[str]) -> None:
        """An output that is a value of the outer graph gets an Identity, so it has a producer."""
        graph = scope.graph
        for i, (name, value) in enumerate(zip(names, graph.outputs, strict=True)):
            twice = any(v is value for v in graph.outputs[:i])
            if not twice and (name in scope.values or value.is_const):
                continue
            node = Node(
                "Identity",
                [value],
                [Value(self.unique(f"{value.name}.out"))],
                name=self._node_name("", value.name),
            )
            node.output.dtype, node.output.shape = value.dtype, value.shape
            graph.nodes.append(node)
            graph.outputs[i] = node.output

    # ---- nodes

    def _nodes(self, protos: list[Message], scope: Scope, hints: dict[str, Message]) -> None:
        self._node_count += len(protos)
        if self._node_count > MAX_NODES:
            raise ModelFormatError(f"more than {MAX_NODES} nodes (functions expanded)")
        for proto in in_order(protos):
            self._node(proto, scope, hints)

    def _node(self, proto: Message, scope: Scope, hints: dict[str, Message]) -> None:
        domain, op = proto.text(7), proto.text(4)
        domain = "" if domain == "ai.onnx" else domain
        label = proto.text(3) or next((o for o in proto.texts(2) if o), op)
        inputs = [self._read(scope, name, label) for name in proto.texts(1)]
        function = self.functions.get((proto.text(7), op, proto.text(8)))
        if function is not None:
            attrs = dict(self._attributes(proto, scope, label))
            self._inline(function, proto, inputs, attrs, scope, label)
            return
        if op == "Identity" and not domain and self._second_name(proto.texts(2), inputs, scope):
            return
        outputs = [self._output(scope, name, hints) for name in proto.texts(2)]
        while len(outputs) > 1 and outputs[-1] is None:
            outputs.pop()
        while inputs and inputs[-1] is None:
            inputs.pop()
        attrs = dict(self._attributes(proto, scope, label))
        if op == "Constant" and not domain:
            self._constant(attrs, outputs, scope, label)
            return
        key = _DTYPE_ATTRS.get(op)
        if key in attrs and isinstance(attrs[key], int):
            attrs[key] = dtype_of(attrs[key], label) if attrs[key] else None
            if attrs[key] is None:
                del attrs[key]
        call = Call(
            op,
            inputs,
            [v or Value(self.unique(f"{label}.unused")) for v in outputs],
            attrs,
            label,
            domain,
            scope.opsets.get(domain, 1),
        )
        if domain:
            vendor_op(call)
        emit = self._emitter(scope, call)
        upgrade(call, emit)
        emit(call.op, call.inputs, call.attrs, call.outputs)

    def _second_name(self, names: list[str], inputs: list[Value | None], scope: Scope) -> bool:
        """PyTorch shares equal initialisers through Identities: names of one value. One that is an
        output of the graph stays a node, which has that name."""
        value = inputs[0] if len(inputs) == 1 else None
        if value is None or not value.is_const or len(names) != 1 or scope.ends is None:
            return False
        if names[0] in scope.ends or names[0] in scope.values:
            return False
        scope.values[names[0]] = value
        return True

    def _emitter(self, scope: Scope, call: Call) -> Callable[..., Value]:
        """A function that appends a node, typed, and returns its first output."""

        def emit(
            op: str,
            inputs: list[Value | None],
            attrs: dict[str, Any] | None = None,
            outputs: list[Value] | None = None,
        ) -> Value:
            name = self._node_name(scope.prefix, call.label)
            outs = outputs or [Value(self.unique(call.label))]
            node = Node(
                op,
                inputs,
                outs,
                attrs,
                name=name,
                sources=(scope.path + call.label,),
                domain=call.domain,
            )
            scope.graph.nodes.append(node)
            try:
                types = infer_node(node)
            except LiteError:
                return outs[0]  # unknown here; what cannot run says so later, in a table
            for value, info in zip(outs, types, strict=False):
                value.dtype = info.dtype
                if info.shape is not None:
                    value.shape = info.shape
            return outs[0]

        return emit

    def _read(self, scope: Scope, name: str, label: str) -> Value | None:
        if not name:
            return None
        value = scope.look_up(name)
        if value is None and not scope.is_absent(name):
            raise ModelFormatError(
                f"input {name!r} is made by no node, input or initialiser", where=label
            )
        return value

    def _output(self, scope: Scope, name: str, hints: dict[str, Message]) -> Value | None:
        if not name:
            return None
        value = self._define(scope, name)
        if name in hints:
            try:
                value.dtype, value.shape = read_type(hints[name].message(2), name)
            except UnsupportedOperatorError:
                return value  # a sequence or optional inside the graph: its operator reports it
        return value

    def _node_name(self, prefix: str, label: str) -> str:
        name = prefix + label
        number = 1
        while name in self._node_names:
            number += 1
            name = f"{prefix}{label}.{number}"
            if number > 3:  # many nodes of one name: go on from a number nobody has yet
                self._serial += 1
                number = max(number, self._serial)
        self._node_names.add(name)
        return name

    def unique(self, stem: str) -> str:
        self._serial += 1
        return f"{stem}.{self._serial}"

    # ---- attributes and constants

    def _attributes(self, proto: Message, scope: Scope, label: str) -> Iterator[tuple[str, Any]]:
        for attr in proto.messages(5):
            name, reference = attr.text(1), attr.text(21)
            if reference:
                if reference in scope.attrs:
                    yield name, scope.attrs[reference]
            else:
                yield name, self._attribute(attr, scope, label)

    def _attribute(self, attr: Message, scope: Scope, label: str) -> Any:
        kind = attr.int(20) or _guess_kind(attr)
        if kind == 1:
            return attr.float(2)
        if kind == 2:
            return attr.int(3)
        if kind == 3:
            return attr.text(4)
        if kind == 4:
            tensor = attr.message(5)
            if tensor is None:
                raise ModelFormatError(f"attribute {attr.text(1)!r} has no tensor", where=label)
            array, dtype = self.tensors.read(tensor)
            return Value("", dtype, const=array)
        if kind == 5:
            graph = attr.message(6)
            if graph is None:
                raise ModelFormatError(f"attribute {attr.text(1)!r} has no graph", where=label)
            return self._graph(graph, scope.opsets, scope)
        if kind == 6:
            return [float(v) for v in attr.fixed(7, np.float32)]
        if kind == 7:
            return attr.ints(8)
        if kind == 8:
            return attr.texts(9)
        if kind == 11:
            sparse = attr.message(22)
            if sparse is not None:
                array, dtype, _ = self.tensors.read_sparse(sparse)
                return Value("", dtype, const=array)
        raise UnsupportedOperatorError(
            f"attribute {attr.text(1)!r} has a type (kind {kind}) that is not supported",
            (label,),
            where=label,
        )

    def _constant(
        self, attrs: dict[str, Any], outputs: list[Value | None], scope: Scope, label: str
    ) -> None:
        if len(attrs) != 1 or len(outputs) != 1 or outputs[0] is None:
            raise ModelFormatError("a Constant has one value and one output", where=label)
        ((key, given),) = attrs.items()
        types = {
            "value_float": np.float32,
            "value_floats": np.float32,
            "value_int": np.int64,
            "value_ints": np.int64,
        }
        out = outputs[0]
        if key in ("value", "sparse_value") and isinstance(given, Value):
            out.const, out.dtype = given.const, given.dtype
        elif key in types:
            out.const = np.array(given, types[key])
            out.dtype = DType.of(out.const)
        else:
            raise UnsupportedOperatorError(
                f"constants of kind {key} are not supported", (label,), where=label
            )
        assert out.const is not None
        out.shape = out.const.shape

    # ---- functions

    def _inline(
        self,
        function: Message,
        call: Message,
        inputs: list[Value | None],
        attrs: dict[str, Any],
        scope: Scope,
        label: str,
    ) -> None:
        """A function's nodes in place of its call."""
        if scope.depth >= MAX_CALL_DEPTH:
            raise ModelFormatError(
                f"functions call each other more than {MAX_CALL_DEPTH} deep", where=label
            )
        defaults = {a.text(1): self._attribute(a, scope, label) for a in function.messages(11)}
        inner = Scope(
            scope.graph,
            {**scope.opsets, **_opsets(function.messages(9))},
            prefix=self.unique(f"{scope.prefix}{label}") + "/",
            path=f"{scope.path}{label}/",
            attrs={**defaults, **attrs},
            depth=scope.depth + 1,
        )
        names = function.texts(4)
        given = dict(zip(names, [*inputs, *[None] * len(names)], strict=False))
        inner.values = {k: v for k, v in given.items() if v is not None}
        inner.absent = {k for k, v in given.items() if v is None}
        self._nodes(function.messages(7), inner, {})
        for name, target in zip(function.texts(5), call.texts(2)):
            if target:
                found = inner.look_up(name)
                if found is None:
                    raise ModelFormatError(
                        f"function output {name!r} is made by no node", where=label
                    )
                if target in scope.values:
                    raise ModelFormatError(f"two nodes or inputs make the value {target!r}")
                if found.producer is not None and found.name == inner.prefix + name:
                    found.name = scope.prefix + target
                scope.values[target] = found


def _guess_kind(attr: Message) -> int:
    """The kind of an attribute written before `type` existed."""
    fields = ((2, 1), (3, 2), (4, 3), (5, 4), (6, 5), (7, 6), (8, 7), (9, 8), (22, 11))
    return next((kind for number, kind in fields if number in attr), 7)


def _opsets(imports: list[Message]) -> dict[str, int]:
    """Domain → version; `ai.onnx` is the empty domain."""
    return {("" if o.text(1) == "ai.onnx" else o.text(1)): o.int(2) for o in imports}


def _largest_suffix(graph: Graph) -> int:
    """The largest N of names that end in `.N`, so that new names differ from the file's."""
    largest = 0
    names = [v.name for v in graph.values()] + [n.name for n in graph.nodes]
    for name in names:
        found = re.search(r"\.(\d{1,15})$", name)
        if found:
            largest = max(largest, int(found.group(1)))
    return largest


def _read_names(proto: Message) -> set[str]:
    """Every name that a graph's nodes read, those of their branches included, and its outputs."""
    names = {info.text(1) for info in proto.messages(12)}
    for node in proto.messages(1):
        names.update(node.texts(1))
        for attr in node.messages(5):
            for inner in (*attr.messages(6), *attr.messages(11)):
                names |= _read_names(inner)
    return names


def _travelling(properties: dict[str, str]) -> dict[str, Any]:
    """Pre-processing and labels kept as JSON in the model's own metadata properties."""
    found: dict[str, Any] = {}
    for key, kind in (("preprocess", dict), ("labels", list)):
        try:
            value = json.loads(properties.get(key, "null"))
        except (ValueError, RecursionError):
            continue  # somebody else's property of that name
        if isinstance(value, kind):
            found[key] = value
    return found
