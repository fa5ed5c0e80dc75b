"""The same model for several samples at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from lite_engine.errors import LiteError, ShapeError
from lite_engine.ops import infer_types
from lite_engine.passes import optimize_graph
from lite_engine.runtime import Predictor
from lite_messages import tr

if TYPE_CHECKING:
    from lite_engine.ir import Graph
    from lite_engine.model_file import Model

#: Results of a sample alone and in a batch differ at most by the order of float sums.
TOLERANCE = 1e-3


def with_batch(model: Model, batch: int) -> Model:
    """The model with `batch` as the first size of every input. An open size stays open; a fixed one
    is changed, and so are the constants of Reshape that repeat it.

    Raises ShapeError where the graph does not allow it.
    """
    if all(isinstance((v.shape or (0,))[0], str | None) for v in model.graph.inputs):
        return model
    graph = model.graph.copy()
    olds = {v.shape[0] for v in graph.inputs if v.shape}
    if len(olds) != 1 or not all(v.shape for v in graph.inputs):
        raise ShapeError(tr("the inputs have no common batch size"))
    (old,) = olds
    if old == batch:
        return model
    for value in graph.inputs:
        value.shape = (batch, *(value.shape or ())[1:])
    _reshape(graph, old, batch)
    for node in graph.nodes:
        for value in node.outputs:
            value.shape = None
    infer_types(graph, strict=True)
    for value in graph.outputs:
        if not value.shape or value.shape[0] != batch:
            raise ShapeError(
                tr("output {name} does not have a row for each sample", name=value.name)
            )
    return model.but(source=optimize_graph(graph), graphs={})


def _reshape(graph: Graph, old: object, batch: int) -> None:
    for node in graph.nodes:
        target = node.input(1) if node.op in ("Reshape", "Expand") else None
        if target is None or target.const is None or target.const.ndim != 1:
            continue
        dims = target.const.copy()
        if dims.size and dims[0] == old:
            dims[0] = batch
            node.set_input(1, graph.constant(dims))


def check_rows(one: Predictor, many: Predictor, feeds: Mapping[str, np.ndarray]) -> None:
    """Does each sample of a batch get what it gets alone? Raises LiteError."""
    whole = many.run(feeds)
    first = one.run({name: x[:1] for name, x in feeds.items()})
    for name, want in first.items():
        got = whole[name][:1]
        scale = float(np.abs(want).max(initial=0)) or 1.0
        if got.shape != want.shape or float(np.abs(got - want).max(initial=0)) > TOLERANCE * scale:
            raise LiteError(
                tr("the model mixes the samples of a batch: output {name} of a sample differs from "
                   "that of the sample alone", name=name)
            )  # fmt: skip
