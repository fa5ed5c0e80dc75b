"""What a comparison found, in the words of the screen: a notice with a layer and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lite_widgets.formats import NAMES, error_text

from .words import plural

if TYPE_CHECKING:
    from lite_engine.compare.comparison import Comparison
    from lite_engine.compare.finding import Finding

_CAUSES = {
    "errors_add_up": "Rounding errors accumulate.",
    "steps": "Values are rounded to integers, where a difference in the last bit becomes a whole "
    "step.",
    "no_counterpart": "The layer that computes it has no counterpart on the other side.",
}


def verdict(comparison: Comparison) -> dict[str, Any]:
    """`lite_widgets.data.Verdict` of a comparison."""
    found = comparison.finding
    a, b = (NAMES.get(name, name) for name in (comparison.baseline, comparison.candidate))
    layer, limit = f"**{found.layer}**", f"(tolerance {error_text(found.tolerance)})"
    if found.kind == "layer_fails" and found.side == "baseline":
        error = f"**{error_text(found.reference_error)}** against the NumPy reference"
        return _failing(f"{a} goes wrong at {layer}: it has an error of {error} {limit}.", found)
    if found.kind == "layer_fails":
        how = f"has an error of {_error(found)}"
        if found.not_finite:
            how = "gives values that are not finite"
        notice = _failing(
            f"{b} goes wrong at {layer}: on the input of {a}, it {how} {limit}.", found
        )
        return {**notice, "actions": [["run_on_a", f"Run this layer on {a}"]]}
    if found.kind == "layer_differs":
        return {
            "kind": "warn", "layer": found.layer,
            "what": f"{b} differs first at {layer}: {_error(found)} {limit}.",
            "detail": "Only accumulated errors are known. A comparison with isolated errors "
            "separates this layer's own error from the error of its input.",
        }  # fmt: skip
    if found.kind == "whole_run_fails":
        return {
            "kind": "error", "layer": found.layer,
            "what": f"{b} goes wrong at {layer}, but only in the whole run.",
            "detail": "On its own, the layer is right: an error in the plan or driver, not "
            "rounding.",
        }  # fmt: skip
    if found.kind == "outputs_differ":
        return {
            "kind": "warn",
            "what": f"No layer fails, but output **{found.output}** differs: {_error(found)} "
            f"(limit {error_text(found.tolerance)}).",
            "detail": f"{_CAUSES[found.cause]} {_largest(found)}".strip(),
        }  # fmt: skip
    if found.kind == "outputs_unmatched":
        return {
            "kind": "warn", "what": "No layer fails, but not every output has a counterpart.",
            "detail": f"{'; '.join(comparison.unmatched_outputs)}.",
        }  # fmt: skip
    ran = f"; {comparison.ran}" if comparison.ran else ""
    count = plural(found.layers, "layer")
    return {"kind": "done", "what": f"{a} and {b} agree on all {count}{ran}.",
            "detail": _largest(found)}  # fmt: skip


def _failing(what: str, found: Finding) -> dict[str, Any]:
    if found.also_failing:
        others = "fail" if found.also_failing > 1 else "fails"
        after = plural(found.after, "layer")
        detail = f"{found.also_failing} of the {after} after it also {others}."
    elif found.after:
        detail = (
            f"The {plural(found.after, 'layer')} after it are correct on correct input; they only "
            "propagate the error."
            if found.after > 1
            else "The layer after it is correct on correct input; it only propagates the error."
        )
    else:
        detail = "It is the last layer."
    return {"kind": "error", "what": what, "detail": detail, "layer": found.layer}


def _error(found: Finding) -> str:
    return "values that are not finite" if found.not_finite else f"**{error_text(found.error)}**"


def _largest(found: Finding) -> str:
    """The layer with the largest error: its own where rounding was measured, else of whole runs."""
    if own := found.largest_own:
        return f"{own.layer} has the largest error of its own, {error_text(own.error)}."
    if largest := found.largest:
        return f"The whole runs differ most at {largest.layer}: {error_text(largest.error)}."
    return "The values are the same, or differ only by the resolution of their data types."
