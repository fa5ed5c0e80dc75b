"""What a model is made of and where each operator can run: the table before any conversion."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import LiteError
from ..ir import Graph, Node, TypeInfo, format_shape
from ..ops import find_op, get_op
from ..plan import kernels_for

TARGET_BACKEND = {"x86": "cpu", "arm": "cpu", "opencl": "opencl", "reference": "reference"}
_TRAINING = (
    "Gradient",
    "Momentum",
    "Adam",
    "Adagrad",
    "SoftmaxCrossEntropyLoss",
    "sgd",
    "momentum",
    "adam",
)


@dataclass
class LayerInfo:
    """One node of the graph with its static costs; None where shapes are not fixed."""

    index: int
    name: str
    op: str
    sources: list[str]
    output: str
    params: int
    weight_bytes: int
    macs: int | None


@dataclass
class Support:
    """One operator on one target."""

    op: str
    count: int
    target: str
    supported: bool
    reason: str = ""
    fix: str = ""


@dataclass
class ModelInfo:
    """Answer of `lite info`."""

    name: str
    format: str
    inputs: list[dict[str, Any]]
    outputs: list[dict[str, Any]]
    operators: dict[str, int]
    params: int
    weight_bytes: int
    macs: int | None
    layers: list[LayerInfo]
    support: list[Support]
    duplicates: list[list[str]]
    dead_weights: list[str]
    hints: list[str] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def model_info(
    graph: Graph, name: str, targets: tuple[str, ...] = ("x86", "arm", "opencl")
) -> ModelInfo:
    """Examines a graph with inferred types. Never raises for an unsupported operator: it says
    so."""
    layers = [_layer(i, n) for i, n in enumerate(graph.nodes)]
    operators: dict[str, int] = {}
    for node in graph.nodes:
        operators[node.op] = operators.get(node.op, 0) + 1
    constants = list(graph.constants())
    macs = [x.macs for x in layers]
    support = support_table(graph, targets)
    return ModelInfo(
        name,
        str(graph.metadata.get("format", "graph")),
        [_port(v) for v in graph.inputs],
        [_port(v) for v in graph.outputs],
        dict(sorted(operators.items(), key=lambda kv: (-kv[1], kv[0]))),
        sum(v.const.size for v in constants if v.const is not None),
        sum(v.const.nbytes for v in constants if v.const is not None),
        sum(m for m in macs if m is not None) if any(m is not None for m in macs) else None,
        layers,
        support,
        _duplicates(graph),
        [str(n) for n in graph.metadata.get("unused_weights", [])],
        _hints(graph, support),
        {k: v for k, v in graph.metadata.items() if k not in ("unused_weights",)},
    )


def _port(value: Any) -> dict[str, Any]:
    return {
        "name": value.name,
        "dtype": str(value.dtype) if value.dtype else "?",
        "shape": list(value.shape) if value.shape is not None else None,
        "text": format_shape(value.shape),
    }


def _layer(index: int, node: Node) -> LayerInfo:
    consts = [v.const for v in node.inputs if v is not None and v.const is not None]
    return LayerInfo(
        index,
        node.name,
        node.op,
        list(node.sources),
        str(node.output.type) if node.outputs and node.output.dtype else "?",
        sum(c.size for c in consts),
        sum(c.nbytes for c in consts),
        _macs(node),
    )


def _macs(node: Node) -> int | None:
    op = find_op(node.op)
    values = [v for v in (*node.inputs, *node.outputs) if v is not None]
    if op is None or any(v.dtype is None or not v.type.is_static for v in values):
        return None
    try:
        types = [None if v is None else v.type for v in node.inputs]
        return op.cost_of(node, types, [v.type for v in node.outputs]).macs
    except (LiteError, TypeError):
        return None


def support_table(graph: Graph, targets: tuple[str, ...]) -> list[Support]:
    """For each operator and target: a kernel for every use, or why not and what to do."""
    rows: list[Support] = []
    by_op: dict[str, list[Node]] = {}
    for node in graph.nodes:
        by_op.setdefault(node.op, []).append(node)
    for name, nodes in sorted(by_op.items()):
        for target in targets:
            rows.append(_support(name, nodes, target))
    return rows


def _support(name: str, nodes: list[Node], target: str) -> Support:
    op = find_op(name)
    if op is None:
        return Support(
            name,
            len(nodes),
            target,
            False,
            "the operator is not known",
            "export with another opset, or replace it before export",
        )
    if op.layout == "view" and not op.kernels:
        return Support(name, len(nodes), target, True, "needs no kernel: the bytes stay in place")
    for node in nodes:
        types = [None if v is None or v.dtype is None else v.type for v in node.inputs]
        if not _static(types):
            return Support(
                name,
                len(nodes),
                target,
                False,
                "an input's shape is not fixed",
                "fix the model's inputs with --shape NAME:1x3x224x224",
            )
        try:
            usable, reasons = kernels_for(node, types, TARGET_BACKEND[target])
        except LiteError as error:
            usable, reasons = [], [str(error)]
        if not usable:
            return Support(
                name, len(nodes), target, False, "; ".join(reasons[-2:]), _fix(op.name, target)
            )
    return Support(name, len(nodes), target, True)


def _static(types: list[TypeInfo | None]) -> bool:
    return all(t is None or t.is_static for t in types)


def _fix(op: str, target: str) -> str:
    if target == "opencl" and any(k.backend == "cpu" for k in get_op(op).kernels):
        return "runs on the CPU, with copies to and from the device"
    if get_op(op)._reference is not None:
        return "runs in Python with NumPy; the runner without Python cannot run it"
    return "replace it before export"


def _duplicates(graph: Graph) -> list[list[str]]:
    """Names of constants of at least 1 kB whose bytes are equal."""
    by_bytes: dict[bytes, list[str]] = {}
    for value in graph.constants():
        if value.const is not None and value.const.nbytes >= 1024:
            key = str(value.const.dtype).encode() + value.const.tobytes()
            by_bytes.setdefault(key, []).append(value.name)
    return [names for names in by_bytes.values() if len(names) > 1]


def _hints(graph: Graph, support: list[Support]) -> list[str]:
    hints = [str(w) for w in graph.metadata.get("warnings", [])]
    if any(n.op in _TRAINING for n in graph.nodes):
        hints.append("this is a training graph: export it for inference")
    if any(not isinstance(d, int) for v in graph.inputs for d in v.shape or (None,)):
        hints.append(
            "an input's shape is not fixed: give --shape NAME:1x3x224x224 for costs and kernels"
        )
    unknown = sorted({s.op for s in support if s.reason == "the operator is not known"})
    if unknown:
        hints.append(f"not known here: {', '.join(unknown)}")
    return hints
