"""The numbers behind a row of a comparison of integers with floats, as they were compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import UsageError
from .matched import given_by_a, match, reads, real, run_alone, whole_run
from .side import Valued


def compared_values(
    a: Valued, b: Valued, feeds: Mapping[str, Any], name: str, *, alone: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """What both sides hold in the value that A or B calls so, as real numbers of one shape: of the
    whole runs, or with `alone` B's of its layers on A's values, rounded as B stores them. Raises
    UsageError for a value that only one side has, ShapeError."""
    on = match(a, b, feeds, None, alone, ())
    pair = next((p for p in on.pairs if name in (p.name_a, p.name_b)), None)
    if pair is None:
        raise UsageError(
            tr("{name} has no counterpart: {a} and {b} compute it in other layers",
               name=name, a=a.label, b=b.label),
            fix=tr("look at one side alone"),
        )  # fmt: skip
    inputs = reads(on, [pair]) if alone else {}
    of_a = whole_run(on, [pair.name_a, *inputs.values()])
    if alone:
        of_b = run_alone(on, [pair], given_by_a(on, inputs, of_a))
    else:
        of_b = dict(whole_run(on, [pair.name_b], of_b=True))
    return real(on, pair, of_a[pair.name_a], of_b[pair.name_b])


__all__ = ["compared_values"]
