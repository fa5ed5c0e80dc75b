"""The int8 version of a session's model, and what is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_engine.errors import UsageError
from lite_engine.runtime import Predictor
from lite_messages import tr

from .. import quantizing
from ..cluster import Cluster
from ..evaluate import Side, read_dataset
from ..evaluate import evaluate as evaluate_sides
from ..inputs import as_code
from ..names import INT8, MIXED
from ..quantizing import Quantization
from . import undo
from ._state import SessionState
from .versions import base_model, keep

if TYPE_CHECKING:
    from lite_engine.model_file import Model


def quantize(
    state: SessionState,
    images: Any,
    method: str,
    keep_float: Sequence[str],
    limit: int | None,
    cluster: Cluster,
    *,
    equalize: bool,
    force: bool,
) -> Quantization:
    """See `Session.quantize`. Raises CalibrationError."""
    from ..quantize_shards import calibrator

    with state.busy, undo.recorded(state):
        made, model = quantizing.quantize(
            base_model(state),
            images,
            method,
            keep_float,
            limit,
            state.work,
            calibrator(cluster) if cluster.used else None,
            equalize=equalize,
            force=force,
        )
        state.quantization = made
        keep(state, MIXED if keep_float else INT8, model)
        kept = f", keep_float={list(keep_float)!r}" if keep_float else ""
        most = f", limit={limit}" if limit else ""
        most += ", equalize=False" * (not equalize) + ", force=True" * force
        state.remember(f"session.quantize({as_code(images)}, method={method!r}{kept}{most})")
    return made


def explore(
    state: SessionState, backend: str, data: Any = None, limit: int | None = None
) -> Quantization:
    """See `Session.explore`. Raises UsageError, BackendUnavailableError."""
    judge = None if data is None else _judge(state, backend, data, limit)
    with state.busy:
        made = quantizing.explore(
            state.quantization, base_model(state), state.threads, state.work, backend=backend,
            judge=judge,
        )  # fmt: skip
    words = [] if backend == "auto" else [repr(backend)]
    if data is not None:
        words += [f"data={repr(str(data)) if isinstance(data, (str, Path)) else 'data'}"]
        words += [f"limit={limit}"] if limit else []
    state.remember(f"session.explore({', '.join(words)})")
    state.notify("quantization", made)
    return made


def _judge(state: SessionState, backend: str, data: Any, limit: int | None) -> quantizing.Judge:
    """The task's metric on labeled data. Samples of the file that calibrated are left out as far
    as calibration has read it. Raises UsageError."""
    dataset, before = read_dataset(data), state.quantization
    if before is not None and before.source == str(data):
        seen = before.made.calibration.samples + len(before.made.held)
        if seen >= len(dataset):
            raise UsageError(
                tr(
                    "all {count} samples were used for calibration, none is left to measure "
                    "accuracy", count=len(dataset),
                ),
                fix=tr("pass limit to session.quantize, or other data to session.explore"),
                where=str(data),
            )  # fmt: skip
        dataset = replace(dataset, samples=dataset.samples[seen:])

    def judge(models: Sequence[Model]) -> tuple[str, list[float], int]:
        sides = [
            Side(str(number), Predictor(model, backend, threads=state.threads))
            for number, model in enumerate(models)
        ]
        made = evaluate_sides(sides, dataset, limit=limit, progress=state.work.progress)
        mains = [side.main for side in made.sides]
        if not mains[0].higher_is_better or not mains[0].short.endswith("%"):
            raise UsageError(
                tr(
                    "the metric {metric} is not a percentage where higher is better",
                    metric=mains[0].name,
                ),
                where=dataset.name,
                fix=tr("omit data: the answers are then compared with those of the float model"),
            )
        return mains[0].name, [100 * main.value for main in mains], made.samples

    return judge
