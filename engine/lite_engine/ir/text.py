"""A printable and parseable form of a graph.

    graph "mobilenet" {
      input x: f32[1,3,224,224]
      input q: u8[1,10] quant {"scale": 0.5, "zero_point": 128}
      const w: f32[8,3,3,3] = @0
      conv1: y = Conv(x, w, _) {strides=[2, 2], pads=[1, 1, 1, 1]} from ["conv1", "bn1"]
      output y
    }

Attribute values are JSON, an array attribute is `{"array": dtype, "shape": [...], "data": [...]}`,
a subgraph `{"graph": "text"}`. Constants of at most 64 elements are JSON lists; larger ones are
`@n`, the n-th array of the list that `to_text` fills and `from_text` takes.
"""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ModelFormatError
from .dtype import DType
from .graph import Graph, Node, Value
from .types import Dim, QuantParams, Shape

INLINE_ELEMS = 64


def to_text(graph: Graph, arrays: list[np.ndarray] | None = None) -> str:
    """Text of the graph; arrays too large to write out are appended to `arrays`."""
    return _graph(graph, [] if arrays is None else arrays, {})


def _graph(graph: Graph, arrays: list[np.ndarray], outer: dict[int, str]) -> str:
    """`outer` are the values of surrounding graphs, by id(), and their names: those are written
    there."""
    names = _names(graph, outer)

    def name(value: Value) -> str:
        return _quoted(names[id(value)])

    lines = [f"graph {json.dumps(graph.name)} {{"]
    for value in graph.inputs:
        lines.append(f"  input {name(value)}: {_type(value)}{_quant(value)}")
    for value in graph.constants():
        if id(value) not in outer:
            assert value.const is not None
            lines.append(f"  const {name(value)}: {_type(value)} = {_data(value.const, arrays)}")
    for node in graph.nodes:
        ins = ", ".join("_" if v is None else name(v) for v in node.inputs)
        outs = ", ".join(
            name(v) + (f": {_type(v)}" if v.dtype is not None else "") for v in node.outputs
        )
        attrs = ", ".join(
            f"{_word(k)}={_attr(v, arrays, names)}" for k, v in sorted(node.attrs.items())
        )
        line = f"  {json.dumps(node.name)}: {outs} = {_word(node.op)}({ins})"
        line += f" {{{attrs}}}" if attrs else ""
        line += f" from {json.dumps(list(node.sources))}" if node.sources else ""
        lines.append(line)
    lines += [f"  output {name(v)}{_quant(v)}" for v in graph.outputs]
    return "\n".join([*lines, "}"])


def _names(graph: Graph, outer: dict[int, str]) -> dict[int, str]:
    """The names of all values that are known in the graph. Its own get another one where a
    surrounding graph has theirs, whose value could not be read any more."""
    names, taken = dict(outer), set(outer.values())
    own = [v for v in graph.values() if id(v) not in outer]
    free = {v.name for v in own} | taken if taken else taken
    for value in own:
        found, number = value.name, 0
        while found in taken:
            number += 1
            made = f"{value.name}.{number}"
            found = found if made in free else made
        names[id(value)] = found
    return names


def _quant(value: Value) -> str:
    """How the integers of an input or output stand for real numbers, where one scale says it."""
    quant = value.quant
    if quant is None or quant.scale.size != 1:
        return ""
    said = {"scale": float(quant.scale), "zero_point": int(quant.zero_point)}
    return f" quant {json.dumps(said)}"


def _quoted(name: str) -> str:
    """Bare where it cannot be taken for a number, a sign or an absent input."""
    bare = re.fullmatch(r"(?=.*[A-Za-z])[A-Za-z0-9./:\-]*[A-Za-z0-9./\-]", name)
    return name if bare else json.dumps(name)


def _type(value: Value) -> str:
    if value.dtype is None:
        return "?"
    if value.shape is None:
        return f"{value.dtype}[*]"
    return f"{value.dtype}[{','.join(map(_dim, value.shape))}]"


def _dim(dim: Dim) -> str:
    return "?" if dim is None else str(dim) if isinstance(dim, int) else _word(dim)


def _word(text: str) -> str:
    """An identifier as it is, anything else as a JSON string."""
    return text if re.fullmatch(r"[A-Za-z_]([\w.:]*\w)?", text, re.ASCII) else json.dumps(text)


def _data(array: np.ndarray, arrays: list[np.ndarray]) -> str:
    finite = array.dtype.kind != "f" or bool(np.isfinite(array).all())
    if array.size <= INLINE_ELEMS and finite:
        return json.dumps(array.ravel().tolist())
    arrays.append(array)
    return f"@{len(arrays) - 1}"


def _attr(value: Any, arrays: list[np.ndarray], outer: dict[int, str]) -> str:
    if isinstance(value, Graph):
        return json.dumps({"graph": _graph(value, arrays, outer)})
    if isinstance(value, np.ndarray):
        head = {"array": str(DType.of(value)), "shape": list(value.shape)}
        return json.dumps({**head, "data": value.ravel().tolist()})
    if isinstance(value, DType):
        return json.dumps({"dtype": str(value)})
    if isinstance(value, bytes):
        return json.dumps({"bytes": value.hex()})
    if isinstance(value, np.generic):
        value = value.item()
    return json.dumps(value)


def from_text(text: str, arrays: list[np.ndarray] | None = None) -> Graph:
    """The graph a text describes. Raises ModelFormatError naming the line."""
    return _Parser(text, arrays or []).graph()


_TOKEN = re.compile(
    r'\s*(?:(?P<string>"(?:[^"\\]|\\.)*")|(?P<sym>[(){},=]|:(?=\s)|\[|\])'
    r"|(?P<word>[^\s(){},=\[\]\"]*[^\s(){},=\[\]\":]))"
)


class _Parser:
    def __init__(self, text: str, arrays: list[np.ndarray], outer: dict[str, Value] | None = None):
        self.lines = text.splitlines()
        self.arrays = arrays
        self.values: dict[str, Value] = dict(outer or {})
        self.number = 0
        self.rest = ""

    def fail(self, message: str) -> ModelFormatError:
        return ModelFormatError(
            tr("graph text, line {number}: {message}", number=self.number + 1, message=message)
        )

    # ---- tokens of one line
    def take(self, expected: str | None = None) -> str:
        m = _TOKEN.match(self.rest)
        if not m:
            raise self.fail(
                tr(
                    "expected {expected}, found {rest!r}",
                    expected=expected or tr("a word"),
                    rest=self.rest[:30],
                )
            )
        self.rest = self.rest[m.end() :]
        token = m.group().strip()
        if expected is not None and token != expected:
            raise self.fail(
                tr("expected {expected!r}, found {token!r}", expected=expected, token=token)
            )
        return str(json.loads(token)) if m.group("string") else token

    def peek(self, text: str) -> bool:
        return self.rest.lstrip().startswith(text)

    def json(self) -> Any:
        text = self.rest.lstrip()
        try:
            value, end = json.JSONDecoder().raw_decode(text)
        except (ValueError, RecursionError) as error:
            raise self.fail(tr("not JSON: {error}", error=error)) from None
        self.rest = text[end:]
        return value

    # ---- grammar
    def graph(self) -> Graph:
        try:
            return self._graph()
        except (IndexError, KeyError, TypeError, ValueError, OverflowError) as error:
            raise self.fail(str(error) or type(error).__name__) from None

    def _graph(self) -> Graph:
        if not self.lines:
            raise self.fail(tr("the text is empty"))
        self.rest = self.lines[0]
        self.take("graph")
        graph = Graph(self.take())
        self.take("{")
        for number in range(1, len(self.lines)):
            self.number = number
            self.rest = self.lines[self.number]
            stripped = self.rest.strip()
            if stripped == "}":
                if any(line.strip() for line in self.lines[number + 1 :]):
                    raise self.fail(tr("the graph ends here, but the text does not"))
                return graph
            if stripped.startswith("input "):
                self.take("input")
                graph.inputs.append(self.typed(define=True))
                self.quant(graph.inputs[-1])
            elif stripped.startswith("const "):
                self.constant()
            elif stripped.startswith("output "):
                self.take("output")
                graph.outputs.append(self.read(self.take()))
                self.quant(graph.outputs[-1])
            elif stripped:
                graph.nodes.append(self.node())
            if stripped and self.rest.strip():
                raise self.fail(
                    tr("unexpected {text!r} at the end of the line", text=self.rest.strip()[:30])
                )
        raise self.fail(tr("no closing }}"))

    def define(self, name: str) -> Value:
        if name in self.values:
            raise self.fail(tr("{name!r} is defined twice", name=name))
        return self.values.setdefault(name, Value(name))

    def read(self, name: str) -> Value:
        if name not in self.values:
            raise self.fail(tr("{name!r} is read before it is defined", name=name))
        return self.values[name]

    def typed(self, *, define: bool) -> Value:
        value = self.define(self.take())
        if self.peek(":"):
            self.take(":")
            value.dtype, value.shape = self.type()
        return value

    def quant(self, value: Value) -> None:
        if not self.peek("quant "):
            return
        self.take("quant")
        said = self.json()
        scale, zero = np.float32(said["scale"]), int(said["zero_point"])
        if value.dtype is None or value.dtype.is_float or not 0 < scale < np.inf:
            raise self.fail(
                tr("the quantization of {name} is not valid for its type", name=value.name)
            )
        zero_point = np.array(zero, value.dtype.np)  # OverflowError beyond the type
        value.quant = QuantParams(np.array(scale, np.float32), zero_point)

    def type(self) -> tuple[DType | None, Shape | None]:
        word = self.take()
        if word == "?":
            return None, None
        dtype = DType(word)
        self.take("[")
        dims: list[int | str | None] = []
        while not self.peek("]"):
            quoted = self.peek('"')
            dim = self.take()
            if dim == "*" and not quoted:
                self.take("]")
                return dtype, None
            if quoted:
                dims.append(dim)
            else:
                dims.append(int(dim) if dim.isdecimal() else None if dim == "?" else dim)
            if self.peek(","):
                self.take(",")
        self.take("]")
        return dtype, tuple(dims)

    def constant(self) -> None:
        self.take("const")
        value = self.typed(define=True)
        self.take("=")
        if value.dtype is None or value.shape is None:
            raise self.fail(tr("a constant needs a type"))
        if self.peek("@"):
            number = self.take()[1:]
            if not number.isdecimal() or int(number) >= len(self.arrays):
                raise self.fail(
                    tr("array @{number} of {name} is not there", number=number, name=value.name)
                )
            array = self.arrays[int(number)]
            if array.shape != value.shape or array.dtype != value.dtype.np:
                raise self.fail(tr("array of {name} has another type", name=value.name))
        else:
            array = np.array(self.json(), dtype=value.dtype.np).reshape(value.shape)  # type: ignore[arg-type]
        value.const = array

    def node(self) -> Node:
        name = self.take()
        self.take(":")
        outputs = [self.typed(define=True)]
        while self.peek(","):
            self.take(",")
            outputs.append(self.typed(define=True))
        self.take("=")
        op = self.take()
        self.take("(")
        inputs: list[Value | None] = []
        while not self.peek(")"):
            word = self.take()
            inputs.append(None if word == "_" else self.read(word))
            if self.peek(","):
                self.take(",")
        self.take(")")
        attrs: dict[str, Any] = {}
        if self.peek("{"):
            self.take("{")
            while not self.peek("}"):
                key = self.take()
                if key in attrs:
                    raise self.fail(tr("attribute {key!r} occurs twice", key=key))
                self.take("=")
                attrs[key] = self.attr(self.json())
                if self.peek(","):
                    self.take(",")
            self.take("}")
        sources: list[str] = []
        if self.peek("from"):
            self.take("from")
            sources = self.json()
            if not isinstance(sources, list) or not all(isinstance(s, str) for s in sources):
                raise self.fail(tr("expected a list of names after `from`"))
        return Node(op, inputs, outputs, attrs, name=name, sources=sources)

    def attr(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        match value:
            case {"graph": str(text), **rest} if not rest:
                return _Parser(text, self.arrays, self.values).graph()
            case {"array": str(dtype), "data": list(data), "shape": list(shape), **rest} if (
                not rest
            ):
                return np.array(data, dtype=DType(dtype).np).reshape(shape)
            case {"dtype": str(dtype), **rest} if not rest:
                return DType(dtype)
            case {"bytes": str(digits), **rest} if not rest:
                return bytes.fromhex(digits)
        raise self.fail(tr("expected a graph, an array, a dtype or bytes as an object"))
