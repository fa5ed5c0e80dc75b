"""The int8 version of a session's model, and what is known of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import quantizing
from ..cluster import Cluster
from ..inputs import as_code
from ..names import INT8, MIXED
from ..quantizing import Quantization
from . import undo
from ._state import SessionState
from .versions import base_model, keep


def quantize(
    state: SessionState,
    images: Any,
    method: str,
    keep_float: Sequence[str],
    limit: int | None,
    cluster: Cluster,
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
        )
        state.quantization = made
        keep(state, MIXED if keep_float else INT8, model)
        kept = f", keep_float={list(keep_float)!r}" if keep_float else ""
        most = f", limit={limit}" if limit else ""
        state.remember(f"session.quantize({as_code(images)}, method={method!r}{kept}{most})")
    return made


def explore(state: SessionState, backend: str) -> Quantization:
    """See `Session.explore`. Raises UsageError, BackendUnavailableError."""
    with state.busy:
        made = quantizing.explore(
            state.quantization, base_model(state), state.threads, state.work, backend=backend
        )
    state.remember(f"session.explore({'' if backend == 'auto' else repr(backend)})")
    state.notify("quantization", made)
    return made
