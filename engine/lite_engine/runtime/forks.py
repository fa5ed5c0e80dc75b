"""A process is not forked in the middle of another thread's run."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

#: One lock per Predictor. A fork waits for the runs of other threads: in the child nobody would
#: ever end them, and what they had begun to write would be half written.
turns: weakref.WeakSet[Any] = weakref.WeakSet()
_forking = threading.Lock()
_held: list[Any] = []


def _before_fork() -> None:
    _forking.acquire()
    _held.extend(turns)
    for turn in _held:
        turn.acquire()


def _after_fork() -> None:
    while _held:
        _held.pop().release()
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
