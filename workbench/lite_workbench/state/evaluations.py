"""Evaluations and sweeps of a session, which it keeps with the code that repeats them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..cluster import Cluster
from ..evaluate import Evaluation, Side, read_dataset
from ..evaluate import evaluate as evaluate_sides
from ..recommend import Recommendation
from ..recommend import recommend as recommend_version
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
        used = [
            Side(name, predictor(state, backend, version), version or state.version)
            for name, backend, version in named
        ]
        made = evaluate_sides(
            used, dataset, labels=labels, limit=limit, progress=state.progress,
            cluster=cluster,
        )  # fmt: skip
        state.evaluations.append(made)
    source = repr(str(data)) if isinstance(data, (str, Path)) else "data"
    most = f", limit={limit}" if limit else ""
    state.remember(f"evaluation = session.evaluate({source}, {list(sides)!r}{most})")
    state.notify("evaluation", made)
    return made


def sweep(state: SessionState, given: dict[str, Any], data: Any, **options: Any) -> Sweep:
    """See `Session.sweep`; `given` are the choices. Raises UsageError."""
    dataset = None if data is None else read_dataset(data)
    with state.busy:
        made = sweep_model(
            model_of(state), **given, data=dataset, progress=state.progress, **options
        )
        state.sweeps.append(made)
    chosen = {k: list(v) for k, v in given.items() if tuple(v) not in ((1,), ("auto",))}
    words = [f"{name}={value!r}" for name, value in chosen.items()]
    words += [f"data={str(data)!r}"] if isinstance(data, (str, Path)) else []
    words += [f"max_ms={options['max_ms']!r}"] if options.get("max_ms") is not None else []
    state.remember(f"sweep = session.sweep({', '.join(words)})")
    state.notify("sweep", made)
    return made


def recommend(state: SessionState, data: Any, max_drop: float, **options: Any) -> Recommendation:
    """See `Session.recommend`. Raises UsageError, LiteError."""
    dataset = read_dataset(data)
    with state.busy:
        made = recommend_version(
            base_model(state), dataset, max_drop=max_drop, progress=state.progress, **options
        )
    source = repr(str(data)) if isinstance(data, (str, Path)) else "data"
    words = "".join(f", {name}={value!r}" for name, value in options.items())
    state.remember(f"recommendation = session.recommend({source}, {max_drop!r}{words})")
    return made
