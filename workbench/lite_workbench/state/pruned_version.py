"""The pruned version of a session's model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..inputs import as_code
from ..names import PRUNED
from . import undo
from ._state import SessionState
from .versions import base_model, keep

if TYPE_CHECKING:
    from ..pruning import Pruning


def prune(state: SessionState, images: Any, options: dict[str, Any]) -> Pruning:
    """See `Session.prune`. Raises CalibrationError, UsageError."""
    from lite_engine.prune import PruneOptions

    from ..pruning import prune as make
    from ..pruning import require

    given = dict(options)
    layers, measure = given.pop("keep", ()), given.pop("measure", True)
    force, also = given.pop("force", False), given.pop("also", ())
    with state.busy, undo.recorded(state):
        made, model = make(
            base_model(state), images, PruneOptions(**given), keep=layers, measure=measure,
            also=also, work=state.work,
        )  # fmt: skip
        if not force:
            require(made)
        keep(state, PRUNED, model)
        words = "".join(f", {name}={value!r}" for name, value in options.items())
        state.remember(f"session.prune({as_code(images)}{words})")
    return made
