"""A small observable: who wants to know is called with what changed. No UI, no dependency."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

Listener = Callable[[str, Any], None]


class Observable:
    """``observe(callback, *what)``; callbacks get ``(what, value)`` on the thread that changed it.

    A callback that raises is not silenced: the one who made the change sees it.
    """

    def __init__(self) -> None:
        self._listeners: list[tuple[Listener, frozenset[str]]] = []

    def observe(self, callback: Listener, *what: str) -> Callable[[], None]:
        """Calls back for the named changes (all when none is named). Returns what ends it."""
        entry = (callback, frozenset(what))
        self._listeners.append(entry)
        return lambda: self._listeners.remove(entry) if entry in self._listeners else None

    def notify(self, what: str, value: Any = None) -> None:
        for callback, wanted in list(self._listeners):
            if not wanted or what in wanted:
                callback(what, value)


class Later:
    """Calls back on the loop of the thread that made it, once nobody has asked for `seconds`.
    Without a loop it never does.

    Anybody may `ask`, on any thread: JupyterLab hands clicks to threads of their own (subshells),
    and a loop that sleeps does not hear of a timer that another thread has set.
    """

    def __init__(self, seconds: float, callback: Callable[[], None]) -> None:
        self._seconds, self._callback = seconds, callback
        self._loop = running_loop()
        self._timer: asyncio.TimerHandle | None = None

    def ask(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._begin, self._loop)

    def _begin(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = loop.call_later(self._seconds, self._callback)


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The loop of this thread: of a kernel's main thread, where widgets are changed."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
