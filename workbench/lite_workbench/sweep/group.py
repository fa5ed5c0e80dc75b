"""A group of cells, measured in turns: here, or by a worker of a cluster."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lite_engine.errors import LiteError, WriteError
from lite_messages import tr

from ..cluster import Cluster, Progress, Work, run_shards
from ..cluster_resources import TIMING
from ..evaluate.shards import file_of, opened, resource_of
from .cells import Cell, goals
from .measure import Bench

if TYPE_CHECKING:
    from lite_engine.model_file import Model

#: A cell whose latency and throughput are both worse than another's by this factor, and that is no
#: better in memory, energy or metric, is hopeless...
HOPELESS = 2.0
#: ...once it had as many bursts.
FEWEST_ROUNDS = 2
#: Cells that are measured in turns, and whose predictors are in memory together.
GROUP = 8


def measure_on_cluster(
    cluster: Cluster,
    model: Model,
    cells: Sequence[Cell],
    rounds: int,
    progress: Progress,
    keep: Callable[[], None],
) -> None:
    """Groups of cells on the workers that may measure them; `keep` is called after each. Groups
    never share a machine or a board."""
    digest, data = file_of(model)
    shared = digest, list(model.targets), dict(model.metadata), rounds
    for device in dict.fromkeys(c.choice.device for c in cells):
        own = [c for c in cells if c.choice.device == device and c.status == "waiting"]
        resource = resource_of([device]) or TIMING
        work = Work(_measured, shared, {digest: data}, size=GROUP, resource=resource)

        def arrived(number: int, group: list[Cell], own: Sequence[Cell] = own) -> None:
            for cell, made in zip(own[number * GROUP :], group, strict=False):
                cell.__dict__.update(made.__dict__)
            keep()

        run_shards(cluster, work, own, progress, arrived)


def _measured(
    shared: tuple[str, list[str], dict[str, Any], int],
    models: Mapping[str, bytes],
    cells: list[Cell],
) -> list[Cell]:
    """What a worker does with a group."""
    digest, targets, metadata, rounds = shared
    with opened(models[digest], targets, metadata) as model:
        measure_group(cells, [], model, rounds)
    for cell in cells:
        cell.machine = platform.node()
    return cells


def measure_group(cells: Sequence[Cell], before: Sequence[Cell], model: Model, rounds: int) -> None:
    """Rounds over these cells, without those that turn out hopeless, also beside cells that were
    measured `before`."""
    benches = []
    for cell in cells:
        if cell.status != "waiting":
            continue
        try:
            benches.append(Bench(cell, model))
        except WriteError:  # a full disk here is no property of the cell
            raise
        except LiteError as error:
            cell.status, cell.why = "failed", str(error)
    for number in range(rounds):
        active = [b for b in benches if b.cell.status == "waiting"]
        for bench in active:
            bench.burst()
        if number + 1 >= FEWEST_ROUNDS:
            for bench in active:
                _stop_if_hopeless(bench.cell, [*before, *(b.cell for b in active)])
    for bench in benches:
        if bench.cell.status == "waiting":
            bench.cell.status = "measured"


def _stop_if_hopeless(cell: Cell, others: Sequence[Cell]) -> None:
    for other in others:
        if (
            other.status != "stopped"
            and (cell.latency_ms or 0) > HOPELESS * (other.latency_ms or 0)
            and (other.throughput or 0) > HOPELESS * (cell.throughput or 0)
            and all(a >= b for a, b in zip(goals(other)[2:], goals(cell)[2:], strict=True))
        ):
            cell.status = "stopped"
            cell.why = tr("less than half as fast as {choice}, and no better otherwise",
                          choice=other.choice)  # fmt: skip
            return
