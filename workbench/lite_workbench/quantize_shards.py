"""Calibration on a cluster: blocks of samples → statistics, merged in their order as one process
does. A worker holds one sample at a time; what it sends back does not grow with the samples."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_engine.errors import CalibrationError
from lite_engine.model_file import Model
from lite_engine.quantize import Calibration
from lite_engine.quantize.calibrate import (
    BLOCK,
    Calibrator,
    Progress,
    activations,
    calibrate_block,
    check,
)
from lite_engine.quantize.samples import HoldOut, feed_of
from lite_messages import tr

from .budget import Feeds
from .cluster import Cluster, Work, run_shards
from .evaluate import Sample
from .evaluate.remote import local
from .inputs import read_source
from .quantizing import FastRun

if TYPE_CHECKING:
    from lite_engine.ir import Graph

#: The graph of this worker, by its digest, and what runs it.
_graphs: dict[str, tuple[Graph, FastRun]] = {}


def calibrator(cluster: Cluster) -> Calibrator:
    """For `lite_engine.quantize.quantize`. Paths are those that the workers see. It raises
    CalibrationError for samples of a generator."""

    def calibrate(
        graph: Graph, samples: HoldOut, limit: int | None, progress: Progress | None
    ) -> Calibration:
        items = samples.unread(_items(samples.samples.items), partial(_read, graph))[:limit]
        data = pickle.dumps(graph)
        digest = hashlib.sha256(data).hexdigest()
        out, waiting, following = Calibration(), dict[int, Calibration](), 0

        def arrived(number: int, block: Calibration) -> None:
            nonlocal following
            waiting[number] = block
            while following in waiting:  # in order, each as soon as those before it are there
                out.merge(waiting.pop(following))
                following += 1

        work = Work(_block, digest, {digest: data}, size=BLOCK)
        run_shards(cluster, work, list(enumerate(items)), progress or _quiet, arrived)
        check(graph, out, len(items))
        return out

    return calibrate


def _quiet(done: int, total: int) -> None:
    """Nobody asks how far it is."""


def _items(source: Any) -> Sequence[Any]:
    """What can be sent: samples of a data set, paths, arrays or feeds. Raises CalibrationError."""
    if isinstance(source, Feeds):
        return source.samples
    if not isinstance(source, Sequence | np.ndarray):
        raise CalibrationError(
            tr("samples from a generator cannot be sent to workers"),
            fix=tr("give a folder, an .npz file or a list"),
        )
    return [x.resolve() if isinstance(x, Path) else x for x in source]


def _read(graph: Graph, item: Any) -> dict[str, np.ndarray]:
    """One sample as a feed, by the same code as in one process. Raises LiteError."""
    if not isinstance(item, Sample):
        return feed_of(graph, item)
    with local(item) as here:
        return read_source(Model(graph, metadata=dict(graph.metadata)), here.source)[0]


def _block(digest: str, models: Mapping[str, bytes], items: list[tuple[int, Any]]) -> Calibration:
    """What a worker does with a block. Raises CalibrationError."""
    if digest not in _graphs:
        _graphs.clear()
        _graphs[digest] = pickle.loads(models[digest]), FastRun()
    graph, run = _graphs[digest]

    def feeds() -> Iterator[dict[str, np.ndarray]]:
        for _, item in items:
            yield _read(graph, item)

    return calibrate_block(graph, feeds(), items[0][0], run, activations(graph))
