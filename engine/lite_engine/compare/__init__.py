"""Two ways of running a model, layer by layer: which layer is wrong, and by how much."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from ._compare import bisect, compare
    from .side import Side

__all__ = ["Side", "bisect", "compare"]

__getattr__ = lazily(__name__, {"Side": "side", "bisect": "_compare", "compare": "_compare"})
