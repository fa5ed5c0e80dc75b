"""A process is not forked in the middle of another thread's run."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

#: One lock per Predictor. A fork waits for the runs of other threads: in the child nobody would
#: ever end them, and what they had begun to write would be half written.
_turns: weakref.WeakSet[Any] = weakref.WeakSet()
#: Held while the set is read or grows; never while a turn is waited for, because who holds a turn
#: may be about to add another one.
_listing = threading.RLock()
_forking = threading.Lock()
_held: list[Any] = []


def watch(turn: Any) -> None:
    """From now on a fork waits for this lock."""
    with _listing:
        _turns.add(turn)


def _before_fork() -> None:
    _forking.acquire()
    while True:
        _listing.acquire()
        new = [turn for turn in _turns if turn not in _held]
        if not new:
            return  # the child gets the set as it is now
        _listing.release()
        for turn in new:
            turn.acquire()
            _held.append(turn)


def _after_fork() -> None:
    _listing.release()
    while _held:
        _held.pop().release()
    _forking.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )
