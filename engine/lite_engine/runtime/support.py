"""What a model is made of and where each operator can run: the table before any conversion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from lite_messages import tr, trn

from ..backends import get_plugin
from ..display import Displayed
from ..errors import BackendUnavailableError, LiteError
from ..ir import Graph, Node, Shape, TypeInfo, Value, format_shape, walk
from ..model_file.precision import DEFAULT_TARGETS, ON_CPU, holds_blocks
from ..ops import DEFINE_IT, find_op, node_cost, share_of_zeros
from ..ops.bounds import is_open
from ..ops.expand import can_expand
from ..passes import optimize_graph
from ..passes.fixed_rows import is_settled, rows_so_far
from ..plan import kernels_for
from .answer import as_dict
from .assumed import with_sizes
from .hints import hints_of, sounds

_UNKNOWN = tr("the operator is unknown")
TARGET_BACKEND = {**ON_CPU, "opencl": "opencl", "reference": "reference"}


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
    zeros: float = 0.0  # share of the constants' elements that are 0


@dataclass
class Support:
    """One operator on one target; `backend` runs it there ("" when nothing does), and where that is
    not the target's own, `reason` says why."""

    op: str
    count: int
    target: str
    supported: bool
    reason: str = ""
    fix: str = ""
    backend: str = ""

    @property
    def runs_on(self) -> str:
        """`yes`, or what runs it in place of the target: `CPU`, `NumPy`; `no` when nothing does."""
        if self.supported:
            return tr("yes")
        return {"cpu": "CPU", "reference": "NumPy"}.get(self.backend) or tr("no")


@dataclass(repr=False)
class ModelInfo(Displayed):
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
    #: what the passes make of each operator, "" when it stays
    becomes: dict[str, str] = field(default_factory=dict)
    #: sizes that were assumed for inputs that leave them open
    assumed: dict[str, list[int]] = field(default_factory=dict)
    #: what a `.lite` file says of its targets (Model.describe)
    targets: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return as_dict(self)

    @property
    def headline(self) -> str:
        lacking = {s.op for s in self.support if not s.supported}
        runs = tr("all supported")
        if lacking:
            runs = trn("{n} operator on another backend", "{n} operators on another backend",
                       len(lacking))  # fmt: skip
        inputs = ", ".join(f"{p['name']} {p['text']}" for p in self.inputs)
        layers = trn("{n} layer", "{n} layers", len(self.layers))
        return f"{self.name} ({self.format}): {layers}, " + tr(
            "input {inputs}; {runs}", inputs=inputs, runs=runs
        )

    def table(self) -> tuple[list[str], list[list[Any]]]:
        targets = list(dict.fromkeys(s.target for s in self.support))
        found = {(s.op, s.target): s for s in self.support}
        rows = [
            [op, uses, *("✓" if found[op, t].supported else found[op, t].runs_on for t in targets)]
            for op, uses in self.operators.items()
        ]
        return ["operator", "uses", *targets], rows


def model_info(
    graph: Graph,
    name: str,
    targets: tuple[str, ...] = DEFAULT_TARGETS,
    optimized: Graph | None = None,
) -> ModelInfo:
    """Examines a graph with inferred types. Never raises for an unsupported operator: it says so.

    Layers and operators are the file's; whether they run is judged by what the passes make of them.
    `targets` may name backends of other packages, which are asked; BackendUnavailableError for one
    that cannot be used here. `optimized` is what the passes made of the graph, where that is known,
    with sizes of outputs that follow from the inputs'. Open sizes of inputs are `assumed`.
    """
    for target in targets:
        if target not in TARGET_BACKEND and not (state := get_plugin(target).usability()).usable:
            raise state.error(BackendUnavailableError)
    ready = _optimized(graph) if optimized is None else optimized
    fixed, assumed, misfit = with_sizes(graph, folds=ready is not None)
    costs = {n.name: n for n in fixed.nodes} if fixed is not None else {}
    layers = [_layer(i, n, costs.get(n.name, n)) for i, n in enumerate(graph.nodes)]
    operators = Counter(n.op for n in graph.nodes)
    constants = [v.const for v in graph.constants() if v.const is not None]
    packed: dict[int, int] = {}
    walk(graph, lambda node: packed.update(_packed(node)))
    macs = [x.macs for x in layers if x.macs is not None]
    support, becomes = support_table(graph, targets, assumed, ready)
    inferred = {v.name: v.shape for v in ready.outputs} if ready is not None else {}
    assumed = {name: dims for name, dims in assumed.items() if name not in sounds(graph)}
    return ModelInfo(
        name,
        str(graph.metadata.get("format", "graph")),
        [_port(v, v.shape) for v in graph.inputs],
        [_port(v, _filled(v.shape, inferred.get(v.name))) for v in graph.outputs],
        dict(sorted(operators.items(), key=lambda kv: (-kv[1], kv[0]))),
        sum(packed.get(id(c), c.size) for c in constants),
        sum(c.nbytes for c in constants),
        sum(macs) if macs and fixed is not None else None,
        layers,
        support,
        _duplicates(graph),
        [str(n) for n in graph.metadata.get("unused_weights", [])],
        [
            *hints_of(
                graph, sorted({s.op for s in support if s.reason == _UNKNOWN}), assumed, misfit
            ),
            *_in_numpy_here(fixed, support),
        ],
        {k: v for k, v in graph.metadata.items() if k not in ("unused_weights",)},
        becomes,
        {k: list(v) for k, v in assumed.items()},
    )


def _in_numpy_here(fixed: Graph | None, support: list[Support]) -> list[str]:
    """That Python runs what a program's kernels run otherwise: the table is of programs, in which
    open sizes have bounds (passes/fixed_rows)."""
    nodes = [] if fixed is None else fixed.nodes
    made = [n for n in nodes if any(map(is_open, n.outputs))]
    native = [s.supported for s in support if s.target in ON_CPU]
    whole = native and all(native) and not any(n.has_subgraph for n in nodes)
    if not made or not whole:  # there is no program, or branches decide on it
        return []
    names = [n.name for n in made]
    more = tr(" and {count} more", count=len(names) - 3) if len(names) > 3 else ""
    return [
        tr(
            "the sizes of {names}{more} depend on data: Python runs them in NumPy; only the "
            "program of a .lite file (lite_run) has kernels for that",
            names=", ".join(names[:3]),
            more=more,
        )
    ]


def _optimized(graph: Graph) -> Graph | None:
    """None for a graph that the passes refuse: each row of the support table says so."""
    try:
        return optimize_graph(graph)
    except LiteError:
        return None


def _filled(shape: Shape | None, known: Shape | None) -> Shape | None:
    """A shape with its open sizes from another one of the same value."""
    if shape is None or known is None or len(shape) != len(known):
        return known if shape is None else shape
    return tuple(b if a is None else a for a, b in zip(shape, known, strict=True))


def _port(value: Value, shape: Shape | None) -> dict[str, Any]:
    return {
        "name": value.name,
        "dtype": str(value.dtype) if value.dtype else "?",
        "shape": list(shape) if shape is not None else None,
        "text": format_shape(shape),
    }


def _layer(index: int, node: Node, fixed: Node) -> LayerInfo:
    """`fixed` is the same node with every size known."""
    consts = [v.const for v in node.inputs if v is not None and v.const is not None]
    return LayerInfo(
        index,
        node.name,
        node.op,
        list(node.sources),
        str(fixed.output.type) if fixed.outputs and fixed.output.dtype else "?",
        sum(_packed(node).get(id(c), c.size) for c in consts),
        sum(c.nbytes for c in consts),
        node_macs(fixed),
        share_of_zeros(consts),
    )


def _packed(node: Node) -> dict[int, int]:
    """By a constant's identity, how many weights it holds, where several share a byte."""
    weights = node.input(1) if holds_blocks(node) else None
    rows, columns = node.attrs.get("N"), node.attrs.get("K")
    if weights is None or weights.const is None:
        return {}
    if not (isinstance(rows, int) and isinstance(columns, int)):
        return {}
    return {id(weights.const): rows * columns}


def node_macs(node: Node) -> int | None:
    """Multiply-accumulates of one node; None where its sizes or its operator are not known."""
    cost = node_cost(node)
    return None if cost is None else cost.macs


def support_table(
    graph: Graph,
    targets: tuple[str, ...],
    assumed: Mapping[str, Shape] | None = None,
    optimized: Graph | None = None,
) -> tuple[list[Support], dict[str, str]]:
    """For each operator and target: a kernel for every use, or why not and what to do; and what
    the passes make of each operator ("" when it stays).

    The file's nodes and the optimised ones find each other by their sources.
    """
    ready, refused = graph, dict[str, str]()
    try:
        ready = optimize_graph(graph) if optimized is None else optimized
        if not is_settled(ready):
            ready, refused = rows_so_far(ready, assumed)  # as in a program
    except LiteError:
        pass  # shapes stay open, or no passes apply: each row says so
    made: dict[str, list[Node]] = {}
    for node in ready.nodes:
        for source in _sources(node):
            made.setdefault(source, []).append(node)
    rows: list[Support] = []
    becomes: dict[str, str] = {}
    by_op: dict[str, list[Node]] = {}
    for node in graph.nodes:
        by_op.setdefault(node.op, []).append(node)
    for name, uses in sorted(by_op.items()):
        images: dict[int, Node] = {}
        for sources in dict.fromkeys(map(_sources, uses)):  # steps of a loop share theirs
            after = [m for source in sources for m in made.get(source, [])]
            same = [m for m in after if m.op == name]
            images.update({id(m): m for m in same or ([] if _carries(name) else after)})
        kinds = sorted({m.op for m in images.values()})
        more = ", …" if len(kinds) > 3 else ""
        becomes[name] = (
            "" if name in kinds else ", ".join(kinds[:3]) + more or tr("nothing: folded")
        )
        of_backend: dict[str, Support] = {}  # x86 and ARM have the CPU's kernels
        for target in targets:
            own = TARGET_BACKEND.get(target, target)
            if own not in of_backend:
                of_backend[own] = _support(name, len(uses), list(images.values()), target, refused)
            rows.append(replace(of_backend[own], target=target))
    return rows, becomes


def _carries(name: str) -> bool:
    """Moves or annotates what others compute: when it is gone, the others are not its doing."""
    op = find_op(name)
    return name in ("QuantizeLinear", "DequantizeLinear") or (
        op is not None and op.layout == "view"
    )


def _sources(node: Node) -> tuple[str, ...]:
    return tuple(node.sources) or (node.name,)


def _support(
    name: str, count: int, nodes: list[Node], target: str, refused: Mapping[str, str]
) -> Support:
    """One row: `nodes` are what the `count` uses became, `refused` why some have no bound."""
    own = TARGET_BACKEND.get(target, target)
    if not nodes:
        folded = tr("folded into others before it runs")
        return Support(name, count, target, True, folded, backend=own)
    missing: Counter[str] = Counter()
    example: dict[str, Node] = {}
    for node in nodes:
        why = refused.get(node.name) or _why_not(node, target)
        if why is not None:
            reason = why if node.op == name else tr("it becomes {op}: {why}", op=node.op, why=why)
            missing[reason] += 1
            example[reason] = node
    if not missing:
        return Support(name, count, target, True, backend=own)
    (reason, uses), *_ = missing.most_common(1)
    some = tr(" ({count} of {all})", count=uses, all=len(nodes)) if uses < len(nodes) else ""
    cpu = example[reason].name not in refused and _why_not(example[reason], "x86") is None
    backend, fix = _instead(example[reason], target, cpu)
    return Support(name, count, target, False, reason + some, fix, backend)


def _why_not(node: Node, target: str) -> str | None:
    """Why the target has no kernel for the node, None when it has one."""
    op = find_op(node.op)
    if op is None:
        return _UNKNOWN
    types = [None if v is None or v.dtype is None else v.type for v in node.inputs]
    if op.layout == "view" and _static(types[:1]):
        return None
    if node.has_subgraph:
        return tr("its branches are chosen at run time")
    if not _static(types):
        return tr("it reads a dynamic size, or a size that depends on data")
    if target not in TARGET_BACKEND:
        return get_plugin(target).refusal(node) or None
    try:
        usable, reasons = kernels_for(node, types, TARGET_BACKEND[target], best=True)
        if not usable and can_expand(node, types):
            return None  # the plan writes it out in operators that have one
    except LiteError as error:
        usable, reasons = [], [str(error)]
    return None if usable else "; ".join(reasons[-2:])


def _static(types: list[TypeInfo | None]) -> bool:
    return all(t is None or t.is_static for t in types)


def _instead(node: Node, target: str, cpu: bool) -> tuple[str, str]:
    """The backend that runs a node without a kernel on a target ("" when none does), and what that
    means; `cpu`: whether the CPU has a kernel."""
    op = find_op(node.op)
    if op is None:
        own = "::" in node.op
        return "", DEFINE_IT if own else tr(
            "export with another opset, or replace it before export"
        )
    if target not in TARGET_BACKEND and cpu:
        return "cpu", tr("runs on the CPU")
    if target == "opencl" and cpu:
        return "cpu", tr("runs on the CPU, with copies to and from the device")
    if op._reference is not None or op.has_subgraphs:
        return "reference", tr("runs in Python with NumPy; the runner without Python cannot run it")
    return "", tr("replace it before export")


def _duplicates(graph: Graph) -> list[list[str]]:
    """Names of constants of at least 1 kB whose bytes are equal."""
    large = [(v.name, v.const) for v in graph.constants() if v.const is not None]
    large = [(name, const) for name, const in large if const.nbytes >= 1024]
    of_size = Counter((const.dtype, const.nbytes) for _, const in large)
    by_bytes: dict[tuple[np.dtype, bytes], list[str]] = {}
    for name, const in large:
        if of_size[const.dtype, const.nbytes] > 1:
            by_bytes.setdefault((const.dtype, const.tobytes()), []).append(name)
    return [names for names in by_bytes.values() if len(names) > 1]
