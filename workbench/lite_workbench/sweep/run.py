"""Cells, measured in turns, a group at a time: whatever else the machine does meanwhile slows all
cells of a group alike, and a group is what an interruption costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from lite_engine.errors import LiteError, UsageError
from lite_engine.profile.environment import environment
from lite_engine.settings import MAX_THREADS
from lite_engine.whole_numbers import as_whole
from lite_messages import tr

from ..batches import batch_of
from ..cluster import Cluster, Progress
from ..evaluate import Dataset, Side, evaluate
from . import saved
from .cells import Cell, choices, mark_front
from .energy import Meter
from .group import GROUP, measure_group, measure_on_cluster
from .measure import predictor_of
from .result import Sweep

if TYPE_CHECKING:
    from lite_engine.model_file import Model

    from ..evaluate.results import Metric

#: Bursts of each cell.
ROUNDS = 7
MOST_CELLS = 500


def sweep(
    model: Model,
    *,
    backends: Sequence[str] = ("auto",),
    precisions: Sequence[str] = ("auto",),
    threads: Sequence[int] = (1,),
    batches: Sequence[int] | None = None,
    streams: Sequence[int] = (1,),
    devices: Sequence[str] = ("local",),
    data: Dataset | None = None,
    labels: Sequence[str] | None = None,
    rounds: int = ROUNDS,
    max_ms: float | None = None,
    min_rate: float | None = None,
    resume: str | Path | None = None,
    progress: Progress = lambda done, total: None,
    cluster: Cluster | None = None,
) -> Sweep:
    """Measures every combination; `batches` are the model's own unless given, 1 where it is open.
    With labeled `data` each backend and precision is evaluated,
    too. `resume` names a file that keeps what is finished. `progress` counts combinations, and
    the samples while one of them is evaluated. On a `cluster` samples are evaluated in shards,
    and groups of combinations are measured on one worker of each machine (resource `timing`), or
    on the one that reaches the board. Raises UsageError."""
    _check(threads=threads, batches=batches, streams=streams, rounds=[rounds])
    sizes = batches or (batch_of(model.graph),)
    asked = choices(backends, precisions, threads, sizes, streams, devices)
    if not 0 < len(asked) <= MOST_CELLS:
        raise UsageError(
            tr("expected 1 to {most} combinations, found {n}", most=MOST_CELLS, n=len(asked))
        )
    path = Path(resume) if resume is not None else None
    key = saved.key_of(model.path, asked, data.name + data.metric if data else "")
    known = saved.load(path, key, asked) if path else {}
    cells = [known.get(choice, Cell(choice)) for choice in asked]

    known_metrics: dict[tuple[str, str, str], Metric] = {}

    def keep() -> None:
        if path:
            saved.save(path, key, [asdict(c) for c in cells])

    if cluster is not None and cluster.used:
        waiting = [c for c in cells if c.status == "waiting"]
        _accuracy(waiting, model, data, labels, known_metrics, progress, cluster)
        measure_on_cluster(cluster, model, waiting, rounds, progress, keep)
    else:
        for start in range(0, len(cells), GROUP):
            group = [c for c in cells[start : start + GROUP] if c.status == "waiting"]
            _accuracy(group, model, data, labels, known_metrics, progress, None)
            before = [c for c in cells[:start] if c.status == "measured"]
            measure_group(group, before, model, rounds)
            keep()
            progress(min(start + GROUP, len(cells)), len(cells))
    mark_front(cells)
    notes = []
    if not any(c.energy_mj is not None for c in cells) and (why := Meter().why):
        notes.append(tr("energy was not measured: {why}", why=why))
    return Sweep(model.name, cells, environment(), max_ms, rounds, notes, min_rate)


def _check(**given: Sequence[int] | None) -> None:
    """Raises UsageError for what is not a list of numbers of 1 or more, before anything is timed.
    The number of threads has the limit of a predictor."""
    for name, numbers in given.items():
        if numbers is None:
            continue
        if isinstance(numbers, (str, int)):
            raise UsageError(
                tr("{name} must be a list of whole numbers, got {value!r}", name=name,
                   value=numbers),
                fix=tr("write {name}=[{value}]", name=name, value=numbers),
            )  # fmt: skip
        most = MAX_THREADS if name == "threads" else None
        for value in numbers:
            number = as_whole(value)
            if number is None or number < 1 or (most is not None and number > most):
                raise UsageError(
                    tr("{name} must be whole numbers of 1 or more, got {value!r}", name=name,
                       value=value) if most is None
                    else tr("threads must be between 1 and {max_threads}, got {asked!r}",
                            max_threads=most, asked=value)
                )  # fmt: skip


def _accuracy(
    cells: Sequence[Cell],
    model: Model,
    data: Dataset | None,
    labels: Sequence[str] | None,
    found: dict[tuple[str, str, str], Metric],
    progress: Progress,
    cluster: Cluster | None,
) -> None:
    """The metric of each backend and precision, once: it does not depend on threads, batch or
    streams. Raises UsageError when the data do not fit the model."""
    for cell in cells if data is not None else ():
        key = cell.choice.backend, cell.choice.precision, cell.choice.device
        if key not in found:
            try:
                made = predictor_of(model, cell.choice, reached=cluster is None)
            except LiteError as error:
                cell.status, cell.why = "failed", str(error)
                continue
            assert data is not None
            side = Side("side", made, device=cell.choice.device)
            evaluated = evaluate([side], data, labels=labels, progress=progress, cluster=cluster)
            found[key] = evaluated["side"].main
        main = found[key]
        cell.metric, cell.value, cell.low, cell.high = main.name, main.value, main.low, main.high
        cell.higher_is_better = main.higher_is_better
