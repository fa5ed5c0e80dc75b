"""Old names of public attributes: they still work, and warn."""

from __future__ import annotations

import warnings
from typing import Any

from lite_messages import tr


def deprecated_name(old: str, new: str) -> property:
    """A property `old` that reads the attribute `new` and raises a DeprecationWarning."""

    def read(owner: Any) -> Any:
        warn_renamed(f"{type(owner).__name__}.{old}", new)
        return getattr(owner, new)

    return property(read, doc=f"Deprecated: use `{new}`.")


def warn_renamed(old: str, new: str, *, calls: int = 1) -> None:
    """Warns that `old` is now called `new`, at the line that used it: `calls` calls above this
    function's caller. Python shows such a warning only where that line is a person's own."""
    text = tr("{old} is deprecated; use {new}", old=old, new=new)
    warnings.warn(text, DeprecationWarning, stacklevel=2 + calls)
