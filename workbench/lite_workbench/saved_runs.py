"""Evaluations and sweeps as saved runs (`lite runs`), and their export to MLflow."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

from lite_engine.errors import LiteError, UsageError, reason_of
from lite_engine.history import History
from lite_engine.runtime import strict_json
from lite_messages import tr

from .evaluate import Evaluation
from .sweep import Sweep

EXPERIMENT = "lite-workbench"
T = TypeVar("T")


def keep_evaluation(made: Evaluation, path: str | Path = "") -> int | None:
    """Saves the metrics and changes, without the samples; returns the number of the run."""
    last = made.sides[-1]
    data = {k: v for k, v in made.to_dict().items() if k not in ("rows", "unreadable")}
    return History().add_document(
        "evaluation", strict_json.dumps({**data, "said": _said(made)}), path=str(path),
        model=made.model, backend=last.backend, precision=last.precision,
        machine=platform.node(), metric=last.main.name, value=last.main.value,
    )  # fmt: skip


def keep_sweep(made: Sweep, path: str | Path = "") -> int | None:
    """Saves every cell; the run is listed under the best one."""
    best = made.best or made.fastest
    if best is None:
        return None
    choice = best.choice
    return History().add_document(
        "sweep", strict_json.dumps({**made.to_dict(), "said": made.sentences}), path=str(path),
        model=made.model, backend=choice.backend, precision=choice.precision,
        threads=choice.threads, device=choice.device, machine=platform.node(),
        median_ms=best.latency_ms or 0.0, metric=best.metric, value=best.value or 0.0,
    )  # fmt: skip


def _said(made: Evaluation) -> list[str]:
    """What `lite runs show` prints."""
    return [f"{s.name}: {', '.join(map(str, s.metrics))}" for s in made.sides] + made.sentences


# ---- MLflow


def check_mlflow(uri: str, experiment: str = EXPERIMENT) -> None:
    """Raises LiteError where `export_mlflow` could not write: known before long work begins."""
    _stored(uri, lambda client: _place(client, experiment))


def export_mlflow(made: Evaluation | Sweep, uri: str, experiment: str = EXPERIMENT) -> list[str]:
    """A run for each side or measured cell, with parameters, metrics and the whole result as an
    artefact, in the tracking store at `uri`; the ids of the runs. Raises LiteError."""

    def log(client: Any) -> list[str]:
        place = _place(client, experiment)
        return [_log(client, place, *part) for part in _parts(made)]

    return _stored(uri, log)


def _place(client: Any, experiment: str) -> str:
    known = client.get_experiment_by_name(experiment)
    return str(known.experiment_id if known else client.create_experiment(experiment))


def _stored(uri: str, work: Callable[[Any], T]) -> T:
    """What `work` gives of a client of the tracking store. Raises LiteError."""
    if find_spec("mlflow") is None:
        raise LiteError(
            tr("--mlflow needs the package mlflow, which is not installed"),
            command="pip install 'lite-workbench[mlflow]'",
        )
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    if "://" not in uri or uri.startswith("file:"):
        os.environ.setdefault("MLFLOW_ALLOW_FILE_STORE", "true")  # it was asked for by name
        uri = uri if uri.startswith("file:") else Path(uri).resolve().as_uri()
    tracking, errors = import_module("mlflow.tracking"), import_module("mlflow.exceptions")
    try:
        return work(tracking.MlflowClient(tracking_uri=uri))
    except (errors.MlflowException, OSError) as error:
        raise UsageError(
            tr("cannot write to MLflow: {reason}", reason=reason_of(error)), where=uri
        ) from None


def _log(
    client: Any, place: str, name: str, values: dict[str, Any], metrics: dict[str, float],
    document: dict[str, Any],
) -> str:  # fmt: skip
    run = client.create_run(place, run_name=name).info.run_id
    for key, value in values.items():
        client.log_param(run, key, value)
    for key, number in metrics.items():
        client.log_metric(run, _NAME.sub("_", key), number)
    client.log_dict(run, document, "result.json")
    client.set_terminated(run)
    return str(run)


#: What MLflow allows in names of metrics.
_NAME = re.compile(r"[^A-Za-z0-9_\-. :/]")
Logged = tuple[str, dict[str, Any], dict[str, float], dict[str, Any]]


def _parts(made: Evaluation | Sweep) -> Iterator[Logged]:
    """(name, parameters, metrics, artefact) of each run."""
    if isinstance(made, Evaluation):
        for side in made.sides:
            values = {"model": made.model, "dataset": made.dataset, "task": made.task,
                      "samples": made.samples, "version": side.version, "backend": side.backend,
                      "precision": side.precision}  # fmt: skip
            metrics: dict[str, float] = {}
            for m in side.metrics:
                metrics |= {m.name: m.value, f"{m.name}.low": m.low, f"{m.name}.high": m.high}
            yield f"{made.model} {side.name}", values, metrics, _plain(made.to_dict())
        return
    for cell in made.cells:
        if cell.status == "measured":
            numbers = {"latency_ms": cell.latency_ms, "samples_per_second": cell.throughput,
                       "memory_bytes": cell.memory_bytes, "energy_mj": cell.energy_mj,
                       cell.metric or "metric": cell.value}  # fmt: skip
            known = {k: float(v) for k, v in numbers.items() if v is not None}
            values = {"model": made.model, **asdict(cell.choice)}
            yield f"{made.model} {cell.choice}", values, known, _plain(asdict(cell))


def _plain(data: dict[str, Any]) -> dict[str, Any]:
    """Without NaN, which JSON has no word for."""
    made: dict[str, Any] = json.loads(strict_json.dumps(data))
    return made
