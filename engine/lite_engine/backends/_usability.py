"""Whether a backend can be used."""

from __future__ import annotations

from typing import NamedTuple


class Usability(NamedTuple):
    """Whether a backend can be used on this machine, why, and how to fix it when not."""

    usable: bool
    reason: str
    fix: str = ""
