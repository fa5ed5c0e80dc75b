"""Where the time and the memory of a run go: layers, roofline, memory map, advice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from ._profile import profile
    from .record import LayerTime, Profile

__all__ = ["LayerTime", "Profile", "profile"]

__getattr__ = lazily(__name__, {"LayerTime": "record", "Profile": "record", "profile": "_profile"})
