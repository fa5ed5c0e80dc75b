"""What a comparison found, in the words of the screen: a notice with a layer and what to do."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from lite_engine.compare.words import from_float
from lite_messages import tr, trn
from lite_widgets.formats import NAMES, error_text

if TYPE_CHECKING:
    from lite_engine.compare.comparison import Comparison
    from lite_engine.compare.finding import AnswerDifference, Finding

_CAUSES = {
    "errors_add_up": tr("Rounding errors accumulate."),
    "steps": tr(
        "Values are rounded to integers, where a difference in the last bit becomes a whole step."
    ),
    "no_counterpart": tr("The layer that computes it has no counterpart on the other side."),
}


def verdict(comparison: Comparison) -> dict[str, Any]:
    """`lite_widgets.data.Verdict` of a comparison. Of integers against floats it says first what
    both answer; layers explain it and are no error."""
    if comparison.answer is None:
        return _layers(comparison)
    notice = {
        "kind": "warn" if comparison.needs_attention else "done",
        "what": _answered(comparison, comparison.answer),
        "detail": _explained(comparison, comparison.answer),
    }
    own = comparison.finding.largest_own if comparison.needs_attention else None
    layer = comparison.finding.layer or (own.layer if own else "")
    return {**notice, "layer": layer} if layer else notice


def _answered(comparison: Comparison, answer: AnswerDifference) -> str:
    far = from_float(answer)
    if answer.same is None:
        return tr("**The outputs are {far}.**", far=far)
    if answer.same:
        said = tr("**Same answer, {far}**", far=far)
        return f"{said}: {answer.baseline}." if answer.baseline else f"{said}."
    a, b = (NAMES.get(name, name) for name in (comparison.baseline, comparison.candidate))
    return tr(
        "**Different answers, {far}**: {a} gives {one}, {b} gives {other}.",
        far=far,
        one=answer.baseline or tr("nothing"),
        a=a,
        other=answer.candidate or tr("nothing"),
        b=b,
    )


def _explained(comparison: Comparison, answer: AnswerDifference) -> str:
    """How boxes or masks differ, and what the layers do."""
    found = comparison.finding
    first = f"{answer.detail}." if answer.detail else ""
    if comparison.only_layers_differ:
        layers = trn(
            "{n} of {layers} layers exceeds its tolerance: {layer}, {error}.",
            "{n} of {layers} layers exceed their tolerance, first {layer}: {error}.",
            comparison.over_tolerance,
            layers=found.layers,
            layer=found.layer,
            error=_error(found).strip("*"),
        )
        return f"{first} {layers}".strip()
    said = _layers(comparison)
    return " ".join(filter(None, (first, _plain(said["what"]), said["detail"])))


def _plain(text: str) -> str:
    """Without the marks of bold words."""
    return text.replace("**", "")


def _layers(comparison: Comparison) -> dict[str, Any]:
    """What was found of the layers."""
    found = comparison.finding
    a, b = (NAMES.get(name, name) for name in (comparison.baseline, comparison.candidate))
    layer, limit = (
        f"**{found.layer}**",
        tr("(tolerance {tolerance})", tolerance=error_text(found.tolerance)),
    )
    if found.side == "baseline" and found.reference_error is None:
        return _failing(
            tr("{a} goes wrong at {layer}: its own constants are not finite.", a=a, layer=layer),
            found,
        )
    if found.kind == "layer_fails" and found.side == "baseline":
        wrong_by = found.reference_error
        if wrong_by is None or not math.isfinite(wrong_by):
            what = tr(
                "{a} goes wrong at {layer}: its infinite and NaN values are not those of the "
                "NumPy reference.",
                a=a,
                layer=layer,
            )
            return _failing(what, found)
        error = tr(
            "**{error_text}** against the NumPy reference",
            error_text=error_text(wrong_by),
        )
        return _failing(
            tr(
                "{a} goes wrong at {layer}: it has an error of {error} {limit}.",
                a=a,
                layer=layer,
                error=error,
                limit=limit,
            ),
            found,
        )
    if found.kind == "layer_fails":
        how = tr("has an error of {error}", error=_error(found))
        if found.not_finite:
            how = tr("gives values that are not finite")
        notice = _failing(
            tr(
                "{b} goes wrong at {layer}: on the input of {a}, it {how} {limit}.",
                b=b,
                layer=layer,
                a=a,
                how=how,
                limit=limit,
            ),
            found,
        )
        return {**notice, "actions": [["run_on_a", tr("Run this layer on {a}", a=a)]]}
    if found.kind == "layer_differs":
        return {
            "kind": "warn",
            "layer": found.layer,
            "what": tr(
                "{b} differs first at {layer}: {error} {limit}.",
                b=b,
                layer=layer,
                error=_error(found),
                limit=limit,
            ),
            "detail": tr(
                "Only accumulated errors are known. A comparison with isolated "
                "errors separates this layer's own error from the error of its input."
            ),
        }
    if found.kind == "whole_run_fails":
        return {
            "kind": "error",
            "layer": found.layer,
            "what": tr("{b} goes wrong at {layer}, but only in the whole run.", b=b, layer=layer),
            "detail": tr(
                "On its own, the layer is right: an error in the plan or driver, not rounding."
            ),
        }
    if found.kind == "outputs_differ":
        return {
            "kind": "warn",
            "what": tr(
                "No layer fails, but output **{output}** differs: {error} (limit {error_text}).",
                output=found.output,
                error=_error(found),
                error_text=error_text(found.tolerance),
            ),
            "detail": f"{_CAUSES[found.cause]} {_largest(found)}".strip(),
        }
    if found.kind == "outputs_unmatched":
        return {
            "kind": "warn", "what": tr("No layer fails, but not every output has a counterpart."),
            "detail": f"{'; '.join(comparison.unmatched_outputs)}.",
        }  # fmt: skip
    ran = f"; {comparison.ran}" if comparison.ran else ""
    count = trn("{n} layer", "{n} layers", found.layers)
    return {
        "kind": "done",
        "what": tr("{a} and {b} agree on all {count}{ran}.", a=a, b=b, count=count, ran=ran),
        "detail": _largest(found),
    }


def _failing(what: str, found: Finding) -> dict[str, Any]:
    if found.also_failing:
        after = trn("{n} layer", "{n} layers", found.after)
        detail = trn(
            "{n} of the {after} after it also fails.",
            "{n} of the {after} after it also fail.",
            found.also_failing,
            after=after,
        )
    elif found.after:
        detail = trn(
            "The layer after it is correct on correct input; it only propagates the error.",
            "The {n} layers after it are correct on correct input; they only propagate the error.",
            found.after,
        )
    else:
        detail = tr("It is the last layer.")
    return {"kind": "error", "what": what, "detail": detail, "layer": found.layer}


def _error(found: Finding) -> str:
    return (
        tr("values that are not finite") if found.not_finite else f"**{error_text(found.error)}**"
    )


def _largest(found: Finding) -> str:
    """The layer with the largest error: its own where rounding was measured, else of whole runs."""
    if own := found.largest_own:
        return tr(
            "{layer} has the largest error of its own, {error_text}.",
            layer=own.layer,
            error_text=error_text(own.error),
        )
    if largest := found.largest:
        return tr(
            "The whole runs differ most at {layer}: {error_text}.",
            layer=largest.layer,
            error_text=error_text(largest.error),
        )
    return tr("The values are the same, or differ only by the resolution of their data types.")
