"""A model in integers beside one in floats, or in other integers: what both answer matters first,
then the layers.

Each layer in integers rounds to the steps of its range, so every layer differs and none has to be
wrong. What is read from the outputs, and how far these are from those in float, says whether the
integers can be used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal

from ..model_file.precision import is_quantised
from .finding import AnswerDifference
from .matched import Arrays, Matched
from .side import Side, quant_of
from .widened import rounded_apart

#: Reads the outputs of both sides, by their own names, and says what they answer.
Read = Callable[[AnswerDifference, Arrays, Arrays], AnswerDifference]


def answers(
    on: Matched,
    outputs: Mapping[str, Mapping[str, Any]],
    values: tuple[Arrays, Arrays],
    read: Read | None,
) -> AnswerDifference | None:
    """None unless one side holds integers and the other floats or other integers, and where an
    output has no counterpart or values that are not finite. `values` are A's and B's, their outputs
    among them.
    """
    if not (isinstance(on.a, Side) and isinstance(on.b, Side)):
        return None
    in_integers = is_quantised(on.a.graph), is_quantised(on.b.graph)
    apart = in_integers[0] != in_integers[1] or rounded_apart(on.a.graph, on.b.graph)
    if not apart or set(outputs) != set(on.a.output_names):
        return None
    if not all(math.isfinite(d["rel_l2"]) for d in outputs.values()):
        return None
    real = [v.name for v in on.a.graph.outputs
            if quant_of(v) is not None or v.dtype is None or v.dtype.np.kind == "f"]  # fmt: skip
    found = [d["sqnr_db"] for n, d in outputs.items() if n in real and d["sqnr_db"] is not None]
    side: Literal["baseline", "candidate", "both"] = "baseline" if in_integers[0] else "candidate"
    made = AnswerDifference("both" if all(in_integers) else side, min(found, default=None))
    if read is None:
        return made
    own, other = (
        {name: both[name] for name in side.output_names}
        for side, both in zip((on.a, on.b), values, strict=True)
    )
    return read(made, own, other)


__all__ = ["Read", "answers"]
