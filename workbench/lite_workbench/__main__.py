"""`lite`, and `python -m lite_workbench`: Ctrl-C is one line from the first import on."""

from __future__ import annotations

import atexit
import gc
import os
import sys

from lite_messages import tr

#: New objects between two searches for cycles. A large model's are many and live to the end: with
#: Python's own 700 the searches take a fifth of `lite info`.
_OBJECTS = 2_000_000


def main() -> int:
    """Runs the command and returns its exit code."""
    gc.set_threshold(_OBJECTS)
    # What is left goes with the process: the search at its end would take a tenth of `lite info`.
    atexit.register(gc.freeze)
    # NumPy's BLAS lets its threads wait busily for work for some 60 ms, first when it is loaded.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "4")
    try:
        from .cli import main as run
    except KeyboardInterrupt:  # the imports take longer than most verbs
        print(tr("error: interrupted"), file=sys.stderr)
        return 130
    return run()


if __name__ == "__main__":
    raise SystemExit(main())
