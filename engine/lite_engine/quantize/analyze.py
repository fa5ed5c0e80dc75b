"""What quantisation costs, layer by layer: ranges, clipping, isolated and accumulated error,
sensitivity, and the trade-off of keeping the worst layers in floating point.

All results are plain JSON data, and every point of a trade-off carries what repeats it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..ir import Graph, Node
from ..ir.bfloat16 import widened
from ..ops import get_op
from ._run import Feeds, Latency, Run, reference_run
from .calibrate import Calibration, Progress, Ranges
from .costs import Costs
from .metrics import Error, Errors
from .rounding import sum_preserving
from .scheme import Rounding, Scheme, shaped_scale, weight_scale
from .select import HEAVY, WEIGHTED, conversions, integer_nodes, weight_axis
from .static import quantize_static
from .statistics import Statistics


def analyze(
    parent: Graph,
    quantised: Graph,
    calibration: Calibration,
    ranges: Ranges,
    scheme: Scheme,
    feeds: Sequence[Feeds],
    *,
    run: Run = reference_run,
    biases: Mapping[str, np.ndarray] | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Everything about each integer layer of a quantised graph, worst for the output first.

    `parent` is the prepared float graph, `quantised` its QDQ form.
    """
    chosen, why = integer_nodes(parent, scheme.keep_float)
    nodes = [n for n in parent.nodes if n.name in chosen]
    accumulated, isolated = _errors(parent, quantised, nodes, feeds, run)
    ranking = sensitivity(parent, ranges, scheme, feeds, run=run, biases=biases, progress=progress)
    order = {entry["name"]: i for i, entry in enumerate(ranking)}
    alone = {entry["name"]: entry["output_sqnr_db"] for entry in ranking}
    layers = [
        {
            "name": node.name,
            "op": node.op,
            "sources": list(node.sources),
            "weight": _weight_facts(node, scheme),
            "activation": _activation_facts(node, calibration, ranges),
            "isolated": _facts(isolated.get(node.name)),
            "accumulated": _facts(accumulated.get(node.output.name)),
            "sensitivity_db": alone.get(node.name),
            "rank": order.get(node.name),
        }
        for node in nodes
    ]
    outputs = {
        v.name: accumulated[v.name].to_dict() for v in parent.outputs if v.name in accumulated
    }
    return {
        "samples": len(feeds),
        "calibration_samples": calibration.samples,
        "method": ranges.method,
        "scheme": scheme.to_dict(),
        "outputs": outputs,
        "layers": layers,
        "ranking": [entry["name"] for entry in ranking],
        "float_nodes": why,
        "conversions": [list(c) for c in conversions(parent, chosen)],
    }


def _facts(error: Error | None) -> dict[str, float | None] | None:
    return None if error is None else error.to_dict()


def _errors(
    parent: Graph, quantised: Graph, nodes: list[Node], feeds: Sequence[Feeds], run: Run
) -> tuple[Errors, Errors]:
    """(accumulated by value name, isolated by node name): the second runs each layer's integers on
    the float numbers that reach it."""
    names = sorted(
        {v.name for n in nodes for v in (*n.inputs, *n.outputs) if v is not None and not v.is_const}
    )
    accumulated, isolated = Errors(), Errors()
    local = {n.name: _local(quantised, n) for n in nodes}
    for feed in feeds:
        want = run(parent, feed, names)
        accumulated.add(want, run(quantised, feed, names))
        for node in nodes:
            steps = local[node.name]
            if steps is not None:
                got, name = _run_steps(steps, want), node.output.name
                if got is None:
                    continue
                isolated.setdefault(node.name, Error()).add(want[name], got[name])
    return accumulated, isolated


def _local(quantised: Graph, node: Node) -> list[Node] | None:
    """The nodes between the float tensors around one layer: Q, DQ, the layer, Q, DQ."""
    end = quantised.find(node.output.name).producer
    starts = {v.name for v in node.inputs if v is not None and not v.is_const}
    steps: list[Node] = []
    waiting = [end]
    while waiting:
        step = waiting.pop()
        if step is None or any(step is s for s in steps):
            continue
        steps.append(step)
        for value in step.inputs:
            if value is None or value.is_const or value.name in starts:
                continue
            if value.producer is None:
                return None
            waiting.append(value.producer)
    position = {id(n): i for i, n in enumerate(quantised.nodes)}
    return sorted(steps, key=lambda s: position[id(s)])


def _run_steps(steps: list[Node], known: dict[str, np.ndarray]) -> dict[str, np.ndarray] | None:
    """Runs a few nodes on known values. The first Q of a float input is part of the layer. None
    where a run made no such value, as of sizes that are computed once."""
    held = dict(known)
    for step in steps:
        arrays = [
            None if v is None else v.const if v.const is not None else held.get(v.name)
            for v in step.inputs
        ]
        if any(v is not None and x is None for v, x in zip(step.inputs, arrays)):
            return None
        for value, array in zip(step.outputs, get_op(step.op).run(step, arrays)):
            held[value.name] = array
    return held


def _weight_facts(node: Node, scheme: Scheme) -> dict[str, Any] | None:
    """Range, spread between channels, and what rounding does to the weight."""
    weight = node.inputs[1] if node.op in WEIGHTED else None
    if weight is None or weight.const is None:
        return None
    w = weight.const
    axis = weight_axis(node)
    scale = weight_scale(w, axis if scheme.per_channel else None)
    q = sum_preserving(node, w, scale, axis if scheme.per_channel else None)
    error = Error()
    error.add(w, q * shaped_scale(scale, w.ndim, axis))
    reach = np.abs(w).max(axis=tuple(i for i in range(w.ndim) if i != axis))
    counts, edges = np.histogram(w, bins=64)
    return {
        "shape": list(w.shape),
        "min": float(w.min()),
        "max": float(w.max()),
        "channel_spread": float(reach.max() / max(float(np.median(reach)), 1e-12)),
        "dead_channels": int(np.sum(reach == 0)),
        "sqnr_db": round(error.sqnr_db, 3),
        "histogram": [int(c) for c in counts],
        "edges": [float(edges[0]), float(edges[-1])],
    }


def _activation_facts(
    node: Node, calibration: Calibration, ranges: Ranges
) -> dict[str, Any] | None:
    statistics = calibration.statistics.get(node.output.name)
    chosen = ranges.values.get(node.output.name)
    if statistics is None or chosen is None:
        return None
    low, high = chosen
    return {
        **statistics.to_dict(),
        "range": [low, high],
        "clipped": _clipped(statistics, low, high),
    }


def _clipped(statistics: Statistics, low: float, high: float) -> float:
    """Share of the numbers outside the range."""
    total = int(statistics.counts.sum())
    centres = statistics.centres
    outside = statistics.counts[(centres < low) | (centres > high)].sum()
    return float(outside / total) if total else 0.0


def sensitivity(
    parent: Graph,
    ranges: Ranges,
    scheme: Scheme,
    feeds: Sequence[Feeds],
    *,
    run: Run = reference_run,
    biases: Mapping[str, np.ndarray] | None = None,
    rounding: Rounding = sum_preserving,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Each layer of products alone in integers: SQNR of the outputs, most sensitive first."""
    chosen, _ = integer_nodes(parent, scheme.keep_float)
    layers = [n for n in parent.nodes if n.name in chosen and n.op in HEAVY]
    outputs = [v.name for v in parent.outputs]
    wants = [run(parent, feed) for feed in feeds]
    everything = frozenset(n.name for n in parent.nodes)
    found = []
    for index, node in enumerate(layers):
        single = replace(scheme, keep_float=everything - {node.name})
        graph = quantize_static(parent, ranges, single, biases=biases, rounding=rounding)
        errors = output_errors(graph, feeds, wants, run)
        found.append(
            {
                "name": node.name,
                "op": node.op,
                "output_sqnr_db": round(errors.sqnr_db(outputs), 3),
            }
        )
        if progress is not None:
            progress(index + 1, len(layers))
    return sorted(found, key=lambda entry: entry["output_sqnr_db"])


def output_errors(
    graph: Graph, feeds: Iterable[Feeds], wants: Iterable[dict[str, np.ndarray]], run: Run
) -> Errors:
    """Errors of the outputs of a graph against wanted ones, by name."""
    errors = Errors()
    for feed, want in zip(feeds, wants):
        errors.add(widened(want, graph), widened(run(graph, feed), graph))
    return errors


def trade_off(
    parent: Graph,
    ranges: Ranges,
    scheme: Scheme,
    ranking: Sequence[str],
    feeds: Sequence[Feeds],
    *,
    run: Run = reference_run,
    counts: Sequence[int] | None = None,
    done: Sequence[dict[str, Any]] = (),
    latency: Latency | None = None,
    biases: Mapping[str, np.ndarray] | None = None,
    rounding: Rounding = sum_preserving,
    progress: Progress | None = None,
    cancel: Callable[[], bool] | None = None,
) -> list[dict[str, Any]]:
    """Points of the curve: the k most sensitive layers in floats, the rest in integers.

    `counts` are the k to evaluate (default: all); points in `done` with the same scheme are taken
    over, so an interrupted search goes on from its JSON. A point's cost is what
    `latency` measures, else an estimate: multiply-accumulates, integer ones at a quarter. Each
    point holds its whole scheme.
    """
    wants = [run(parent, feed) for feed in feeds]
    outputs = [v.name for v in parent.outputs]
    known = {tuple(p["scheme"]["keep_float"]): p for p in done}
    costs = Costs(parent, feeds[0] if feeds else {})
    points = []
    todo = list(counts) if counts is not None else list(range(len(ranking) + 1))
    for index, k in enumerate(todo):
        own = replace(scheme, keep_float=scheme.keep_float | frozenset(ranking[:k]))
        key = tuple(sorted(own.keep_float))
        if key not in known:
            if cancel is not None and cancel():
                break
            graph = quantize_static(parent, ranges, own, biases=biases, rounding=rounding)
            errors = output_errors(graph, feeds, wants, run)
            agreement = [e.top1 for e in errors.values() if e.top1 is not None]
            known[key] = {
                "float_layers": k,
                "sqnr_db": round(errors.sqnr_db(outputs), 3),
                "top1_agreement": min(agreement) if agreement else None,
                "cost": costs.total(own) if latency is None else latency(graph),
                "size_bytes": _weight_bytes(parent, own),
                "scheme": own.to_dict(),
            }
        points.append(known[key])
        if progress is not None:
            progress(index + 1, len(todo))
    return points


def choose(
    points: Sequence[dict[str, Any]],
    *,
    min_sqnr_db: float | None = None,
    min_top1: float | None = None,
    max_cost: float | None = None,
    max_bytes: int | None = None,
) -> dict[str, Any] | None:
    """The cheapest point inside the budget; with only a cost budget the most accurate one.

    None when no point fits.
    """
    fitting = [
        p
        for p in points
        if (min_sqnr_db is None or p["sqnr_db"] >= min_sqnr_db)
        and (min_top1 is None or p["top1_agreement"] is None or p["top1_agreement"] >= min_top1)
        and (max_cost is None or p["cost"] <= max_cost)
        and (max_bytes is None or p["size_bytes"] <= max_bytes)
    ]
    if not fitting:
        return None
    if min_sqnr_db is None and min_top1 is None:
        return max(fitting, key=lambda p: p["sqnr_db"])
    return min(fitting, key=lambda p: (p["cost"], p["size_bytes"]))


def _weight_bytes(graph: Graph, scheme: Scheme) -> int:
    chosen, _ = integer_nodes(graph, scheme.keep_float)
    total = 0
    for node in graph.nodes:
        for index, value in enumerate(node.inputs):
            if value is not None and value.const is not None:
                small = node.name in chosen and node.op in WEIGHTED and index == 1
                total += value.const.size if small else value.const.nbytes
    return total
