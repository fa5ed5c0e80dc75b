"""Static quantisation: prepared float graph + ranges → the same graph with integers in QDQ form.

Every value between integer nodes gets QuantizeLinear and DequantizeLinear behind it, constant
weights become i8 with DequantizeLinear, biases i32. A convolution whose output is only added to
another tensor hands its sums over unrounded. The graph's values, inputs and outputs keep their
names; `passes/quantize_fuse_qdq` then turns DQ → operator → Q into integer operators.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from lite_messages import tr

from ..errors import CalibrationError
from ..ir import DType, Graph, Node, QuantParams, Value
from ..ops import infer_types
from .calibrate import Ranges
from .observers import Range
from .rounding import sum_preserving
from .scheme import Rounding, Scheme, activation_params, bias_integers, weight_scale
from .select import ATTENTION, OPERANDS, VIEWS, WEIGHTED, integer_nodes, weight_axis

#: Operators whose output has the parameters of their input.
KEEPING = (*VIEWS, "Resize")
#: Inputs of a Concat share its scale unless they would lose more than this factor of resolution.
SHARED_LOSS = 4.0
#: Largest magnitude of an integer bias: leaves room in int32 for the products.
BIAS_LIMIT = 2.0**30


def quantize_static(
    graph: Graph,
    ranges: Ranges,
    scheme: Scheme | None = None,
    *,
    rounding: Rounding = sum_preserving,
    biases: Mapping[str, np.ndarray] | None = None,
) -> Graph:
    """The QDQ form of a graph that `prepare` made.

    `biases` replaces the float bias of nodes by name (bias correction). Raises CalibrationError
    when a value that needs a range has none.
    """
    scheme = scheme or Scheme()
    out = graph.copy()
    chosen, _ = integer_nodes(out, scheme.keep_float)
    for node in out.nodes:
        if node.op in ATTENTION and node.name not in chosen:
            # integers on all sides of it would have the passes compute it in integers, too
            node.attrs["softmax_precision"] = node.attrs.get("softmax_precision") or DType.F32
    sums = unrounded(out, chosen)
    params = _params(out, chosen, sums, ranges, scheme)
    _Writer(out, chosen, sums, params, scheme, rounding, dict(biases or {})).write()
    infer_types(out)
    return out


def unrounded(graph: Graph, chosen: set[str]) -> set[int]:
    """Ids of the values that no integers hold: of the convolutions that an Add reads, the last
    one's output, if nothing else reads it. Their kernel adds the other operand as a residual."""
    found = set()
    order = {id(n): i for i, n in enumerate(graph.nodes)}
    for node in graph.nodes:
        a, b = node.inputs if node.op == "Add" and node.name in chosen else (None, None)
        if a is None or b is None or a is b or a.shape is None or a.shape != b.shape:
            continue
        sums = [v for v in (a, b) if _is_plain_sum(graph, v, chosen)]
        if sums and not (a.is_const or b.is_const):
            found.add(id(max(sums, key=lambda v: order[id(v.producer)])))
    return found


def _is_plain_sum(graph: Graph, value: Value, chosen: set[str]) -> bool:
    conv = value.producer
    if conv is None or conv.op != "Conv" or conv.name not in chosen or conv.attrs.get("activation"):
        return False
    one_group = conv.attrs.get("group", 1) == 1  # depthwise kernels add nothing
    return one_group and graph.sole_reader(value) is not None


def _params(
    graph: Graph, chosen: set[str], sums: set[int], ranges: Ranges, scheme: Scheme
) -> dict[int, QuantParams]:
    """Parameters of every value that an integer node reads or makes, by id."""
    low_high: dict[int, Range] = {}
    for node in graph.nodes:
        if node.name in chosen:
            for value in _data(node, sums):
                low_high.setdefault(id(value), _range(value, ranges))
            for value in node.outputs:
                if id(value) in sums:
                    continue
                last = not any(r.name in chosen for r in value.readers)
                low_high[id(value)] = _range(value, ranges, whole=last)
    _share_concat(graph, chosen, low_high)
    for node in graph.nodes:
        if node.name in chosen and node.op in KEEPING:
            for value in node.outputs:
                low_high[id(value)] = low_high[id(node.inputs[0])]
    return {key: activation_params(r, scheme) for key, r in low_high.items()}


def _data(node: Node, sums: set[int]) -> list[Value]:
    """Inputs that are activations, or constants that take part as such; not `sums`."""
    if node.op in WEIGHTED or node.op in (*KEEPING, "Clip"):
        first = node.inputs[0]
        return [] if first is None else [first]
    if node.op in ATTENTION:
        return [v for v in node.inputs[:OPERANDS] if v is not None]
    return [v for v in node.inputs if v is not None and id(v) not in sums]


def _range(value: Value, ranges: Ranges, *, whole: bool = False) -> Range:
    """The calibrated range; `whole` takes all that was seen: what leaves the integers (logits,
    boxes) is compared by its largest values, which no method may clip."""
    if value.const is not None:
        return float(value.const.min()), float(value.const.max())
    if value.name not in ranges.values:
        raise CalibrationError(
            tr("{name} has no range", name=value.name), fix=tr("calibrate the prepared graph")
        )
    low, high = ranges.values[value.name]
    seen = ranges.seen.get(value.name, (low, high)) if whole else (low, high)
    return min(low, seen[0]), max(high, seen[1])


def _share_concat(graph: Graph, chosen: set[str], low_high: dict[int, Range]) -> None:
    """A Concat whose inputs have its own scale copies bytes."""
    for node in reversed(graph.nodes):
        if node.op != "Concat" or node.name not in chosen:
            continue
        low, high = low_high[id(node.output)]
        for value in node.inputs:
            if value is None or value.is_const or value.producer is None:
                continue
            own = low_high[id(value)]
            fits = (high - low) <= SHARED_LOSS * max(own[1] - own[0], 1e-12)
            plain = value.producer.name in chosen and value.producer.op not in KEEPING
            # a ReLU is free only while the integers end at 0
            free = not value.producer.attrs.get("activation") or own[0] < 0 or low == 0
            if fits and plain and free:
                low_high[id(value)] = (low, high)


class _Writer:
    """Puts the QDQ nodes into a graph."""

    def __init__(
        self,
        graph: Graph,
        chosen: set[str],
        sums: set[int],
        params: dict[int, QuantParams],
        scheme: Scheme,
        rounding: Rounding,
        biases: dict[str, np.ndarray],
    ) -> None:
        self.graph, self.chosen, self.sums, self.params = graph, chosen, sums, params
        self.scheme, self.rounding, self.biases = scheme, rounding, biases
        self.read: dict[int, Value] = {}  # float value → its dequantised form, for integer readers

    def write(self) -> None:
        for node in list(self.graph.nodes):
            if node.name not in self.chosen:
                continue
            for value in dict.fromkeys(_data(node, self.sums)):
                self._read_quantised(node, value)
            if node.op in WEIGHTED:
                self._weight(node)
            for value in list(node.outputs):
                if id(value) not in self.sums:
                    self._make_quantised(node, value)

    def _constants(self, name: str, params: QuantParams) -> list[Value]:
        scale = self.graph.constant(params.scale, f"{name}.scale")
        zero = self.graph.constant(params.zero_point, f"{name}.zero_point")
        return [scale, zero]

    def _read_quantised(self, node: Node, value: Value) -> None:
        """Readers in integers read a value made in floats through Q and DQ."""
        params = self.params[id(value)]
        producer = value.producer
        if producer is not None and producer.op == "DequantizeLinear":
            return
        if id(value) not in self.read:
            name = value.name
            if value.const is not None:
                self.read[id(value)] = self._quantised_constant(node, value, params)
            else:
                constants = self._constants(f"{name}.q", params)
                q = self.graph.add(
                    "QuantizeLinear", [value, *constants], outputs=[f"{name}.q"],
                    name=f"{name}.quantize", before=node,
                )  # fmt: skip
                q.output.dtype, q.output.shape = self.scheme.dtype, value.shape
                self.read[id(value)] = self._dequantize(node, q.output, constants, f"{name}.dq")
        new = self.read[id(value)]
        node.inputs = [new if v is value else v for v in node.inputs]  # type: ignore[assignment]

    def _quantised_constant(self, node: Node, value: Value, params: QuantParams) -> Value:
        info = np.iinfo(params.zero_point.dtype)
        q = np.rint(value.const / params.scale) + params.zero_point  # type: ignore[operator]
        array = np.clip(q, info.min, info.max).astype(params.zero_point.dtype)
        const = self.graph.constant(array, f"{value.name}.q")
        return self._dequantize(
            node, const, self._constants(const.name, params), f"{value.name}.dq"
        )

    def _dequantize(
        self, before: Node, value: Value, constants: list[Value], name: str, axis: int | None = None
    ) -> Value:
        attrs = {} if axis is None else {"axis": axis}
        dq = self.graph.add(
            "DequantizeLinear", [value, *constants], attrs, outputs=[name], name=name, before=before
        )
        dq.output.dtype, dq.output.shape = constants[0].dtype, value.shape
        return dq.output

    def _make_quantised(self, node: Node, value: Value) -> None:
        """The node makes a new value; Q and DQ lead from it to the old one with the old name."""
        params, name = self.params[id(value)], value.name
        raw = Value(f"{name}.float", value.dtype, value.shape)
        node.outputs = [raw if v is value else v for v in node.outputs]
        raw.producer = node
        at = self.graph.nodes.index(node) + 1
        constants = self._constants(f"{name}.q", params)
        q_out = Value(f"{name}.q", self.scheme.dtype, value.shape, quant=params)
        q = Node("QuantizeLinear", [raw, *constants], [q_out], name=f"{name}.quantize")
        dq = Node("DequantizeLinear", [q_out, *constants], [value], name=f"{name}.dequantize")
        q.sources = dq.sources = node.sources
        self.graph.nodes[at:at] = [q, dq]

    def _weight(self, node: Node) -> None:
        weight, bias = node.inputs[1], node.input(2)
        assert weight is not None and weight.const is not None
        axis = weight_axis(node) if self.scheme.per_channel else None
        float_bias = self.biases.get(node.name, None if bias is None else bias.const)
        scale = weight_scale(weight.const, axis)
        if float_bias is not None:
            # a silent channel must not push its bias out of int32
            least = np.abs(float_bias.reshape(-1)) / (self._input_scale(node) * BIAS_LIMIT)
            # the groups of a ConvTranspose share the scales of its weight
            scale = np.maximum(
                scale, least.reshape(-1, scale.size).max(axis=0).reshape(scale.shape)
            )
            scale = scale.astype(np.float32)
        q = self.rounding(node, weight.const, scale, axis)
        q[weight.const == 0] = 0  # pruned weights stay 0
        name = f"{node.name}.weight"
        params = QuantParams(scale, np.zeros(scale.shape, q.dtype), axis)
        const = self.graph.constant(q, f"{name}.q")
        node.set_input(
            1,
            self._dequantize(node, const, self._constants(const.name, params), f"{name}.dq", axis),
        )
        if float_bias is not None:
            self._bias(node, float_bias.reshape(-1), scale)

    @staticmethod
    def _input_scale(node: Node) -> np.ndarray:
        x = node.inputs[0]
        assert x is not None and x.producer is not None and x.producer.inputs[1] is not None
        scale = x.producer.inputs[1].const
        assert scale is not None
        return scale

    def _bias(self, node: Node, bias: np.ndarray, weight_scale: np.ndarray) -> None:
        scale = np.resize(self._input_scale(node) * weight_scale, bias.shape).astype(np.float32)
        scale = np.maximum(scale, np.finfo(np.float32).tiny)
        q = bias_integers(bias, scale)
        params = QuantParams(np.ascontiguousarray(scale), np.zeros(scale.shape, np.int32), 0)
        const = self.graph.constant(q, f"{node.name}.bias.q")
        constants = self._constants(const.name, params)
        node.set_input(2, self._dequantize(node, const, constants, f"{node.name}.bias.dq", 0))
