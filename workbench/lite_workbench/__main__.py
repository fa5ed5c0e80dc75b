"""`lite`, and `python -m lite_workbench`: Ctrl-C is one line from the first import on."""

from __future__ import annotations

import sys

from lite_messages import tr


def main() -> int:
    """Runs the command and returns its exit code."""
    try:
        from .cli import main as run
    except KeyboardInterrupt:  # the imports take longer than most verbs
        print(tr("error: interrupted"), file=sys.stderr)
        return 130
    return run()


if __name__ == "__main__":
    raise SystemExit(main())
