"""The Predictors of a session: its versions as they run, with what was changed by hand."""

from __future__ import annotations

from lite_engine.runtime import Predictor, host_target

from ._state import SessionState
from .overrides import PRECISIONS, backends_in
from .versions import model_of


def predictor(
    state: SessionState, backend: str = "auto", version: str | None = None, *, planted: bool = True
) -> Predictor:
    """A Predictor of a version (None: the chosen one) with the overrides and, unless `planted` is
    False, the planted faults. It is kept while its version and its board are in use.

    Raises LiteError.
    """
    model = model_of(state, version)
    device = state.board.device if state.board and backend in state.board.backends else None
    _drop_stale(state)
    moved = {k: b for k, b in backends_in(state, version).items() if b != backend}
    spoilt = state.faults.get(backend, {}) if planted else {}
    faults = {k: v for k, v in spoilt.items() if moved.get(k, "fp32") in PRECISIONS}
    changes = (tuple(moved.items()), tuple(faults.items()))
    key = (id(model), id(device), backend, state.threads, *changes)
    if key not in state.predictors:
        here = host_target()
        plan_names = {k: "cpu" if b == here else b for k, b in moved.items()}
        state.predictors[key] = Predictor(
            model, backend, threads=state.threads, overrides=plan_names, faults=faults,
            device=device,
        )  # fmt: skip
    return state.predictors[key]


def _drop_stale(state: SessionState) -> None:
    """Forgets the Predictors of versions and boards that are no longer there."""
    models = {id(model) for model in state.versions.values()}
    device = state.board.device if state.board else None
    state.predictors = {
        key: made for key, made in state.predictors.items()
        if id(made.model) in models and made.device in (None, device)
    }  # fmt: skip
