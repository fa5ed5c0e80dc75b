"""The numbers behind a row of a comparison of integers with floats, as they were compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .matched import given_by_a, match, reads, real, run_alone, whole_run
from .side import Valued


def compared_values(
    a: Valued, b: Valued, feeds: Mapping[str, Any], value_b: str, *, alone: bool
) -> tuple[np.ndarray, np.ndarray]:
    """What both sides hold where B calls it `value_b`, as real numbers of one shape: of the whole
    runs, or with `alone` B's of its layers on A's values, rounded as B stores them. Raises KeyError
    for a value that A does not have, ShapeError, UsageError."""
    on = match(a, b, feeds, None, alone, ())
    pair = on.pair_of[value_b]
    inputs = reads(on, [pair]) if alone else {}
    of_a = whole_run(on, [pair.name_a, *inputs.values()])
    if alone:
        of_b = run_alone(on, [pair], given_by_a(on, inputs, of_a))
    else:
        of_b = dict(whole_run(on, [value_b], of_b=True))
    return real(on, pair, of_a[pair.name_a], of_b[value_b])


__all__ = ["compared_values"]
