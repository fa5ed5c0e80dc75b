"""Which layer is wrong: two ways of running a model, layer by layer, the graph unchanged.

Accumulated error compares a layer's output in two whole runs; isolated error feeds the layer of
side B
with side A's inputs, so that a guilty layer is told from its victims. Values are compared in
windows of
bounded size. Side A is the trusted one; at the first divergence the NumPy reference says who is
right.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ..backends.reference import evaluate
from ..errors import LiteError, UsageError
from ..ir import Graph, Node, Value
from ..ops import find_op
from .difference import Difference, difference
from .predictor import Predictor

WINDOW_BYTES = 96 << 20
#: Tolerance of a precision, as a multiple of the operator's own float32 tolerance.
PRECISION_FACTOR = {"fp32": 1.0, "fp16": 100.0, "bf16": 400.0, "int8": 1000.0}
Progress = Callable[[int, int], None]


@dataclass
class LayerDifference:
    """One row of `lite compare`'s JSON. `isolated` holds the same numbers for the layer alone."""

    index: int
    name: str
    op: str
    sources: list[str]
    tolerance: float
    max_abs: float
    mean_abs: float
    rel_l2: float
    cosine: float
    sqnr_db: float | None
    nan_a: int
    nan_b: int
    range_a: tuple[float, float]
    range_b: tuple[float, float]
    worst: tuple[int, ...]
    worst_a: float
    worst_b: float
    isolated: dict[str, Any] | None
    within: bool
    kernel_b: str = ""


@dataclass
class Comparison:
    """Answer of `lite compare`. `agrees` is False when a layer is wrong by itself or outputs
    differ."""

    a: str
    b: str
    tolerance: float | None
    first_divergence: dict[str, Any] | None
    layers: list[LayerDifference]
    agrees: bool
    verdict: str = ""
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    model: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def to_json(self, **options: Any) -> str:
        return json.dumps(self.to_dict(), **options)

    def to_dataframe(self) -> Any:
        """The layers as a pandas DataFrame (needs the `lab` extra)."""
        import pandas as pd

        return pd.DataFrame([asdict(x) for x in self.layers])


class Side:
    """One way of running a model: a Predictor with a label, and single layers of it."""

    def __init__(self, predictor: Predictor, label: str = "") -> None:
        self.predictor = predictor
        self.label = label or predictor.backend

    @property
    def graph(self) -> Graph:
        return self.predictor.graph

    def values(
        self, feeds: Mapping[str, np.ndarray], names: Sequence[str]
    ) -> dict[str, np.ndarray]:
        return self.predictor.run(feeds, taps=names)

    def isolated(
        self, nodes: Sequence[Node], known: Mapping[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """Outputs of these layers, each fed with the given values."""
        graph, feeds = isolated_graph(nodes, known)
        return self.predictor.like(graph).run(feeds)


def isolated_graph(
    nodes: Sequence[Node], known: Mapping[str, np.ndarray]
) -> tuple[Graph, dict[str, np.ndarray]]:
    """A graph of disconnected layers: every input that is not constant becomes a graph input."""
    graph = Graph("isolated")
    inputs: dict[str, Value] = {}
    for node in nodes:
        ins: list[Value | None] = []
        for value in node.inputs:
            if value is None:
                ins.append(None)
            elif value.const is not None:
                ins.append(Value(f"{node.name}/{value.name}", value.dtype, const=value.const))
            else:
                shape = known[value.name].shape
                if value.name not in inputs:
                    inputs[value.name] = Value(f"{value.name}:in", value.dtype, shape)
                ins.append(inputs[value.name])
        outs = [Value(v.name, v.dtype, v.shape, quant=v.quant) for v in node.outputs]
        graph.nodes.append(
            Node(node.op, ins, outs, node.attrs, name=node.name, sources=node.sources)
        )
        graph.outputs += outs
    graph.inputs = list(inputs.values())
    return graph, {f"{name}:in": known[name] for name in inputs}


def compare(
    a: Side,
    b: Side,
    feeds: Mapping[str, Any],
    *,
    tolerance: float | None = None,
    isolated: bool = True,
    layers: Sequence[str] | None = None,
    until: str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Compares every layer that both sides have. `tolerance` is a relative L2 error, by default
    each
    operator's own for the coarser precision. Raises ShapeError, UsageError.
    """
    arrays = a.predictor.check_feeds(feeds)
    pairs = _pairs(a.graph, b.graph, layers, until)
    factor = max(PRECISION_FACTOR[p.predictor.precision] for p in (a, b))
    kernels = _kernels(b, arrays)
    rows: list[LayerDifference] = []
    for window in _windows(a, arrays, pairs):
        needed = _needed(window, a.graph) if isolated else []
        names = list(dict.fromkeys([v for _, v in window] + needed))
        va = a.values(arrays, names)
        vb = b.values(arrays, [v for _, v in window])
        alone = _isolated(b, window, {**arrays, **va}) if isolated else {}
        for node, name in window:
            limit = tolerance if tolerance is not None else _tolerance(node) * factor
            rows.append(
                _row(
                    len(rows),
                    node,
                    va[name],
                    vb[name],
                    alone.get(name),
                    limit,
                    kernels.get(node.name, ""),
                )
            )
            if progress:
                progress(len(rows), len(pairs))
    result = Comparison(a.label, b.label, tolerance, None, rows, True, model=a.predictor.model.name)
    result.outputs = _outputs(a, b, arrays)
    _judge(result, a, arrays, factor)
    return result


def _pairs(
    a: Graph, b: Graph, layers: Sequence[str] | None, until: str | None
) -> list[tuple[Node, str]]:
    """(node of A, value name) for every value that both graphs make, in A's order."""
    in_b = {v.name for n in b.nodes for v in n.outputs}
    pairs = [(n, v.name) for n in a.nodes for v in n.outputs if v.name in in_b and _real(v)]
    names = [n.name for n, _ in pairs]
    for wanted in [*(layers or ()), *([until] if until else [])]:
        if wanted not in names:
            raise UsageError(f"no layer is called {wanted!r}; `lite info --layers` lists them")
    if layers:
        pairs = [p for p in pairs if p[0].name in layers]
    if until:
        pairs = pairs[: max(i for i, n in enumerate(names) if n == until) + 1]
    return pairs


def _real(value: Value) -> bool:
    return bool(value.readers) or value.producer is not None


def _windows(
    side: Side, arrays: Mapping[str, np.ndarray], pairs: Sequence[tuple[Node, str]]
) -> Iterator[list[tuple[Node, str]]]:
    """Consecutive layers whose outputs fit into WINDOW_BYTES."""
    plan = side.predictor.plan({n: x.shape for n, x in arrays.items()})
    window: list[tuple[Node, str]] = []
    size = 0
    for node, name in pairs:
        if name not in plan.tensor_of:
            continue  # folded when shapes became known
        bytes_ = plan.tensors[plan.tensor_of[name]].nbytes
        if window and size + bytes_ > WINDOW_BYTES:
            yield window
            window, size = [], 0
        window.append((node, name))
        size += bytes_
    if window:
        yield window


def _needed(window: Sequence[tuple[Node, str]], graph: Graph) -> list[str]:
    """Names of the values that the window's layers read."""
    inputs = {v.name for v in graph.inputs}
    return [
        v.name
        for node, _ in window
        for v in node.inputs
        if v is not None and v.const is None and v.name not in inputs
    ]


def _isolated(
    side: Side, window: Sequence[tuple[Node, str]], known: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Side B's layers on side A's values. B's own nodes are used: the same kernels, fusions
    kept."""
    by_output = {v.name: n for n in side.graph.nodes for v in n.outputs}
    nodes = []
    for _, name in window:
        node = by_output[name]
        reads = [v.name for v in node.inputs if v is not None and v.const is None]
        if (
            all(r in known for r in reads)
            and node not in nodes
            and not any(True for _ in node.subgraphs())
        ):
            nodes.append(node)
    return side.isolated(nodes, known) if nodes else {}


def _kernels(side: Side, arrays: Mapping[str, np.ndarray]) -> dict[str, str]:
    plan = side.predictor.plan({n: x.shape for n, x in arrays.items()})
    return {s.name: s.kernel for s in plan.steps}


def _tolerance(node: Node) -> float:
    op = find_op(node.op)
    return op.tolerance if op else 1e-4


def within(d: Difference, tolerance: float) -> bool:
    """Small in norm and at every single place (ten times the tolerance of the range), and no NaN
    that the other side has not."""
    if d.broken:
        return False
    largest = max(abs(d.range_a[0]), abs(d.range_a[1]))
    return d.rel_l2 <= tolerance and d.max_abs <= max(10 * tolerance * largest, 1e-12)


def _row(
    index: int,
    node: Node,
    a: np.ndarray,
    b: np.ndarray,
    alone: np.ndarray | None,
    limit: float,
    kernel: str,
) -> LayerDifference:
    if a.shape != b.shape:
        raise LiteError(f"{node.name}: side A gives {a.shape}, side B {b.shape}")
    d = difference(a, b)
    own = None if alone is None else difference(a, alone)
    judged = own if own is not None else d
    return LayerDifference(
        index,
        node.name,
        node.op,
        list(node.sources),
        limit,
        **asdict(d),
        isolated=None if own is None else asdict(own),
        within=within(judged, limit),
        kernel_b=kernel,
    )


def _outputs(a: Side, b: Side, arrays: Mapping[str, np.ndarray]) -> dict[str, dict[str, Any]]:
    names = [n for n in a.predictor.output_names if n in b.predictor.output_names]
    va, vb = a.values(arrays, ()), b.values(arrays, ())
    return {n: asdict(difference(va[n], vb[n])) for n in names if va[n].shape == vb[n].shape}


def _judge(result: Comparison, a: Side, arrays: Mapping[str, np.ndarray], factor: float) -> None:
    """Writes first_divergence, agrees and the sentence."""
    bad = [x for x in result.layers if not x.within]
    apart = [
        n
        for n, d in result.outputs.items()
        if not within(Difference(**d), result.tolerance or 1e-3 * factor)
    ]
    result.agrees = not bad and not apart
    if bad:
        first = bad[0]
        result.first_divergence = {
            "index": first.index,
            "name": first.name,
            "op": first.op,
            "sources": first.sources,
            "kernel": first.kernel_b,
            "wrong_side": _wrong_side(first, a, arrays, result),
        }
        number = (first.isolated or {"rel_l2": first.rel_l2})["rel_l2"]
        how = "by itself" if first.isolated is not None else "first"
        who = result.first_divergence["wrong_side"]
        others = f", {len(bad) - 1} more layers are over tolerance too" if len(bad) > 1 else ""
        result.verdict = (
            f"{first.name} ({first.op}) is wrong {how}: error {number:.1e}, tolerance "
            f"{first.tolerance:.1e}; {who}{others}"
        )
    elif apart:
        result.verdict = (
            f"no layer is wrong by itself, but output {apart[0]} differs by "
            f"{result.outputs[apart[0]]['rel_l2']:.1e}: rounding adds up along the model"
        )
    else:
        worst = max((x.rel_l2 for x in result.layers), default=0.0)
        result.verdict = f"{result.a} and {result.b} agree: largest error {worst:.1e}"


def _wrong_side(
    row: LayerDifference, a: Side, arrays: Mapping[str, np.ndarray], result: Comparison
) -> str:
    """The NumPy reference on side A's inputs says which side left it."""
    node = a.graph.node(row.name)
    reads = [v.name for v in node.inputs if v is not None and v.const is None]
    inner = [r for r in reads if r not in arrays]
    out = next(v.name for v in node.outputs)
    values = {**arrays, **a.values(arrays, [*inner, out])}
    given = [
        None if v is None else v.const if v.const is not None else values[v.name]
        for v in node.inputs
    ]
    exact = evaluate(node, given, {})[0]
    mine = difference(exact, values[out])
    if within(mine, row.tolerance):
        return f"{result.b} is the wrong side"
    return f"{result.a} is the wrong side (it leaves the NumPy reference by {mine.rel_l2:.1e})"
