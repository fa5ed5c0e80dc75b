"""Graphs and model files → Model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_messages import tr

from ..files import about
from ..mapped import mapping
from .contents import TRAVELLING
from .model import Model
from .precision import check_int8, parse_precisions, parse_targets
from .reader import is_lite, open_file

if TYPE_CHECKING:
    from ..ir import Graph, Node, Shape
    from ..passes import Optimized


def optimize(
    model: str | Path | Graph,
    *,
    targets: str | Sequence[str] = (),
    precision: str | Mapping[str, str] = "fp32",
    shapes: Mapping[str, Shape] | None = None,
    metadata: Mapping[str, Any] | None = None,
    passes: Sequence[Any] = (),
    known: Optimized | None = None,
) -> Model:
    """A Graph (or a model file) → Model, after the target-independent passes.

    `metadata` (TRAVELLING) travels with the model; `passes` are further ones, or the names of
    installed ones, that run before anything is fused. `known` is what the passes made of the Graph
    before; the Model takes it over. Raises ModelFormatError, UnsupportedOperatorError, UsageError.
    """
    # Importers and passes are loaded only here: a .lite file needs neither.
    from ..importers import load
    from ..ir import Graph
    from ..passes import optimized, with_custom

    graph = model if isinstance(model, Graph) else load(model, shapes=shapes)
    path = None if isinstance(model, Graph) else Path(model)
    names = parse_targets(targets)
    precisions = parse_precisions(precision, names) if names or precision != "fp32" else {}
    with about(path):
        if known is None:
            made = optimized(graph, with_custom(passes))
        else:
            graph.check_files()
            made = known
            made.graph.metadata.update(graph.metadata)
        _check_operators(made.graph)
    made.graph.metadata.pop("unused_weights", None)  # they are not in the Model
    check_int8(made.graph, precisions)
    meta = {k: v for k, v in graph.metadata.items() if k in TRAVELLING}
    meta["source"] = {k: v for k, v in graph.metadata.items() if k not in meta}
    return Model(
        made.graph,
        names,
        precisions,
        metadata={**meta, **(metadata or {})},
        journal=made.journal,
        path=path,
    )


def _check_operators(graph: Graph) -> None:
    """Raises UnsupportedOperatorError with every operator that nothing here runs."""
    from ..errors import UnsupportedOperatorError
    from ..ir import walk
    from ..ops import DEFINE_IT, find_op

    unknown: dict[str, list[str]] = {}

    def look(node: Node) -> None:
        if find_op(node.op) is None:
            unknown.setdefault(node.op, []).append(node.name)

    walk(graph, look)
    if unknown:
        told = ", ".join(
            tr("{op} ({count}, at {first})", op=op, count=len(nodes), first=nodes[0])
            for op, nodes in unknown.items()
        )
        raise UnsupportedOperatorError(
            tr("no target supports {told}", told=told),
            tuple(name for nodes in unknown.values() for name in nodes),
            fix=DEFINE_IT
            if all("::" in op for op in unknown)
            else tr("export with another opset, or replace them before export"),
        )


def open_model(model: str | Path | Model | Graph, *, mmap: bool | None = None) -> Model:
    """A Model as it is, a `.lite` file read, any other model file imported and optimised; `mmap`
    as `load` has it."""
    if isinstance(model, Model):
        return model
    if not isinstance(model, (str, os.PathLike)):
        return optimize(model)
    path = Path(model)
    with mapping(mmap):
        return open_file(path) if is_lite(path) else optimize(path)
