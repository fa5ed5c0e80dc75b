"""ModelProto → Graph: scopes, nodes, subgraphs and functions.

Each node is read into a Call, brought to its newest form by `upgrade`, and appended with its types
inferred, so that upgrades may ask for ranks and constants of what came before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import LiteError, ModelFormatError, UnsupportedOperatorError
from ...ir import DType, Graph, Node, Value
from ...ops import infer_node
from .._protobuf import Message
from . import fields, group_query, microsoft, upgrade_images  # noqa: F401  fills the table
from .attributes import DTYPE_ATTRS, numbers, read_attribute
from .call import Call
from .expansion import MAX_CALL_DEPTH, MAX_NODES, check_expansion
from .names import Names, largest_suffix, read_names, read_opsets, travelling
from .order import in_order
from .scope import Scope
from .tensors import TensorReader, dtype_of, read_type
from .upgrade import upgrade
from .vendor import vendor_op

__all__ = ["ModelReader", "group_query", "microsoft"]  # which register their forms


class ModelReader:
    """Reads one ModelProto."""

    def __init__(self, model: Message, folder: Path) -> None:
        self.model = model
        self.tensors = TensorReader(folder)
        self.functions = {
            (
                f.text(fields.Function.DOMAIN),
                f.text(fields.Function.NAME),
                f.text(fields.Function.OVERLOAD),
            ): f
            for f in model.messages(fields.Model.FUNCTIONS)
        }
        self._names = Names()
        self._node_count = 0
        self._wider: dict[Value, Value] = {}

    def graph(self) -> Graph:
        proto = self.model.message(fields.Model.GRAPH)
        opsets = read_opsets(self.model.messages(fields.Model.OPSET_IMPORT))
        if proto is None:
            raise ModelFormatError(tr("not an ONNX model: it contains no graph"))
        if not opsets:
            raise ModelFormatError(tr("the model does not state its opset version"))
        check_expansion(proto, self.functions)
        graph = self._graph(proto, opsets, None)
        producer = (fields.Model.PRODUCER_NAME, fields.Model.PRODUCER_VERSION)
        graph.metadata |= {
            "format": "onnx",
            "opset": opsets.get("", 0),
            "opsets": opsets,
            "ir_version": self.model.int(fields.Model.IR_VERSION),
            "producer": " ".join(map(self.model.text, producer)).strip(),
            "properties": {
                e.text(fields.Entry.KEY): e.text(fields.Entry.VALUE)
                for e in self.model.messages(fields.Model.METADATA_PROPS)
            },
        }
        graph.metadata.update(travelling(graph.metadata["properties"]))
        read = read_names(proto)
        stored = [
            tensor.text(fields.Tensor.NAME)
            for tensor in proto.messages(fields.GraphProto.INITIALIZER)
        ]
        graph.metadata["unused_weights"] = [name for name in stored if name not in read]
        return graph

    # ---- graphs

    def _graph(self, proto: Message, opsets: dict[str, int], outer: Scope | None) -> Graph:
        graph = Graph(proto.text(fields.GraphProto.NAME))
        scope = Scope(
            graph,
            opsets,
            outer=outer,
            depth=outer.depth if outer else 0,
            attrs=outer.attrs if outer else {},
            prefix=outer.prefix if outer else "",
            path=outer.path if outer else "",
            ends=frozenset(
                info.text(fields.ValueInfo.NAME)
                for info in proto.messages(fields.GraphProto.OUTPUT)
            ),
        )
        self._initialisers(proto, scope)
        for info in proto.messages(fields.GraphProto.INPUT):
            name = info.text(fields.ValueInfo.NAME)
            if name in scope.values:  # old exporters list initialisers as inputs too
                continue
            value = self._define(scope, name)
            value.dtype, value.shape = read_type(info.message(fields.ValueInfo.TYPE), name)
            graph.inputs.append(value)
        hints = {
            info.text(fields.ValueInfo.NAME): info
            for info in (
                *proto.messages(fields.GraphProto.VALUE_INFO),
                *proto.messages(fields.GraphProto.OUTPUT),
            )
        }
        self._nodes(proto.messages(fields.GraphProto.NODE), scope, hints)
        for info in proto.messages(fields.GraphProto.OUTPUT):
            name = info.text(fields.ValueInfo.NAME)
            found = scope.look_up(name)
            if found is None:
                raise ModelFormatError(
                    tr("graph output {name!r} is not computed by any node", name=name)
                )
            graph.outputs.append(found)
        self._separate_outputs(
            scope,
            [info.text(fields.ValueInfo.NAME) for info in proto.messages(fields.GraphProto.OUTPUT)],
        )
        graph._serial = max(self._names.serial, largest_suffix(graph))
        return graph

    def _initialisers(self, proto: Message, scope: Scope) -> None:
        for tensor in proto.messages(fields.GraphProto.INITIALIZER):
            name = tensor.text(fields.Tensor.NAME)
            array, dtype = self.tensors.read(tensor)
            if name in scope.values:
                raise ModelFormatError(tr("initializer {name!r} is defined twice", name=name))
            scope.values[name] = Value(scope.prefix + name, dtype, const=array)
        for sparse in proto.messages(fields.GraphProto.SPARSE_INITIALIZER):
            array, dtype, name = self.tensors.read_sparse(sparse)
            scope.values[name] = Value(scope.prefix + name, dtype, const=array)

    def _define(self, scope: Scope, name: str) -> Value:
        if name in scope.values:
            raise ModelFormatError(
                tr("the value {name!r} is defined by two nodes or inputs", name=name)
            )
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
                [Value(self._names.unique(f"{value.name}.out"))],
                name=self._names.of_node("", value.name),
            )
            node.output.dtype, node.output.shape = value.dtype, value.shape
            graph.nodes.append(node)
            graph.outputs[i] = node.output

    # ---- nodes

    def _nodes(self, protos: list[Message], scope: Scope, hints: dict[str, Message]) -> None:
        self._node_count += len(protos)
        if self._node_count > MAX_NODES:
            raise ModelFormatError(
                tr("more than {max_nodes} nodes after expanding functions", max_nodes=MAX_NODES)
            )
        for proto in in_order(protos):
            self._node(proto, scope, hints)

    def _node(self, proto: Message, scope: Scope, hints: dict[str, Message]) -> None:
        written, op = proto.text(fields.NodeProto.DOMAIN), proto.text(fields.NodeProto.OP_TYPE)
        domain = "" if written == "ai.onnx" else written
        made = proto.texts(fields.NodeProto.OUTPUT)
        label = proto.text(fields.NodeProto.NAME) or next((name for name in made if name), op)
        inputs = [self._read(scope, name, label) for name in proto.texts(fields.NodeProto.INPUT)]
        function = self.functions.get((written, op, proto.text(fields.NodeProto.OVERLOAD)))
        if function is not None:
            attrs = dict(self._attributes(proto, scope, label))
            self._inline(function, proto, inputs, attrs, scope, label)
            return
        if op == "Identity" and not domain and self._second_name(made, inputs, scope):
            return
        outputs = [self._output(scope, name, hints) for name in made]
        while len(outputs) > 1 and outputs[-1] is None:
            outputs.pop()
        while inputs and inputs[-1] is None:
            inputs.pop()
        attrs = dict(self._attributes(proto, scope, label))
        if op == "Constant" and not domain:
            self._constant(attrs, outputs, scope, label)
            return
        key = DTYPE_ATTRS.get(op)
        if key in attrs and isinstance(attrs[key], int):
            attrs[key] = dtype_of(attrs[key], label) if attrs[key] else None
            if attrs[key] is None:
                del attrs[key]
        call = Call(
            op,
            inputs,
            [v or Value(self._names.unique(f"{label}.unused")) for v in outputs],
            attrs,
            label,
            domain,
            scope.opsets.get(domain, 1),
            self._wider,
        )
        if domain:
            vendor_op(call, scope.graph.metadata)
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
            name = self._names.of_node(scope.prefix, call.label)
            outs = outputs or [Value(self._names.unique(call.label))]
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
                tr(
                    "{name!r} is read, but it is neither an input nor an initializer, and "
                    "no node computes it",
                    name=name,
                ),
                where=label,
            )
        return value

    def _output(self, scope: Scope, name: str, hints: dict[str, Message]) -> Value | None:
        if not name:
            return None
        value = self._define(scope, name)
        if name in hints:
            try:
                value.dtype, value.shape = read_type(
                    hints[name].message(fields.ValueInfo.TYPE), name
                )
            except UnsupportedOperatorError:
                return value  # a sequence or optional inside the graph: its operator reports it
        return value

    # ---- attributes and constants

    def _attribute(self, attr: Message, scope: Scope, label: str) -> Any:
        def read_graph(graph: Message) -> Graph:
            return self._graph(graph, scope.opsets, scope)

        return read_attribute(attr, self.tensors, read_graph, label)

    def _attributes(self, proto: Message, scope: Scope, label: str) -> Iterator[tuple[str, Any]]:
        for attr in proto.messages(fields.NodeProto.ATTRIBUTE):
            name, reference = (
                attr.text(fields.Attribute.NAME),
                attr.text(fields.Attribute.REF_ATTR_NAME),
            )
            if reference:
                if reference in scope.attrs:
                    yield name, scope.attrs[reference]
            else:
                yield name, self._attribute(attr, scope, label)

    def _constant(
        self, attrs: dict[str, Any], outputs: list[Value | None], scope: Scope, label: str
    ) -> None:
        if len(attrs) != 1 or len(outputs) != 1 or outputs[0] is None:
            raise ModelFormatError(
                tr("a Constant must have exactly one value and one output"), where=label
            )
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
            out.const = numbers(key, given, types[key], label)
            out.dtype = DType.of(out.const)
        else:
            raise UnsupportedOperatorError(
                tr("constants of kind {key} are not supported", key=key), (label,), where=label
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
                tr(
                    "functions call each other more than {max_call_depth} deep",
                    max_call_depth=MAX_CALL_DEPTH,
                ),
                where=label,
            )
        defaults = {
            a.text(fields.Attribute.NAME): self._attribute(a, scope, label)
            for a in function.messages(fields.Function.ATTRIBUTE_PROTO)
        }
        inner = Scope(
            scope.graph,
            {**scope.opsets, **read_opsets(function.messages(fields.Function.OPSET_IMPORT))},
            prefix=self._names.unique(f"{scope.prefix}{label}") + "/",
            path=f"{scope.path}{label}/",
            attrs={**defaults, **attrs},
            depth=scope.depth + 1,
        )
        names = function.texts(fields.Function.INPUT)
        given = dict(zip(names, [*inputs, *[None] * len(names)], strict=False))
        inner.values = {k: v for k, v in given.items() if v is not None}
        inner.absent = {k for k, v in given.items() if v is None}
        self._nodes(function.messages(fields.Function.NODE), inner, {})
        for name, target in zip(
            function.texts(fields.Function.OUTPUT), call.texts(fields.NodeProto.OUTPUT)
        ):
            if target:
                found = inner.look_up(name)
                if found is None:
                    raise ModelFormatError(
                        tr("function output {name!r} is not computed by any node", name=name),
                        where=label,
                    )
                if target in scope.values:
                    raise ModelFormatError(
                        tr("the value {target!r} is defined by two nodes or inputs", target=target)
                    )
                if found.producer is not None and found.name == inner.prefix + name:
                    found.name = scope.prefix + target
                scope.values[target] = found
