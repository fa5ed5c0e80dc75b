"""Changes of single layers: overrides, what an override costs, planted faults."""

from __future__ import annotations

from collections.abc import Sequence

from ..changes import Change, measure_change
from . import overrides, undo
from ._state import SessionState
from .feeds import input_of
from .predictors import predictor
from .versions import model_of


def override(
    state: SessionState, layers: str | Sequence[str], backend: str | None, precision: str | None
) -> None:
    """See `Session.override`. Raises UsageError, CalibrationError."""
    names = [layers] if isinstance(layers, str) else layers
    with state.busy, undo.recorded(state):
        overrides.set_layers(state, names, backend, precision)
        args = f", {backend!r}" if backend or not precision else ""
        args += f", precision={precision!r}" if precision else ""
        state.remember(f"session.override({layers!r}{args})")
    state.notify("overrides", dict(state.overrides.backends))


def try_override(
    state: SessionState,
    layers: str | Sequence[str],
    target: str | None,
    backend: str,
    runs: int,
    precision: str | None,
) -> Change:
    """See `Session.try_override`. Raises UsageError, CalibrationError."""
    with state.busy:
        feeds = input_of(state)
        before = predictor(state, backend, planted=False)
        override(state, layers, target, precision)
        after = predictor(state, backend, planted=False)
        return measure_change(before, after, feeds, runs, state.progress)


def plant_fault(state: SessionState, layer: str, kind: str, backend: str) -> None:
    """See `Session.plant_fault`. Raises UsageError."""
    from lite_engine.plan.faults import check_kind

    known = check_kind(kind)
    overrides.layer_of(model_of(state).graph, layer)
    state.faults.setdefault(backend, {})[layer] = known
    state.remember(f"session.plant_fault({layer!r}, {kind!r}, backend={backend!r})")
    state.notify("overrides", dict(state.overrides.backends))
