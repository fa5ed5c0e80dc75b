"""Undo: versions, targets and overrides as they were before the last changes."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lite_engine.errors import UsageError
from lite_messages import tr

from ._state import SessionState

MOST = 50
#: What a change is put back to; models are shared, not copied.
_COPIED = ("versions", "version", "targets", "precision", "int8_targets")


@dataclass(frozen=True)
class Before:
    """The state before `what`, a line of Python."""

    what: str
    held: dict[str, Any]


@contextmanager
def recorded(state: SessionState) -> Iterator[None]:
    """What the block changes can be undone at once; a block inside of another belongs to it."""
    if state.recording:
        yield
        return
    held, lines = _held(state), len(state.code)
    state.recording = True
    try:
        yield
    finally:
        state.recording = False
        if _held(state) != held:
            what = "; ".join(state.code[lines:])
            state.undoable = [*state.undoable[1 - MOST :], Before(what, held)]
            state.notify("undo", what)


def undo(state: SessionState) -> str:
    """Takes the last change back and returns the line of Python that made it. Raises UsageError."""
    if not state.undoable:
        raise UsageError(tr("there is nothing to undo"))
    *state.undoable, last = state.undoable
    with state.busy:
        for name, value in last.held.items():
            setattr(state, name, value)
    state.remember("session.undo()")
    for what in ("targets", "overrides", "quantization", "versions"):
        state.notify(what, getattr(state, "version" if what == "versions" else what))
    return str(last.what)


def _held(state: SessionState) -> dict[str, Any]:
    overrides = copy.copy(state.overrides)
    overrides.backends, overrides.precisions = dict(overrides.backends), dict(overrides.precisions)
    copied = {name: copy.copy(getattr(state, name)) for name in _COPIED}
    return {**copied, "overrides": overrides, "quantization": state.quantization}
