"""How far long work is, told to whoever listens in this thread.

    with listening(lambda what, done, total: print(f"{what} {done} of {total}")):
        predictor.run(feeds)

Work deep inside the engine (a backend that compiles kernels) tells it without being handed a
callback through everything above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: (what is done, in words; how many are done; of how many). It may raise to cancel the work.
Listener = Callable[[str, int, int], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """What work in this block tells goes to `listener` alone."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def tell(what: str, done: int, total: int) -> None:
    """Raises what the listener raises."""
    listener = _listener.get()
    if listener is not None:
        listener(what, done, total)
