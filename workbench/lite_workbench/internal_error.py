"""Any exception as a LiteError: what the machine lacks in its words, a defect with its place."""

from __future__ import annotations

import traceback
from pathlib import Path

from lite_engine.errors import LiteError
from lite_messages import tr


def as_ours(error: BaseException) -> LiteError:
    """What, where and the fix of any exception."""
    if isinstance(error, LiteError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return LiteError(str(error) or tr("interrupted"))
    if isinstance(error, MemoryError):
        return LiteError(tr("out of memory"), fix=str(error) or tr("use smaller inputs"))
    if isinstance(error, OSError):  # the machine's: no room in /tmp, no permission
        return LiteError(error.strerror or error, where=error.filename or tr("standard output"))
    return LiteError(
        tr("internal error, {kind}: {error}", kind=type(error).__name__, error=error),
        where=own_place(error),
        fix=tr("report it with the output of LITE_DEBUG=1"),
    )


def own_place(error: BaseException) -> str:
    """The innermost place in our own packages, like `lite_engine/passes/fold_pad.py:31`."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if "lite_" in Path(f.filename).as_posix()]
    if not own:
        return ""
    parts = Path(own[-1].filename).parts
    first = max(i for i, part in enumerate(parts) if part.startswith("lite_"))
    return f"{'/'.join(parts[first:])}:{own[-1].lineno}"
