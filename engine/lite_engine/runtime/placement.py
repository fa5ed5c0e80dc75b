"""Which layers of an OpenCL network the CPU runs faster, copies included: measured, not guessed.

Both backends time every layer, the device its copies. The cheapest assignment along the layers'
order comes from dynamic programming; whole runs side by side decide whether it is kept.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from lite_messages import tr, trn

from ..backends import Offload, get_backend
from ..ir import Graph, Node, Value
from .choice import host_target, usability
from .execute import Execution
from .predictor import Predictor

_RUNS = 7
SIDES = ("opencl", "cpu")


@dataclass(frozen=True)
class CopyCost:
    """What bringing bytes to the device or back takes: once, and for every byte."""

    latency_ms: float
    ms_per_byte: float

    def ms(self, nbytes: int) -> float:
        return self.latency_ms + nbytes * self.ms_per_byte


def assign(
    graph: Graph, times: Mapping[str, tuple[float, float]], copy: CopyCost
) -> dict[str, str]:
    """Layer → "opencl" or "cpu". `times` has (on OpenCL, on the CPU) in ms by layer; layers that
    are not in it cost nothing. Exact for a chain, else the best of that and of either side alone.
    """
    nodes, producer = list(graph.nodes), _producers(graph)
    best: list[tuple[float, list[str]]] = [(0.0, []), (0.0, [])]
    for i, node in enumerate(nodes):
        step: list[tuple[float, list[str]]] = []
        for side in SIDES:
            options = []
            for before, (spent, sides) in zip(SIDES, best):
                known = [*sides, side]
                moved = sum(
                    copy.ms(_nbytes(v))
                    for v in _inputs(node)
                    if _side(v, producer, known, i, before) != side
                )
                ms = times.get(node.name, (0.0, 0.0))[SIDES.index(side)]
                options.append((spent + ms + moved, known))
            step.append(min(options, key=lambda option: option[0]))
        best = step
    found = [dict(zip((n.name for n in nodes), sides)) for _, sides in best]
    found += [{n.name: side for n in nodes} for side in SIDES]
    return min(found, key=lambda sides: cost_ms(graph, sides, times, copy))


def cost_ms(
    graph: Graph,
    sides: Mapping[str, str],
    times: Mapping[str, tuple[float, float]],
    copy: CopyCost,
) -> float:
    """Layers and copies; a value is brought to the other side once. Inputs and outputs of the
    network lie on the host."""
    producer = _producers(graph)
    total = 0.0
    wanted: dict[int, tuple[Value, set[str]]] = {id(v): (v, {"cpu"}) for v in graph.outputs}
    for node in graph.nodes:
        side = sides[node.name]
        total += times.get(node.name, (0.0, 0.0))[SIDES.index(side)]
        for value in _inputs(node):
            wanted.setdefault(id(value), (value, set()))[1].add(side)
    for value, readers in wanted.values():
        maker = producer.get(id(value))
        home = "cpu" if maker is None else sides[graph.nodes[maker].name]
        total += copy.ms(_nbytes(value)) * len(readers - {home})
    return total


def _producers(graph: Graph) -> dict[int, int]:
    return {id(v): i for i, node in enumerate(graph.nodes) for v in node.outputs}


def _inputs(node: Node) -> list[Value]:
    return [v for v in node.inputs if v is not None and v.const is None]


def _side(value: Value, producer: dict[int, int], known: list[str], now: int, before: str) -> str:
    """Where a value is when layer `now` reads it."""
    maker = producer.get(id(value))
    return "cpu" if maker is None else before if maker == now - 1 else known[maker]


def _nbytes(value: Value) -> int:
    known = value.dtype is not None and value.type.is_static
    return value.type.size * value.type.dtype.itemsize if known else 0


def layer_ms(execution: Execution, inputs: list[np.ndarray]) -> dict[str, float]:
    """Least ms of each layer, layout changes before it and its share of the host's work included.
    Copies count elsewhere."""
    steps = execution.plan.steps
    best = np.full(len(steps), np.inf)
    whole = np.inf
    for _ in range(_RUNS):
        execution.run(inputs)
        whole = min(whole, execution.total_ns / 1e6)
        spans = [(t.end_ns - t.start_ns) / 1e6 for t in execution.times()]
        best = np.minimum(best, spans)
    rest = max(0.0, whole - float(best.sum())) / max(1, len(steps))
    out: dict[str, float] = {}
    waiting = 0.0
    for step, ms in zip(steps, best):
        if step.op == "Copy":
            continue
        waiting += float(ms) + rest
        if step.node is not None:
            out[step.name] = out.get(step.name, 0.0) + waiting
            waiting = 0.0
    return out


def place(predictor: Predictor, feeds: Mapping[str, np.ndarray]) -> str:
    """Sends the layers of an OpenCL predictor that the CPU runs faster to the CPU, where whole runs
    confirm it; what was measured is the answer and stands in the predictor's decision. Layers that
    somebody sent to a backend stay there."""
    said = _place(predictor, feeds)
    predictor.decision.placement = said
    return said


def _place(predictor: Predictor, feeds: Mapping[str, np.ndarray]) -> str:
    backend = get_backend("opencl")
    if not isinstance(backend, Offload) or not usability(host_target()).usable:
        return tr("every layer stays on OpenCL, because there is no other backend")
    arrays = predictor.check_feeds(feeds)
    shapes = {n: a.shape for n, a in arrays.items()}
    ordered = [arrays[n] for n in predictor.input_names]
    device = predictor.execution(shapes)
    host = Predictor(predictor.model, host_target(), threads=predictor.threads).execution(shapes)
    on_device, on_host = layer_ms(device, ordered), layer_ms(host, ordered)
    elsewhere = {s.name for s in device.plan.steps if s.backend != "opencl"}
    never = float("inf")
    forced = {name for name in predictor.overrides if name not in elsewhere}
    times = {
        name: (
            never if name in elsewhere else ms,
            never if name in forced else on_host.get(name, ms if name in elsewhere else never),
        )
        for name, ms in on_device.items()
    }
    sides = assign(predictor.graph, times, CopyCost(*backend.copy_cost()))
    free = times.keys() - elsewhere
    moved = {name: "cpu" for name, side in sides.items() if side == "cpu" and name in free}
    before_ms, alone_ms = _least_ms((device, host), ordered)
    said = tr(
        "OpenCL {before:.3f} ms, {host} alone {alone:.3f} ms",
        before=before_ms, host=host_target(), alone=alone_ms,
    )  # fmt: skip
    if not moved:
        return tr("every layer stays on OpenCL: {said}", said=said)
    predictor.send(moved)
    after_ms, before_ms = _least_ms((predictor.execution(shapes), device), ordered)
    if alone_ms < min(after_ms, before_ms):
        predictor.send(dict.fromkeys(free - forced, "cpu"))
        return tr("every layer runs on the CPU: {said}", said=said)
    if after_ms >= before_ms:
        predictor.send(dict.fromkeys(moved, "opencl"))
        return tr("every layer stays on OpenCL: {said}", said=said)
    return trn(
        "{n} layer runs on the CPU, {after_ms:.3f} ms: {said}",
        "{n} layers run on the CPU, {after_ms:.3f} ms: {said}",
        len(moved),
        after_ms=after_ms,
        said=said,
    )


def _least_ms(executions: tuple[Execution, ...], inputs: list[np.ndarray]) -> list[float]:
    """Least ms of a whole run of each; they alternate, so that a slow moment hits all."""
    best = [float("inf")] * len(executions)
    for _ in range(_RUNS):
        for i, execution in enumerate(executions):
            began = time.perf_counter()
            execution.run(inputs)
            best[i] = min(best[i], (time.perf_counter() - began) * 1e3)
    return best
