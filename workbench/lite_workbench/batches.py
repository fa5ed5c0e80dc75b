"""The same model for several samples at once, and whether each gets what it gets alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from lite_engine.edit import batched, rebatch
from lite_engine.errors import LiteError, ShapeError
from lite_engine.passes import optimize_graph
from lite_engine.runtime import Predictor
from lite_engine.runtime.assumed import with_sizes
from lite_engine.runtime.inputs import random_feeds
from lite_messages import tr

if TYPE_CHECKING:
    from lite_engine.ir import Graph
    from lite_engine.model_file import Model

#: Of the largest value. Alone and in a batch, sums have another order, which deep networks amplify
#: (2e-3 has been seen); what mixes samples is off by a share of the values themselves.
TOLERANCE = 1e-2
#: Of whole numbers: an ArgMax of two values that differ by less may name the other one.
OTHER_INTEGERS = 1e-3

#: Batches of the model's own size in the place of one that is open.
OPEN_BATCH = 3


class MixedSamples(LiteError):
    """What a sample gets depends on the others of its batch."""


def batch_of(graph: Graph) -> int:
    """Samples of one run: the first size of all inputs that have the batch; 1 where it is open."""
    sizes = {v.shape[0] for v in batched(graph) if v.shape}
    size = sizes.pop() if len(sizes) == 1 else 1
    return size if isinstance(size, int) else 1


def few_of(graph: Graph) -> int:
    """Samples of a batch that is small, and still several of the model's own."""
    return OPEN_BATCH * batch_of(graph)


def with_batch(model: Model, batch: int) -> Model:
    """The model with `batch` as the first size of every input that has it; an open size stays open.

    Raises ShapeError where the graph does not allow it, UsageError where its inputs have no common
    batch.
    """
    if _is_open(model.graph):
        return model
    if {v.shape[0] for v in batched(model.graph) if v.shape} == {batch}:
        return model
    original = tr("change it in the file that this model was made from")
    command = f"lite edit MODEL --batch {batch} -o OUT.onnx"
    try:
        made = rebatch(model.graph, batch)
    except LiteError as error:  # optimized for another batch, like a Transpose of one row
        raise ShapeError(str(error), fix=original, command=command) from None
    for refusal in made.refused:
        where = f"{refusal.layer} ({refusal.op})"
        raise ShapeError(refusal.why, where=where, fix=original, command=command)
    for value in made.graph.outputs:
        if not value.shape or batch not in value.shape:
            raise ShapeError(
                tr("output {name} does not have a row for each sample", name=value.name)
            )
    return model.but(source=optimize_graph(made.graph), graphs={})


def _is_open(graph: Graph) -> bool:
    return any(v.shape and not isinstance(v.shape[0], int) for v in batched(graph))


def check_batch(own: Graph, made: Graph) -> str:
    """Does each sample get what it got before in a graph of another batch, on random numbers? Sizes
    that both graphs leave open are assumed. Why that cannot be told, where the graph does not run
    here with its own batch. Raises MixedSamples, and LiteError where the other does not run."""
    single, many = own, made
    if not _is_open(made) and batch_of(made) < batch_of(own):
        single, many = made, own
    _, sizes, why = with_sizes(many)
    if why:
        return why
    for value in batched(many):
        shape = sizes.get(value.name, ())
        if shape and value.shape and not isinstance(value.shape[0], int):
            sizes[value.name] = (few_of(own), *shape[1:])
    feeds = random_feeds(many, shapes=sizes)
    first = feeds if own is many else _part(own, feeds, slice(batch_of(own)))
    try:
        Predictor(own).run(first)
    except LiteError as error:
        return str(error)
    check_rows(Predictor(single), Predictor(many), feeds)
    return ""


def check_rows(one: Predictor, many: Predictor, feeds: Mapping[str, np.ndarray]) -> None:
    """Do the first and the last sample of a batch get what they get alone? Raises MixedSamples."""
    rows, whole = batch_of(one.graph), many.run(feeds)
    batch = min((len(feeds[v.name]) for v in batched(one.graph)), default=rows)
    for start in dict.fromkeys((0, batch - batch % rows - rows)):
        part = slice(start, start + rows)
        for name, want in one.run(_part(one.graph, feeds, part)).items():
            if not _agree(_rows(whole[name], want, part), want):
                raise MixedSamples(
                    tr("the model mixes the samples of a batch: output {name} of a sample differs "
                       "from that of the sample alone", name=name)
                )  # fmt: skip


def _part(graph: Graph, feeds: Mapping[str, np.ndarray], part: slice) -> dict[str, np.ndarray]:
    """The inputs of some samples; what has no batch is the same for all."""
    rows = {v.name for v in batched(graph)}
    return {name: x[part] if name in rows else x for name, x in feeds.items()}


def _rows(whole: np.ndarray, want: np.ndarray, part: slice) -> np.ndarray:
    """What belongs to some samples, along the axis that has more of them."""
    sizes = enumerate(zip(whole.shape, want.shape))
    axis = next((i for i, (got, alone) in sizes if got != alone), None)
    return whole if axis is None else whole[(slice(None),) * axis + (part,)]


def _agree(got: np.ndarray, want: np.ndarray) -> bool:
    if got.shape != want.shape:
        return False
    if want.dtype.kind != "f":
        return want.size == 0 or float(np.mean(got != want)) <= OTHER_INTEGERS
    finite = np.abs(want[np.isfinite(want)])
    scale = float(finite.max(initial=0)) or 1.0
    return bool(np.isclose(got, want, rtol=0, atol=TOLERANCE * scale, equal_nan=True).all())
