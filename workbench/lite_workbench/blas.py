"""NumPy's products on one thread: BLAS splits them by its threads, and another split rounds
otherwise. What runs in shards must not depend on where it runs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[Any]:
    """While the block lasts. Without threadpoolctl there are no shards (extra `cluster`), and
    nothing changes."""
    if find_spec("threadpoolctl") is None:
        return nullcontext()
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited


@cache
def _controller() -> ThreadpoolController:
    """Looking for the libraries of a process takes some milliseconds."""
    import numpy as np  # noqa: F401  its library is there to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
