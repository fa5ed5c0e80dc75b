"""Evaluations and sweeps of a session, which it keeps with the code that repeats them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..answers import Answer
from ..cluster import Cluster
from ..evaluate import Drop, Evaluation, Sample, Side, read_dataset
from ..evaluate import evaluate as evaluate_sides
from ..evaluate.remote import local
from ..recommend import Recommendation
from ..recommend import recommend as recommend_version
from ..saved_runs import keep_evaluation, keep_sweep
from ..sweep import Sweep
from ..sweep import sweep as sweep_model
from ._state import SessionState
from .comparisons import backend_and_version
from .predictors import predictor
from .versions import base_model, model_of


def evaluate(
    state: SessionState,
    data: Any,
    sides: Sequence[str],
    limit: int | None,
    cluster: Cluster,
    *,
    task: str | None,
    images: str | Path | None,
    labels: Sequence[str] | None,
) -> Evaluation:
    """See `Session.evaluate`. Raises UsageError."""
    dataset = read_dataset(data, task=task, images=images)
    with state.busy:
        named = [(name, *backend_and_version(state, name)) for name in sides]
        board = state.board.name if state.board is not None else "local"
        made_of = [(n, predictor(state, b, v), v or state.version) for n, b, v in named]
        used = [Side(n, p, v, board if p.device else "local") for n, p, v in made_of]
        made = evaluate_sides(
            used, dataset, labels=labels, limit=limit, progress=state.progress,
            cluster=cluster,
        )  # fmt: skip
        state.evaluations.append(made)
        keep_evaluation(made, state.path)
    words = [_code(data), repr(list(sides)), *_limits(limit, images)]
    state.remember(f"evaluation = session.evaluate({', '.join(words)})")
    state.notify("evaluation", made)
    return made


def sweep(
    state: SessionState,
    given: dict[str, Any],
    data: Any,
    limit: int | None,
    images: str | Path | None,
    **options: Any,
) -> Sweep:
    """See `Session.sweep`; `given` are the choices, None the default ones. Raises UsageError."""
    given = {k: [v] if isinstance(v, (str, int)) else v for k, v in given.items()}
    dataset = None if data is None else read_dataset(data, images=images).first(limit)
    with state.busy:
        made = sweep_model(
            model_of(state), **given, data=dataset, progress=state.progress, **options
        )
        state.sweeps.append(made)
        keep_sweep(made, state.path)
    listed = {k: list(v) for k, v in given.items() if v is not None}
    chosen = {k: v for k, v in listed.items() if v not in ([1], ["auto"])}
    words = [f"{name}={value!r}" for name, value in chosen.items()]
    words += [f"data={_code(data)}"] if data is not None else []
    words += _limits(limit, images)
    goals = {name: options.get(name) for name in ("max_ms", "min_rate")}
    words += [f"{name}={goal!r}" for name, goal in goals.items() if goal is not None]
    state.remember(f"sweep = session.sweep({', '.join(words)})")
    state.notify("sweep", made)
    return made


def recommend(
    state: SessionState,
    data: Any,
    max_drop: float | Drop,
    limit: int | None = None,
    images: str | Path | None = None,
    **options: Any,
) -> Recommendation:
    """See `Session.recommend`. Raises UsageError, LiteError."""
    dataset = read_dataset(data, images=images).first(limit)
    max_drop = max_drop.of(dataset) if isinstance(max_drop, Drop) else max_drop
    with state.busy:
        made = recommend_version(
            base_model(state), dataset, max_drop=max_drop, progress=state.progress, **options
        )
        state.recommendations.append(made)
    words = [_code(data), repr(max_drop), *_limits(limit, images)]
    words += [f"{name}={value!r}" for name, value in options.items()]
    state.remember(f"recommendation = session.recommend({', '.join(words)})")
    state.notify("recommendation", made)
    return made


def _code(data: Any) -> str:
    """How a data set is written in code: a path as itself, anything else as a name."""
    return repr(str(data)) if isinstance(data, (str, Path)) else "data"


def _limits(limit: int | None, images: str | Path | None) -> list[str]:
    return [
        *([f"limit={limit}"] if limit else []),
        *([f"images={str(images)!r}"] if images else []),
    ]  # fmt: skip


def sample_answers(state: SessionState, made: Evaluation, sample: str) -> list[tuple[str, Answer]]:
    """(side, its answer) to one sample of an evaluation. Raises KeyError for another sample, and
    LiteError."""
    found = []
    with state.busy, local(Sample(sample, made.sources[sample], None)) as here:
        for side in made.sides:
            backend, version = backend_and_version(state, side.name)
            used = Side(side.name, predictor(state, backend, version), side.version)
            assert made.judge is not None, "a session's evaluation was made by one"
            found.append((side.name, made.judge.read(used, here.source).answer))
    return found
