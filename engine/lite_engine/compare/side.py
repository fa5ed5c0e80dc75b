"""One way of running a model, as `compare` sees it: values by name, and single layers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from lite_messages import tr

from ..errors import UsageError
from ..ir import DType, Graph, Node, QuantParams, Value, outer_reads
from ..ir.bfloat16 import widened
from ..ops import find_op, specialise
from ..runtime.predictor import Predictor

#: How many isolated graphs a side keeps planned: later inputs reuse them.
GRAPHS_KEPT = 4
#: Ends the names of an isolated graph's inputs.
FED = ":in"


class Valued(Protocol):
    """What both kinds of side can do. `graph` is None for another framework."""

    label: str

    @property
    def precision(self) -> str: ...
    @property
    def graph(self) -> Graph | None: ...
    @property
    def input_names(self) -> list[str]: ...
    @property
    def output_names(self) -> list[str]: ...

    def value_names(self) -> list[str]:
        """Names of the values that `values` knows."""
        ...

    def values(
        self, feeds: Mapping[str, np.ndarray], names: Sequence[str]
    ) -> dict[str, np.ndarray]:
        """These values and the outputs, of one run."""
        ...


class Side:
    """One way of running a model: a Predictor with a label, and single layers of it."""

    def __init__(self, predictor: Predictor, label: str = "") -> None:
        self.predictor = predictor
        self.label = label or predictor.backend
        self.backend = (
            predictor.backend
        )  # a device that fails later is left, and then it is another
        self._kept: dict[tuple[str, ...], Predictor] = {}

    @property
    def graph(self) -> Graph:
        return self.predictor.graph

    @property
    def precision(self) -> str:
        return self.predictor.precision

    @property
    def input_names(self) -> list[str]:
        return self.predictor.input_names

    @property
    def output_names(self) -> list[str]:
        return self.predictor.output_names

    def value_names(self) -> list[str]:
        return [v.name for n in self.graph.nodes for v in n.outputs]

    def values(
        self, feeds: Mapping[str, np.ndarray], names: Sequence[str]
    ) -> dict[str, np.ndarray]:
        return widened(self.predictor.run(feeds, taps=names), lambda: self.graph)

    def at(self, feeds: Mapping[str, np.ndarray]) -> Side:
        """The same at the sizes of these inputs. Values that the sizes decide (a Shape's, and what
        is computed of it) are constants of its graph: no run makes them."""
        shapes = {name: x.shape for name, x in feeds.items()}
        if all(v.type.is_static for v in self.graph.inputs) and self._makes_all():
            return self
        return Side(self.predictor.like(specialise(self.graph, shapes)), self.label)

    def _makes_all(self) -> bool:
        """Whether a run makes what every layer gives, but for those that read constants alone."""
        made = self.predictor.plan().tensor_of
        return all(
            value.name in made
            for node in self.graph.nodes
            if any(v.const is None for v in outer_reads(node))
            for value in node.outputs
        )

    def isolated(
        self, nodes: Sequence[Node], known: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Outputs of these layers. Inputs that are known are fed; the others must be made by
        layers of the list."""
        graph, feeds = isolated_graph(nodes, known)
        key = (*(n.name for n in nodes), *feeds)
        if key not in self._kept:
            while len(self._kept) >= GRAPHS_KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = self.predictor.like(graph)
        return widened(self._kept[key].run(feeds), lambda: graph)


def isolated_graph(
    nodes: Sequence[Node], known: Mapping[str, np.ndarray]
) -> tuple[Graph, dict[str, np.ndarray]]:
    """A graph of layers cut apart: every input whose value is known becomes a graph input."""
    graph = Graph("isolated")
    inputs: dict[str, Value] = {}
    made: dict[str, Value] = {}
    for node in _views_last(nodes, known):
        ins: list[Value | None] = []
        for value in node.inputs:
            if value is None:
                ins.append(None)
            elif value.const is not None:
                ins.append(Value(f"{node.name}/{value.name}", value.dtype, const=value.const))
            elif value.name in known:
                if value.name not in inputs:
                    array = known[value.name]
                    inputs[value.name] = Value(
                        f"{value.name}{FED}", value.dtype or DType.of(array), array.shape
                    )
                    inputs[value.name].quant = value.quant
                ins.append(inputs[value.name])
            elif value.name in made:
                ins.append(made[value.name])
            else:
                raise UsageError(
                    tr(
                        "input {name} has no value: it is neither recorded nor computed",
                        name=value.name,
                    ),
                    where=node.name,
                )
        outs = [Value(v.name, v.dtype, v.shape, quant=v.quant) for v in node.outputs]
        made |= {v.name: v for v in outs}
        graph.nodes.append(
            Node(node.op, ins, outs, node.attrs, name=node.name, sources=node.sources)
        )
        graph.outputs += outs
    graph.inputs = list(inputs.values())
    return graph, {v.name: as_read(known[name], v) for name, v in inputs.items()}


def _views_last(nodes: Sequence[Node], known: Mapping[str, np.ndarray]) -> list[Node]:
    """Layers that only give bytes another shape follow all others, unless one reads what they make.
    Where they read what is fed they run on the host: each of them between two layers of a device
    would part those into segments."""
    read = {v.name for n in nodes for v in n.inputs if v is not None} - known.keys()

    def waits(node: Node) -> bool:
        op = find_op(node.op)
        return (
            op is not None and op.layout == "view" and read.isdisjoint(v.name for v in node.outputs)
        )

    return sorted(nodes, key=waits)


def as_read(array: np.ndarray, value: Value) -> np.ndarray:
    """Another framework computes in fp16 what a layer here reads as float32."""
    own = value.type.dtype
    return array.astype(own.np) if own.np.kind == array.dtype.kind == "f" else array


def quant_of(value: Value | None) -> QuantParams | None:
    """How the integers of a value stand for real numbers: as it says itself, as the operator that
    makes it says, as what was moved, joined or pooled without another scale, or, where a table's
    answers say nothing, as those that read them take them."""
    if value is None or value.quant is not None:
        return value.quant if value is not None else None
    return _as_made(value) or _taken_by_readers(value)


def _as_made(value: Value) -> QuantParams | None:
    """What the layers that lead to a value say. A table of answers says nothing."""
    node = value.producer
    if value.quant is not None or node is None or value.dtype is None:
        return value.quant
    if value.dtype.np.kind not in "iu":
        return None
    op = find_op(node.op)
    named = {op.input_name(i): v for i, v in enumerate(node.inputs) if v} if op else {}
    mine = "" if node.op == "QuantizeLinear" else "y_"
    said = _params(value, named.get(f"{mine}scale"), named.get(f"{mine}zero_point"), node)
    if said is not None or node.op == "QLookup":
        return said
    return next((found for v in _beside(node, value) if (found := _as_made(v))), None)


def _beside(node: Node, value: Value) -> list[Value]:
    """A layer's other inputs of a value's type. A layer without a scale keeps theirs: it is one."""
    return [
        v for v in node.inputs
        if v is not None and v is not value and v.const is None and v.dtype is value.dtype
    ]  # fmt: skip


def _params(
    value: Value, scale: Value | None, zero: Value | None, node: Node
) -> QuantParams | None:
    if scale is None or scale.const is None:
        return None
    assert value.dtype is not None
    zeros = np.zeros(scale.const.shape, value.dtype.np)
    held = zeros if zero is None or zero.const is None else zero.const
    axis = node.attrs.get("axis", 1) if scale.const.ndim else None
    return QuantParams(scale.const, held.reshape(scale.const.shape), axis)


def _taken_by_readers(value: Value) -> QuantParams | None:
    """What reads a value says, or what is joined with it, or what reads those that move it."""
    if value.dtype is None or value.dtype.np.kind not in "iu":
        return None
    for reader in value.readers:
        op = find_op(reader.op)
        at = next(i for i, v in enumerate(reader.inputs) if v is value)
        if op is None or reader.op == "QLookup":
            continue
        names = ("scale", f"{op.input_name(at)}_scale")
        if reader.op == "QLinearConcat" or op.input_name(at + 1) in names:
            return _params(value, reader.input(at + 1), reader.input(at + 2), reader)
        moved = [v for v in reader.outputs if v.dtype is value.dtype]
        beside = (_as_made(v) for v in _beside(reader, value)) if moved else ()
        after = (_taken_by_readers(v) for v in moved)
        found = next((q for q in (*beside, *after) if q is not None), None)
        if found is not None:
            return found
    return None


def to_float(array: np.ndarray, quant: QuantParams | None) -> np.ndarray:
    """An integer array with quantisation as the real numbers that it stands for."""
    if quant is None or array.dtype.kind not in "iu":
        return array
    scale, zero = _along(quant, array.ndim)
    return (array.astype(np.float32) - zero) * scale


def to_integer(array: np.ndarray, value: Value) -> np.ndarray:
    """Real numbers as a quantised value holds them: rounded half to even and clipped."""
    quant = quant_of(value)
    if quant is None or array.dtype.kind != "f" or value.dtype is None:
        return array
    if value.dtype.np.kind not in "iu":
        return array
    scale, zero = _along(quant, array.ndim)
    info = np.iinfo(value.dtype.np)
    with np.errstate(divide="ignore", invalid="ignore"):  # a scale of 0 or NaN leaves no number
        steps = np.rint(array / scale) + zero
        return np.clip(steps, info.min, info.max).astype(value.dtype.np)


def _along(quant: QuantParams, rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Scale and zero point in a shape that broadcasts along the channel axis."""
    scale, zero = (np.asarray(x, np.float32) for x in (quant.scale, quant.zero_point))
    if scale.ndim and quant.axis is not None:
        shape = [1] * rank
        shape[quant.axis] = -1
        scale, zero = scale.reshape(shape), zero.reshape(shape)
    return scale, zero
