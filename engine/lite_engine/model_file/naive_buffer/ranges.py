"""The float form of a network in integers, and what its integers said of the ranges.

Paddle-Lite's int8 has no zero points: real = step · q. TFLite's and ONNX's files have them, for
activations. So the network is written in floats, layers whose input has a known range read int8
(`int8_layers.py`), and the step of a range [low, high] is max(−low, high) / 127. What saturation
did beyond that is kept: integers that begin at 0 cut negative values off.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from lite_messages import tr

from ...errors import UnsupportedOperatorError
from ...ir import DType, Graph, Node, Value

_BOUNDS: dict[DType | None, tuple[int, int]] = {
    DType.I8: (-128, 127),
    DType.U8: (0, 255),
    DType.I16: (-32768, 32767),
}
_LARGEST = 127
#: Operators that change no value: their input and output have one range.
VIEWS = frozenset(["Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Identity"])
#: What else may stand between integers: it takes values, and computes none.
_SELECTS = VIEWS | {"Slice", "Split", "Concat", "Gather", "Expand", "MaxPool", "Max", "Min"}
#: Their results are never negative: nothing is cut off.
_POSITIVE = frozenset(["Relu", "Clip", "Sigmoid", "HardSigmoid", "Softmax"])
_POOLS = frozenset(["AveragePool", "GlobalAveragePool", "MaxPool", "GlobalMaxPool"])


@dataclass
class Ranges:
    """By name: the int8 step of an activation, the steps of a weight that the file stores."""

    steps: dict[str, float] = field(default_factory=dict)
    weights: dict[str, np.ndarray] = field(default_factory=dict)

    def note(self, value: Value, step: float) -> None:
        """The widest of what is said of a value."""
        self.steps[value.name] = max(step, self.steps.get(value.name, 0.0))

    def spread(self, graph: Graph) -> None:
        """Views share the range of what they look at, in both directions."""
        views = [n for n in graph.nodes if n.op in VIEWS]
        pairs = [(x, n.output) for n in views if (x := n.inputs[0]) is not None]
        for a, b in [*pairs, *((b, a) for a, b in reversed(pairs))]:
            if a.name in self.steps:
                self.steps.setdefault(b.name, self.steps[a.name])


@dataclass(frozen=True)
class _Scalar:
    """QuantizeLinear or DequantizeLinear of an activation, per tensor."""

    step: float
    low: float
    high: float


def float_form(graph: Graph) -> Ranges:
    """Rewrites a typed graph. Raises UnsupportedOperatorError for arithmetic on integers."""
    ranges = Ranges()
    known = {id(n): found for n in graph.nodes if (found := _scalar(n)) is not None}
    for node in [n for n in graph.nodes if id(n) in known]:
        source, found = node.inputs[0], known[id(node)]
        assert source is not None
        if node.op == "QuantizeLinear" and found.low == 0:
            _cut(graph, node, found.high)
            source = node.inputs[0]
            assert source is not None
        for value in (source, node.output):
            ranges.note(value, found.step)
        _bypass(graph, node, source)
    ranges.spread(graph)
    _retype(graph, ranges)
    return ranges


def weight_steps(graph: Graph) -> dict[str, np.ndarray]:
    """Steps of the weights that a file stores as int8 without zero points, by name of the float
    weight. Of the graph as it was read: folding makes one constant of all three."""
    steps = {}
    for node in graph.nodes:
        if node.op != "DequantizeLinear":
            continue
        integers, scale, zero = (None if v is None else v.const for v in (*node.inputs, None)[:3])
        symmetric = zero is None or not zero.any()
        if integers is not None and scale is not None and integers.dtype == np.int8 and symmetric:
            steps[node.output.name] = np.asarray(scale, np.float32).reshape(-1)
    return steps


def _scalar(node: Node) -> _Scalar | None:
    if node.op not in ("QuantizeLinear", "DequantizeLinear"):
        return None
    source, scale, zero = node.inputs[0], node.inputs[1], node.input(2)
    integers = node.output if node.op == "QuantizeLinear" else source
    if scale is None or scale.const is None or scale.const.size != 1 or integers is None:
        return None
    if zero is not None and (zero.const is None or zero.const.size != 1):
        return None
    bounds = _BOUNDS.get(integers.dtype)
    if bounds is None:
        return None
    step = float(scale.const.reshape(-1)[0])
    origin = 0 if zero is None or zero.const is None else int(zero.const.reshape(-1)[0])
    low, high = ((bound - origin) * step for bound in bounds)
    if origin == 0 and integers.dtype is DType.I8:
        return _Scalar(step, low, high)
    return _Scalar(max(-low, high) / _LARGEST, low, high)


def _cut(graph: Graph, node: Node, high: float) -> None:
    """Clip(0, high) where QuantizeLinear did it, right behind the layer, which takes it in."""
    first: Node = node
    value = node.inputs[0]
    while value is not None and value.producer is not None and value.producer.op in VIEWS:
        if graph.sole_reader(value) is not first or graph.is_output(value):
            break
        first, value = value.producer, value.producer.inputs[0]
    if value is None or _never_negative(value):
        return
    bounds = [
        graph.constant(np.float32(b), f"{value.name}/{n}") for b, n in ((0, "low"), (high, "high"))
    ]
    cut = graph.add("Clip", [value, *bounds], name=graph.unique(f"{value.name}/cut"), before=first)
    cut.output.dtype, cut.output.shape = value.dtype, value.shape
    first.set_input(0, cut.output)


def _never_negative(value: Value) -> bool:
    node = value.producer
    while node is not None and node.op in VIEWS | _POOLS and node.inputs[0] is not None:
        node = node.inputs[0].producer
    return node is not None and node.op in _POSITIVE


def _bypass(graph: Graph, node: Node, source: Value) -> None:
    """Readers of the node's output read `source`; an output of the model keeps its name."""
    out = node.output
    if graph.is_output(out):
        kept = graph.add("Identity", [source], outputs=[out], before=node)
        graph.detach(node)
        out.producer, out.dtype = kept, DType.F32
        return
    graph.replace_uses(out, source)
    graph.remove(node)


def _retype(graph: Graph, ranges: Ranges) -> None:
    """Values that were integers with a step are floats, from where they come in."""
    for node in reversed(graph.nodes):
        if node.op in _SELECTS and node.output.name in ranges.steps:
            for value in (v for v in node.inputs if v is not None and v.dtype in _BOUNDS):
                ranges.steps.setdefault(value.name, ranges.steps[node.output.name])
    for value in graph.inputs:
        if value.name in ranges.steps:
            value.dtype = DType.F32
    for node in graph.nodes:
        real = any(v is not None and v.dtype is DType.F32 for v in node.inputs[:1])
        if node.output.dtype not in _BOUNDS or not (real or node.output.name in ranges.steps):
            continue
        if node.op not in _SELECTS:
            raise UnsupportedOperatorError(
                f"{node.name} ({node.op}): {tr('computes with integers')}",
                (node.name,),
                fix=tr("write a .lite file, or leave this part out"),
            )
        for value in node.outputs:
            value.dtype = DType.F32
