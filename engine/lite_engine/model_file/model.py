"""Model: an optimised graph with its targets and everything that travels with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..files import about
from ..ir import Journal
from .layers import of_graph
from .needs import Needs
from .precision import TARGETS, check_int8, parse_precisions, told

if TYPE_CHECKING:
    from ..ir import Graph, Node, Shape, Value


#: Of each target, what was chosen for which layers.
Choices = dict[str, dict[str, str]]


class Model:
    """What `.lite` holds. `targets` is the order of preference, empty for "any".

    `graph` serves every target, but for the precisions that have one of their own in `graphs`:
    {"int8": …} beside a float `graph` is int8 for one target and float for the others.
    `source` is `graph`, or how to read it: a stored program runs without it.
    By target, `overrides` maps layers to a backend or a precision and `tuning` to kernels; entries
    of `tuning` under "opencl/DEVICE" are what was measured on a device (backends/opencl/tuning.py).
    """

    def __init__(
        self,
        source: Graph | Callable[[], Graph],
        targets: Iterable[str] = (),
        precisions: Mapping[str, str] | None = None,
        tuning: Choices | None = None,
        metadata: Mapping[str, Any] | None = None,
        journal: Journal | None = None,
        needs: Needs | None = None,
        path: Path | None = None,
        graphs: Mapping[str, Graph] | None = None,
        overrides: Choices | None = None,
    ) -> None:
        self.source = source
        self.targets = list(targets)
        self.precisions = dict(precisions or {})
        self.tuning = tuning or {}
        self.metadata = dict(metadata or {})
        self.journal = journal or Journal()
        self.needs = needs or Needs()
        self.path = path
        self.graphs = graphs or {}
        self.overrides = overrides or {}

    def but(self, **changes: Any) -> Model:
        """The same model with other values of these attributes."""
        return Model(**{**vars(self), **changes})

    @property
    def graph(self) -> Graph:
        """The optimised graph, read from the file on first use. Raises ModelFormatError."""
        if callable(self.source):
            self.source = self.source()
        return self.source

    @graph.setter
    def graph(self, graph: Graph) -> None:
        self.source = graph

    @property
    def is_read(self) -> bool:
        """Whether the graph is in memory, where it may have been changed."""
        return not callable(self.source)

    @property
    def name(self) -> str:
        return self.path.stem if self.path else self.graph.name

    def precision(self, target: str) -> str:
        return self.precisions.get(target, "fp32")

    def told_precision(self, target: str) -> str:
        """What people read of a target: int8 for a model whose integers came with its file, too."""
        precision = self.precision(target)
        return told(self.graph_in(precision), precision)

    def graph_in(self, precision: str) -> Graph:
        """The graph that is computed in a precision."""
        own = precision in self.graphs  # graphs are read on use: not both
        return self.graphs[precision] if own else self.graph

    def all_graphs(self) -> list[Graph]:
        return [self.graph, *self.graphs.values()]

    def describe(self) -> list[dict[str, Any]]:
        """What the file says of each target, for `lite info`."""
        notes = self.metadata.get("notes", {})
        return [
            {
                "target": t,
                "precision": self.told_precision(t),
                "layers": len(self.graph_in(self.precision(t)).nodes),
                "set": {**self.tuning.get(t, {}), **self.overrides.get(t, {})},
                "tuned_devices": sum(k.startswith(f"{t}/") for k in self.tuning),
                "note": notes.get(t, ""),
            }
            for t in self.targets
        ]

    def save(self, path: str | Path) -> Path:
        """Writes a `.lite` file (to a temporary name, then renamed). Same model, same bytes."""
        from .writer import write_model

        return write_model(self, Path(path))

    def __repr__(self) -> str:
        targets = ", ".join(f"{t} {self.told_precision(t)}" for t in self.targets) or "any target"
        return f"<Model {self.name}: {len(self.graph.nodes)} layers, {targets}>"


def parse_targets(targets: str | Sequence[str]) -> list[str]:
    """`arm,opencl` or a list → targets in order, each once. Raises UsageError."""
    given = targets.split(",") if isinstance(targets, str) else list(targets)
    names = list(dict.fromkeys(n.strip() for n in given if n.strip()))
    if targets and not names:
        raise UsageError(f"targets {targets!r} name none of {', '.join(TARGETS)}")
    for name in names:
        if name not in TARGETS:
            raise UsageError(f"target {name!r} is not one of {', '.join(TARGETS)}")
    return names


def optimize(
    model: str | Path | Graph,
    *,
    targets: str | Sequence[str] = (),
    precision: str | Mapping[str, str] = "fp32",
    shapes: Mapping[str, Shape] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Model:
    """A Graph (or a model file) → Model, after the target-independent passes.

    `metadata` (preprocess, labels) travels with the model. Raises ModelFormatError,
    UnsupportedOperatorError, UsageError.
    """
    # Importers and passes are loaded only here: a .lite file needs neither.
    from ..importers import load
    from ..ir import Graph
    from ..passes import optimize_graph

    graph = model if isinstance(model, Graph) else load(model, shapes=shapes)
    path = None if isinstance(model, Graph) else Path(model)
    names = parse_targets(targets)
    precisions = parse_precisions(precision, names)
    journal = Journal()
    with about(path):
        optimised = optimize_graph(graph, journal=journal)
        _check_operators(optimised)
    optimised.metadata.pop("unused_weights", None)  # they are not in the Model
    check_int8(optimised, precisions)
    meta = {k: v for k, v in graph.metadata.items() if k in ("preprocess", "labels")}
    meta["source"] = {k: v for k, v in graph.metadata.items() if k not in meta}
    return Model(
        optimised,
        names,
        precisions,
        metadata={**meta, **(metadata or {})},
        journal=journal,
        path=path,
    )


def _check_operators(graph: Graph) -> None:
    """Raises UnsupportedOperatorError with every operator that nothing here runs."""
    from ..errors import UnsupportedOperatorError
    from ..ir import walk
    from ..ops import find_op

    unknown: dict[str, list[str]] = {}

    def look(node: Node) -> None:
        if find_op(node.op) is None:
            unknown.setdefault(node.op, []).append(node.name)

    walk(graph, look)
    if unknown:
        told = ", ".join(f"{op} ({len(nodes)}, at {nodes[0]})" for op, nodes in unknown.items())
        raise UnsupportedOperatorError(
            f"no target has {told}",
            tuple(name for nodes in unknown.values() for name in nodes),
            fix="export with another opset, or replace them before export",
        )


def retarget(
    model: Model,
    *,
    targets: str | Sequence[str] = (),
    precision: str | Mapping[str, str] = "",
    metadata: Mapping[str, Any] | None = None,
) -> Model:
    """The same model for other targets or precisions (empty: as they are). Raises UsageError."""
    names = parse_targets(targets) or list(model.targets)
    given = parse_precisions(precision, names) if precision else {}
    kept = {t: p for t, p in model.precisions.items() if t in names}
    check_int8(model.graph_in("int8"), given)
    carried = {k: v for k, v in model.metadata.items() if k not in ("notes", "engine", "padded")}
    return _without_idle_graphs(
        model.but(
            targets=names,
            precisions={**kept, **given},
            tuning={t: v for t, v in model.tuning.items() if t.partition("/")[0] in names},
            overrides={t: v for t, v in model.overrides.items() if t in names},
            metadata={**carried, **(metadata or {})},
        )
    )


def with_shapes(model: Model, shapes: Mapping[str, Shape]) -> Model:
    """The same model with input sizes fixed, and its graphs optimised again for what these allow.

    Raises ModelFormatError for an unknown input, ShapeError for a size that does not fit.
    """
    from ..importers import fix_shapes

    return _rebuilt(model, lambda graph: fix_shapes(graph, shapes)) if shapes else model


def with_outputs(model: Model, names: Sequence[str]) -> Model:
    """The model up to these values or layers. Raises UsageError for an unknown name."""
    from ..importers import end_at

    return _rebuilt(model, lambda graph: end_at(graph, names)) if names else model


def _rebuilt(model: Model, change: Callable[[Graph], None]) -> Model:
    """The same model with a change of its graphs, which are optimised again."""
    from ..passes import optimize_graph

    def changed(graph: Graph) -> Graph:
        copy = graph.copy()
        change(copy)
        return optimize_graph(copy)

    graphs = {p: changed(g) for p, g in model.graphs.items()}
    made = model.but(source=changed(model.graph), graphs=graphs)

    def kept(choices: Choices) -> Choices:
        graph_of = {t: made.graph_in(model.precision(t)) for t in model.targets}
        return {t: of_graph(v, graph_of[t]) if t in graph_of else v for t, v in choices.items()}

    return made.but(overrides=kept(model.overrides), tuning=kept(model.tuning))


def with_int8(model: Model, quantised: Graph, targets: str | Sequence[str]) -> Model:
    """The same model with a quantised graph of its own for some of its targets.

    Raises UsageError for a target that the model lacks, a graph without integers, or one with
    other inputs or outputs.
    """
    names = parse_targets(targets)
    if missing := [t for t in names if t not in model.targets]:
        raise UsageError(f"int8 for {missing[0]}, which is not among {', '.join(model.targets)}")
    precisions = {**model.precisions, **dict.fromkeys(names, "int8")}
    check_int8(quantised, precisions)
    for side in ("inputs", "outputs"):
        ours, theirs = (_ports(getattr(g, side)) for g in (model.graph, quantised))
        if ours != theirs:
            raise UsageError(
                f"the int8 version is of another model: its {side} are {theirs}, not {ours}"
            )
    graphs = {**model.graphs, "int8": quantised}
    kept = [
        {t: of_graph(v, quantised) if t in names else v for t, v in table.items()}
        for table in (model.overrides, model.tuning)
    ]
    made = model.but(precisions=precisions, graphs=graphs, overrides=kept[0], tuning=kept[1])
    return _without_idle_graphs(made)


def _ports(values: Sequence[Value]) -> str:
    return ", ".join(f"{v.name}: {v.type}" for v in values)


def _without_idle_graphs(model: Model) -> Model:
    """Only graphs that a target uses; one that serves them all is `graph`."""
    asked = [model.precision(t) for t in model.targets] or ["fp32"]
    used = {p: g for p, g in model.graphs.items() if p in asked}
    if used and all(p in used for p in asked):
        first, *_ = asked
        return model.but(source=used.pop(first), graphs=used)
    return model.but(graphs=used)


def open_model(model: str | Path | Model | Graph) -> Model:
    """A Model as it is, a `.lite` file read, any other model file imported and optimised."""
    if isinstance(model, Model):
        return model
    if not isinstance(model, (str, Path)):
        return optimize(model)
    from .reader import is_lite, open_file

    path = Path(model)
    return open_file(path) if is_lite(path) else optimize(path)
