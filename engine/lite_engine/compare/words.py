"""What a comparison found, as the sentence of the command line and of `Comparison.verdict`."""

from __future__ import annotations

from .comparison import Comparison
from .finding import Finding

_CAUSES = {
    "errors_add_up": "rounding errors accumulate",
    "steps": "values are rounded to integers, where a difference in the last bit becomes a whole "
    "step",
    "no_counterpart": "the layer that computes it has no counterpart on the other side",
}


def sentence(result: Comparison) -> str:
    """The verdict, without a full stop."""
    found = result.finding
    if found.kind in ("layer_fails", "layer_differs"):
        how = "fails on its own" if found.kind == "layer_fails" else "is the first to differ"
        rounding = "" if found.rounding is None else f" ({found.rounding:.1e} is rounding)"
        return (
            f"{found.layer} ({found.op}) {how}: {_error(result)}, tolerance "
            f"{found.tolerance:.1e}{rounding}; {wrong_side(result)}{_others(found)}"
        )
    if found.kind == "whole_run_fails":
        return (
            f"no layer fails on its own, but {found.layer} ({found.op}) gives different results in "
            f"{result.candidate}'s whole run than on its own: an error in its plan or driver, not "
            "rounding"
        )
    if found.kind == "outputs_differ":
        more = "" if found.cause == "no_counterpart" else f"{_largest(result)}{_largest_own(found)}"
        return (
            f"no layer fails on its own, but output {found.output} differs, {_error(result)}, "
            f"limit {found.tolerance:.1e}: {_CAUSES[found.cause]}{more}"
        )
    if found.kind == "outputs_unmatched":
        return (
            "no layer fails on its own, but not every output has a counterpart: "
            f"{'; '.join(result.unmatched_outputs)}"
        )
    return (
        f"{result.baseline} and {result.candidate} agree{_on_how_many(result)}"
        f"{_largest(result)}{_largest_own(found)}{_ill_conditioned(result)}"
    )


def wrong_side(result: Comparison) -> str:
    """Which side is the wrong one."""
    found = result.finding
    if found.side == "baseline":
        return (
            f"{result.baseline} is the one that is wrong (error against the NumPy reference: "
            f"{found.reference_error:.1e})"
        )
    return f"{result.candidate} is the one that is wrong"


def _others(found: Finding) -> str:
    if not found.also_failing:
        return ""
    more = "layers exceed their" if found.also_failing > 1 else "layer exceeds its"
    return f"; {found.also_failing} more {more} tolerance"


def _error(result: Comparison) -> str:
    """The relative error, or the number of values that are not finite."""
    found = result.finding
    labels = {"baseline": result.baseline, "candidate": result.candidate}
    if found.error is None:
        counts = [f"{count} on {labels[side]}" for side, count in found.not_finite.items()]
        return f"NaN or infinite where the other side is not, {' and '.join(counts)}"
    return f"error {found.error:.1e}"


def _on_how_many(result: Comparison) -> str:
    """The layers compared, and which of them a device ran."""
    count = result.finding.layers
    if not count:
        return ""
    compared = "layer" if count == 1 else "layers"
    ran = f"; {result.ran}" if result.ran else ""
    return f" on all {count} {compared}{ran}" if result.outputs else f" on {count} {compared}{ran}"


def _largest(result: Comparison) -> str:
    """The largest difference of whole runs, and its layer."""
    if not any(x.max_abs for x in result.layers):
        return "; every value is the same"
    largest = result.finding.largest
    if largest is None:
        return "; values differ only by the resolution of their data types"
    return f"; the largest error in a whole run is {largest.error:.1e}, at {largest.layer}"


def _largest_own(found: Finding) -> str:
    """The layer that loses most by its lower precision, where that was measured."""
    own = found.largest_own
    if own is None:
        return ""
    return (
        f"; {own.layer} has the largest error of its own, {own.error:.1e}, "
        "which its precision explains"
    )


def _ill_conditioned(result: Comparison) -> str:
    """The outputs that differ although every layer is right, and the ill-conditioned layer."""
    return "".join(
        f"; output {name} differs by {result.outputs[name]['rel_l2']:.1e} because {layer} "
        "is ill-conditioned and amplifies a difference within the limit"
        for name, layer in result.ill_conditioned.items()
    )


__all__ = ["sentence", "wrong_side"]
