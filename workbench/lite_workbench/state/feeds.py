"""The input of a session, which its runs take until another one is set."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..inputs import as_code, feeds_of
from ..recipes import RecipeAnswer, recipe_answers
from ._state import SessionState
from .predictors import predictor
from .versions import model_of


def set_input(state: SessionState, source: Any) -> dict[str, np.ndarray]:
    """See `Session.set_input`. Raises UsageError, ShapeError."""
    state.feeds, state.image = feeds_of(model_of(state), source)
    state.notify("input", source)
    return state.feeds


def input_of(state: SessionState, source: Any = None) -> dict[str, np.ndarray]:
    """Sets `source`; None keeps the input, or sets random numbers where there is none yet."""
    if source is None and state.feeds is not None:
        return state.feeds
    return set_input(state, source)


def recipes(state: SessionState, image: Any, backend: str) -> list[RecipeAnswer]:
    """See `Session.recipes`. Raises LiteError."""
    with state.busy:
        used = predictor(state, backend)
        made = recipe_answers(used.model, used, image)
    state.remember(f"session.recipes({as_code(image)})")
    return made
