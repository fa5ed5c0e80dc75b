"""What the module of a format gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from ..ir import Graph


class Importer(Protocol):
    """One format. `options` are what the caller of `load` gave, and `shapes` where they replace
    those of the file."""

    #: Whether given input shapes come before the translation: `open` takes them as `shapes`, where
    #: the sizes in a file, or those that it marks as open, are examples only. Elsewhere they only
    #: fill in what is open.
    SHAPES_ARE_HINTS: bool

    def match(self, path: Path, /) -> bool:
        """Whether the file or folder is of this format. Cheap: reads its start only."""

    def open(self, path: Path, /, **options: Any) -> Graph:
        """Raises ModelFormatError, UnsupportedOperatorError (all operators at once)."""
