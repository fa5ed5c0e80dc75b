"""The same model for other targets, sizes or outputs, or with integers for some targets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lite_messages import tr

from ..errors import UsageError
from .contents import Choices
from .layers import of_graph
from .model import Model
from .precision import check_int8, is_quantised, parse_precisions, parse_targets

if TYPE_CHECKING:
    from ..ir import Graph, Shape, Value


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


def in_float(model: Model) -> Model:
    """The same model with its float graph for every target, in the file's own float precisions.

    Raises UsageError where the model holds integers, if of weights alone, and no other graph."""
    int8 = [t for t in model.targets if model.precision(t) == "int8"]
    made = retarget(model, precision=dict.fromkeys(int8, "fp32"))
    if is_quantised(made.graph):
        raise UsageError(
            tr("{model} holds no float version, only integers", model=model.path or model.name),
            fix=tr("give the float model that it was made from"),
        )
    return made


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
        raise UsageError(
            tr(
                "int8 for {missing}, which is not among {targets}",
                missing=missing[0],
                targets=", ".join(model.targets),
            )
        )
    precisions = {**model.precisions, **dict.fromkeys(names, "int8")}
    check_int8(quantised, precisions)
    for side in ("inputs", "outputs"):
        ours, theirs = (_ports(getattr(g, side)) for g in (model.graph, quantised))
        if ours != theirs:
            raise UsageError(
                tr(
                    "the int8 version is of another model: its {side} are {theirs}, not {ours}",
                    side=side,
                    theirs=theirs,
                    ours=ours,
                )
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
