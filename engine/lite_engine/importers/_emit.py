"""Appending ONNX-semantics nodes to a graph while a file's node is translated.

    emit.source = "conv1"                     # the file's node that new nodes stand for
    y = emit("Conv", x, w, b, strides=[2, 2])

Types are inferred at once (translators ask for ranks and sizes), nodes whose inputs are all
constant become constants (shape arithmetic never enters the graph), and a Transpose that undoes
the one before it disappears.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import LiteError, ModelFormatError, ShapeError
from ..ir import DType, Graph, Node, Value
from ..mapped import aligned
from ..ops import find_op, infer_node, op_names, run_node

#: Results of folding are kept when they are not larger than this or than what they replace.
FOLD_LIMIT_BYTES = 1 << 20
#: Kept although their inputs are constant: they are the quantised form of a weight.
_NEVER_FOLDED = ("DequantizeLinear", *op_names(lambda op: op.random))

Operand = Value | np.ndarray | np.generic | float | int | Sequence[int] | None


def name_open_sizes(inputs: Sequence[Value]) -> None:
    """Sizes that a file leaves open without a name get one, N for the first input's batch: what
    follows from the same size is then known to be equal."""
    for value in inputs:
        shape = value.shape or ()
        batch = "N" if value is inputs[0] and len(shape) > 1 else f"{value.name}:0"
        names = [batch, *(f"{value.name}:{axis}" for axis in range(1, len(shape)))]
        if None in shape:
            value.shape = tuple(n if d is None else d for d, n in zip(shape, names))


class Emitter:
    """Builds one graph. Calling it appends a node and answers its output(s)."""

    def __init__(self, graph: Graph, *, fold_shapes: bool = True) -> None:
        """`fold_shapes=False` keeps Shape of a known shape as a node: the declared input size is
        then only a default that may be changed after import."""
        self.graph = graph
        self.fold_shapes = fold_shapes
        #: name of the file's node that is being translated
        self.source = ""
        #: what SpaceToBatch made, by the id of its value (see `_dilation`)
        self.blocked: dict[int, Any] = {}
        self._names: dict[str, int] = {}

    def within(self, graph: Graph) -> Emitter:
        """For a graph that an operator of this one holds; no name there is a name here."""
        inner = Emitter(graph, fold_shapes=self.fold_shapes)
        inner.source, inner._names = self.source, self._names
        return inner

    def unique(self, stem: str) -> str:
        """`stem`, or `stem.N` when the graph has that name already."""
        count = self._names.get(stem, -1) + 1
        self._names[stem] = count
        if not count:
            return stem
        name = f"{stem}.{count}"
        return self.unique(name) if name in self._names else self._claim(name)

    def _claim(self, name: str) -> str:
        self._names[name] = 0
        return name

    def const(self, data: Any, name: str = "", dtype: DType | None = None) -> Value:
        """A constant. Python integers become i64, Python floats f32."""
        array = aligned(np.asarray(data))
        if not isinstance(data, (np.ndarray, np.generic)):
            kind = array.dtype.kind
            array = array.astype(
                np.float32 if kind == "f" else np.bool_ if kind == "b" else np.int64
            )
        return Value(self.unique(name or f"{self.source}/const"), dtype, const=array)

    def value(self, operand: Operand) -> Value | None:
        if operand is None or isinstance(operand, Value):
            return operand
        return self.const(operand)

    def __call__(self, op: str, *inputs: Operand, **attrs: Any) -> Value:
        """The first output of a new node."""
        return self.outputs(op, inputs, 1, **attrs)[0]

    def outputs(self, op: str, inputs: Sequence[Operand], count: int, **attrs: Any) -> list[Value]:
        """All outputs of a new node with `count` outputs."""
        name = self.unique(f"{self.source}/{op}" if self.source else op)
        outs = [Value(self.unique(f"{name}:{i}" if i else name + ":0")) for i in range(count)]
        node = Node(
            op,
            [self.value(v) for v in inputs],
            outs,
            attrs,
            name=name,
            sources=(self.source,) if self.source else (),
        )
        folded = self._fold(node)
        if folded is not None:
            return folded
        self.graph.nodes.append(node)
        self._infer(node)
        return outs

    def _infer(self, node: Node) -> None:
        try:
            types = infer_node(node)
        except LiteError:
            # A shape that cannot be known now stays open; `load` infers again and the verifier
            # and the planner name what is really wrong.
            return
        for value, info in zip(node.outputs, types, strict=False):
            value.dtype, value.shape = info.dtype, info.shape

    def _fold(self, node: Node) -> list[Value] | None:
        """Constants in place of a node that reads only constants (or only a known shape)."""
        op = find_op(node.op)
        if op is None or op._reference is None or node.op in _NEVER_FOLDED:
            return None
        arrays: list[np.ndarray | None] = []
        for value in node.inputs:
            if value is not None and node.op == "Shape":
                if not (self.fold_shapes and value.dtype and value.type.is_static):
                    return None
                arrays.append(np.broadcast_to(np.zeros((), value.dtype.np), value.shape))  # type: ignore[arg-type]
            elif value is not None and value.const is None:
                return None
            else:
                arrays.append(None if value is None else value.const)
        if any(True for _ in node.subgraphs()) or not arrays:
            return None
        distinct = {id(a): a.nbytes for a in arrays if a is not None}
        limit = max(FOLD_LIMIT_BYTES, sum(distinct.values()))
        try:
            types = op.infer_types(node, [None if v is None else v.type for v in node.inputs])
            if any(not t.is_static or t.nbytes > limit for t in types):
                return None
            results = run_node(node, arrays)
        except ShapeError as error:
            raise ModelFormatError(
                tr("constants of the file do not fit together: {error}", error=error)
            ) from None
        node.inputs = ()  # type: ignore[assignment]
        return [
            Value(v.name, const=np.asarray(r, order="C")) for v, r in zip(node.outputs, results)
        ]

    # ---- what every translator needs
    def transpose(self, x: Operand, perm: Sequence[int]) -> Value:
        """x with its axes permuted; constants are permuted now, inverse pairs cancel."""
        value = self.value(x)
        assert value is not None
        perm = [int(p) for p in perm]
        if perm == list(range(len(perm))):
            return value
        if value.const is not None:
            if sorted(perm) != list(range(value.const.ndim)):
                raise ModelFormatError(
                    tr(
                        "expected a permutation of the axes of {type}, found {perm}",
                        perm=perm,
                        type=value.type,
                    ),
                    where=self.source,
                )
            array = np.ascontiguousarray(value.const.transpose(perm))
            return self.const(array, value.name + "/transposed", value.dtype)
        before = value.producer
        if before is not None and before.op == "DequantizeLinear":
            stored = self._permuted_weight(before, perm)
            if stored is not None:
                return stored
        if before is not None and before.op == "Transpose":
            inner = list(before.attrs["perm"])
            if len(inner) == len(perm) and [inner[p] for p in perm] == list(range(len(perm))):
                original = before.inputs[0]
                assert original is not None
                return original
        return self("Transpose", value, perm=perm)

    def _permuted_weight(self, node: Node, perm: list[int]) -> Value | None:
        """DequantizeLinear of a permuted constant, None when it reads no constant."""
        weight, *params = node.inputs
        if weight is None or weight.const is None or len(perm) != weight.const.ndim:
            return None
        attrs = dict(node.attrs)
        if params and params[0] is not None and params[0].shape:
            attrs["axis"] = perm.index(int(attrs.get("axis", 1)) % len(perm))
        return self("DequantizeLinear", self.transpose(weight, perm), *params, **attrs)

    def reshape_weight(self, x: Value, shape: Sequence[int]) -> Value:
        """reshape that keeps a dequantised constant next to its reader (one scale only)."""
        node = x.producer
        if node is None or node.op != "DequantizeLinear" or node.inputs[0] is None:
            return self.reshape(x, shape)
        weight, scale, *zero = node.inputs
        if weight is None or weight.const is None or scale is None or scale.shape:
            return self.reshape(x, shape)
        return self("DequantizeLinear", self.reshape(weight, shape), scale, *zero)

    def reshape(self, x: Operand, shape: Sequence[int]) -> Value:
        """x with another shape; one size may be -1, 0 is a size of zero."""
        return self("Reshape", x, [int(d) for d in shape], allowzero=int(0 in shape))

    def cast(self, x: Value, dtype: DType) -> Value:
        return x if x.dtype is dtype else self("Cast", x, to=dtype)

    def rank(self, x: Value) -> int:
        """Number of axes. Raises ModelFormatError when the file does not say."""
        if x.shape is None:
            raise ModelFormatError(
                tr("the rank of {x} is not known", x=x.name),
                where=self.source,
                fix=tr("give the sizes with --shape, or export the model with fixed ones"),
            )
        return len(x.shape)

    def ints(self, x: Value | None, what: str) -> list[int]:
        """Contents of a constant integer input. Raises ModelFormatError when it is computed."""
        if x is None or x.const is None:
            raise ModelFormatError(
                tr("{what} is computed at run time, it must be a constant", what=what),
                where=self.source,
                fix=tr("give the sizes with --shape, or export the model with fixed ones"),
            )
        if x.const.dtype.kind not in "iub":
            raise ModelFormatError(
                tr("{what} is {type}, not integers", what=what, type=x.type), where=self.source
            )
        return [int(v) for v in x.const.ravel()]

    def integer(self, x: Value | None, what: str) -> int:
        """The one number of a constant. Raises ModelFormatError as `ints` does, and for more."""
        found = self.ints(x, what)
        if len(found) != 1:
            raise ModelFormatError(
                tr("{what} has {count} numbers, expected one", what=what, count=len(found)),
                where=self.source,
            )
        return found[0]

    def dims(self, x: Value) -> list[int | None]:
        """Sizes, None for what is not fixed."""
        self.rank(x)
        return [d if isinstance(d, int) else None for d in x.shape or ()]

    def axes(self, x: Value, count: int) -> list[int | None]:
        """`dims` of what must have so many axes. Raises ModelFormatError for another rank."""
        sizes = self.dims(x)
        if len(sizes) != count:
            raise ModelFormatError(
                tr(
                    "{x} has shape {shape}, expected {axes} axes",
                    x=x.name,
                    shape=sizes,
                    axes=count,
                ),
                where=self.source,
            )
        return sizes

    def finish(self, outputs: Sequence[tuple[str, Value]]) -> None:
        """Sets the graph's outputs under the file's names and drops what nobody reads."""
        taken: set[int] = {id(v) for v in self.graph.inputs}
        for name, value in outputs:
            if id(value) in taken or value.producer is None:
                self.source = name
                value = self._identity(value)
            value.name = self.rename(value, name)
            taken.add(id(value))
            self.graph.outputs.append(value)
        self.graph.sort()
        self.graph.remove_unread()

    def rename(self, value: Value, name: str) -> str:
        """The name for an output: whoever holds it already gets another one, unless that is an
        input or an output itself."""
        fixed = [v.name for v in (*self.graph.inputs, *self.graph.outputs) if v is not value]
        if name in fixed:
            return self.unique(name)
        for other in self.graph.values():
            if other is not value and other.name == name:
                other.name = self.unique(name)
        self._names.setdefault(name, 0)
        return name

    def _identity(self, value: Value) -> Value:
        out = Value(self.unique(self.source + ":0"), value.dtype, value.shape, quant=value.quant)
        node = Node(
            "Identity",
            [value],
            [out],
            name=self.unique(f"{self.source}/Identity"),
            sources=(self.source,),
        )
        self.graph.nodes.append(node)
        return out
