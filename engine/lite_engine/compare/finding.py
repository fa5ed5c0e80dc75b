"""What a comparison found, as data. `words.py` says it in a sentence, the Workbench in its own."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Kind = Literal[
    "agree", "layer_fails", "layer_differs", "whole_run_fails", "outputs_differ",
    "outputs_unmatched",
]  # fmt: skip
Cause = Literal["", "errors_add_up", "steps", "no_counterpart"]


@dataclass(frozen=True)
class LayerError:
    """A layer and a relative L2 error."""

    layer: str
    error: float


@dataclass(frozen=True)
class Finding:
    """What a comparison found.

    kind             "agree";
                     "layer_fails": a layer is wrong on the baseline's inputs;
                     "layer_differs": a layer differs in whole runs, and none was run on its own;
                     "whole_run_fails": a layer gives other results in the whole run than alone;
                     "outputs_differ": no layer fails, but an output differs;
                     "outputs_unmatched": no layer fails, but an output has no counterpart
    layer, op        the first such layer
    output           the first such output
    side             which side is wrong there, where that is known
    error            relative L2, None where values are not finite on one side only
    not_finite       {"baseline" or "candidate": number of such values}
    max_abs          the largest difference of an element, where that is too large and the error is
                     not
    tolerance        what the error was held against
    rounding         the error that rounding explains, where that was measured
    reference_error  the baseline's error against the NumPy reference, where `side` is "baseline";
                     None where the layer's own constants are not finite
    also_failing     how many more layers exceed their tolerance
    after            how many layers come after it
    layers           how many were compared
    cause            of "outputs_differ": "errors_add_up", "steps" (values are rounded to integers,
                     where a difference in the last bit becomes a whole step), "no_counterpart"
                     (of the layer that computes the output)
    largest          the largest error in whole runs that means anything
    largest_own      the largest error of a layer on its own that its precision explains
    """

    kind: Kind
    layer: str = ""
    op: str = ""
    output: str = ""
    side: Literal["", "baseline", "candidate"] = ""
    error: float | None = None
    not_finite: dict[str, int] = field(default_factory=dict)
    max_abs: float | None = None
    tolerance: float | None = None
    rounding: float | None = None
    reference_error: float | None = None
    also_failing: int = 0
    after: int = 0
    layers: int = 0
    cause: Cause = ""
    largest: LayerError | None = None
    largest_own: LayerError | None = None

    @property
    def exit_code(self) -> int:
        """0 when the sides agree, 1 when something is wrong, 3 when nothing is, but the outputs
        differ."""
        return {"agree": 0, "outputs_differ": 3, "outputs_unmatched": 3}.get(self.kind, 1)


@dataclass(frozen=True)
class AnswerDifference:
    """What both sides answer, where one holds integers and the other floats or other integers.

    integers   the side that holds integers, or "both"
    sqnr_db    the smallest SQNR of an output, None where no value differs
    same       the answers are the same; None where the outputs have no reading that could be
    baseline, candidate   the answers in words
    detail     how boxes or masks differ, or why an answer could not be read; a sentence without a
               full stop
    """

    integers: Literal["baseline", "candidate", "both"]
    sqnr_db: float | None
    same: bool | None = None
    baseline: str = ""
    candidate: str = ""
    detail: str = ""


__all__ = ["AnswerDifference", "Finding", "LayerError"]
