"""Whole numbers that a caller or a command line gives."""

from __future__ import annotations

import operator
from typing import Any

from lite_messages import tr

from .errors import UsageError

LARGEST = 2**63 - 1


def as_whole(given: Any) -> int | None:
    """A whole number, NumPy's too, as an int; None for all else, True and False among it."""
    try:
        return None if isinstance(given, bool) else operator.index(given)
    except TypeError:
        return None


def checked_whole(given: Any, least: int, said: object = None) -> int:
    """A whole number of at least that much. Raises UsageError with what was `said` for it."""
    number = as_whole(given)
    if number is not None and least <= number <= LARGEST:
        return number
    bounds = (
        tr("between {least} and {largest}", least=least, largest=LARGEST)
        if number is not None and number > LARGEST
        else tr("of {least} or more", least=least)
    )
    text = given if said is None else said
    raise UsageError(tr("{text!r} is not a whole number {bounds}", text=text, bounds=bounds))
