"""What the engine adds to ONNX's operators, written with ONNX's own.

A fused activation becomes the operator after its producer, a residual an Add before that;
operators that ONNX does not have are spelled out where a formula of a few operators exists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import UnsupportedOperatorError
from ...ir import Node, Value
from ...ops import get_op


@dataclass
class Call:
    """One ONNX operator call; an input is the name of a value, "" when absent."""

    op: str
    inputs: list[str]
    outputs: list[str]
    attrs: dict[str, Any] = field(default_factory=dict)
    domain: str = ""
    version: int = 1
    name: str = ""


#: Called with an array that becomes a constant, gives its name.
Constant = Callable[[np.ndarray], str]

#: An operator's `source` says where it is registered: "ONNX HardSwish-22".
_SOURCE = re.compile(
    r"(?P<domain>ONNX|com\.microsoft|ai\.onnx\.ml|ai\.onnx\.preview) (?P<op>\w+)-(?P<version>\d+)"
)
_POWERS = {"Square": 2.0, "Rsqrt": -0.5}


def registered(op: str) -> tuple[str, int] | None:
    """(domain, version) of an operator in ONNX's registries, None for one that they lack."""
    found = _SOURCE.match(get_op(op).source)
    if found is None or found["op"] != op:
        return None
    return "" if found["domain"] == "ONNX" else found["domain"], int(found["version"])


def why_not(node: Node) -> str:
    """Why a node cannot be written as ONNX; empty when it can."""
    op = get_op(node.op, node.name)
    if node.op == "QLinearConv" and any(node.input(i) is not None for i in range(9, 14)):
        return tr("ONNX's {op} adds no residual", op=node.op)
    if node.op == "QLinearSoftmax" and "opset" not in node.attrs:
        return tr("{op} needs attribute {missing!r}", op=node.op, missing="opset")
    if registered(op.name) is None and op.name not in _SPELLED:
        return tr("ONNX has no operator {op}", op=node.op)
    return ""


def expand(node: Node, constant: Constant, name_of: Callable[[Value], str]) -> list[Call]:
    """The ONNX calls that compute a node's outputs. Raises UnsupportedOperatorError."""
    refused = why_not(node)
    if refused:
        raise UnsupportedOperatorError(refused, (node.name,), where=node.name)
    inputs = ["" if v is None else name_of(v) for v in node.inputs]
    outputs = [v.name for v in node.outputs]
    if node.op in _SPELLED:
        calls = list(_SPELLED[node.op](node, inputs, outputs[0], constant))
    else:
        domain, version = registered(node.op) or ("", 1)
        calls = [Call(node.op, inputs, outputs, dict(node.attrs), domain, version)]
        if get_op(node.op).takes_activation and not domain and node.op != "CausalConvWithState":
            calls = list(_tail(calls[0], node, constant))
    for i, call in enumerate(calls):
        call.name = node.name if i == len(calls) - 1 else f"{node.name}/{call.op}_{i}"
    return calls


def _tail(call: Call, node: Node, constant: Constant) -> Iterator[Call]:
    """The call without what ONNX does not fuse, then that as calls of its own."""
    activation = call.attrs.pop("activation", "")
    params = list(call.attrs.pop("activation_params", []))
    residual = call.inputs.pop(3) if node.op == "Conv" and len(call.inputs) > 3 else ""
    result = call.outputs[0]
    if residual:
        call.outputs = [f"{result}/before_residual"]
        yield call
        call = Call("Add", [call.outputs[0], residual], [result])
    if not activation:
        yield call
        return
    call.outputs = [f"{result}/before_activation"]
    yield call
    kind = node.output.type.dtype.np
    before = call.outputs[0]
    if activation == "Clip":
        low, high = (constant(np.array(p, kind)) for p in params)
        yield Call("Clip", [before, low, high], [result])
    elif activation in _SPELLED:
        stand_in = Node(activation, [Value(before, node.output.dtype)], [Value(result)])
        yield from _SPELLED[activation](stand_in, [before], result, constant)
    else:
        names = list(get_op(activation).attrs)
        attrs = dict(zip(names, params))
        if activation == "Gelu":  # a parameter is a number, the attribute a word
            attrs = {"approximate": "tanh" if params and params[0] else "none"}
        yield Call(activation, [before], [result], attrs)


def _silu(node: Node, inputs: list[str], result: str, constant: Constant) -> Iterator[Call]:
    gate = f"{result}/sigmoid"
    yield Call("Sigmoid", inputs, [gate])
    yield Call("Mul", [inputs[0], gate], [result])


def _power(node: Node, inputs: list[str], result: str, constant: Constant) -> Iterator[Call]:
    exponent = constant(np.array(_POWERS[node.op], node.inputs[0].type.dtype.np))  # type: ignore[union-attr]
    yield Call("Pow", [inputs[0], exponent], [result])


def _difference(node: Node, inputs: list[str], result: str, constant: Constant) -> Iterator[Call]:
    difference = f"{result}/difference"
    yield Call("Sub", inputs, [difference])
    yield Call("Mul", [difference, difference], [result])


def _not_equal(node: Node, inputs: list[str], result: str, constant: Constant) -> Iterator[Call]:
    equal = f"{result}/equal"
    yield Call("Equal", inputs, [equal])
    yield Call("Not", [equal], [result])


_SPELLED: dict[str, Callable[[Node, list[str], str, Constant], Iterator[Call]]] = {
    "Silu": _silu,
    "Square": _power,
    "Rsqrt": _power,
    "SquaredDifference": _difference,
    "NotEqual": _not_equal,
}
