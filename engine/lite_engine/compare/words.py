"""What a comparison found, as the sentence of the command line and of `Comparison.verdict`."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from lite_messages import tr, trn

from .comparison import Comparison
from .finding import AnswerDifference, Finding

_CAUSES = {
    "errors_add_up": tr("rounding errors accumulate"),
    "steps": tr(
        "values are rounded to integers, where a difference in the last bit becomes a whole step"
    ),
    "no_counterpart": tr("the layer that computes it has no counterpart on the other side"),
}


def called(side: str) -> str:
    """A side as people call it."""
    return re.sub(r"^opencl\b", "OpenCL", side)


def sentence(result: Comparison) -> str:
    """The verdict, without a full stop."""
    sides = called(result.baseline), called(result.candidate)
    result = replace(result, baseline=sides[0], candidate=sides[1])
    if result.answer is None:
        return _layers(result)
    return f"{_answers(result.answer)}; {_over_tolerance(result) or _layers(result)}"


def _answers(answer: AnswerDifference) -> str:
    """What both sides answer, before what the layers do."""
    far = from_float(answer)
    if answer.same is None:
        said = tr("the outputs are {far}", far=far)
        return f"{said}, {answer.detail}" if answer.detail else said
    if answer.same:
        said = tr("same answer, {far}", far=far)
        return f"{said} ({answer.baseline})" if answer.baseline else said
    return tr(
        "different answers, {far} ({baseline} and {candidate})",
        far=far,
        baseline=answer.baseline or tr("nothing"),
        candidate=answer.candidate or tr("nothing"),
    )


def from_float(answer: AnswerDifference) -> str:
    """How far the outputs in integers are from those in floats, or in other integers."""
    if answer.integers == "both":
        if answer.sqnr_db is None:
            return tr("equal on both sides")
        return tr("{sqnr_db:.1f} dB apart", sqnr_db=answer.sqnr_db)
    if answer.sqnr_db is None:
        return tr("equal to float")
    return tr("{sqnr_db:.1f} dB from float", sqnr_db=answer.sqnr_db)


def _over_tolerance(result: Comparison) -> str:
    """Layers over a tolerance, as an explanation: the answer is the same in spite of them."""
    found = result.finding
    if not result.only_layers_differ:
        return ""
    return trn(
        "{n} of {layers} layers exceeds its tolerance: {layer} ({op}), {error}, tolerance "
        "{tolerance:.1e}",
        "{n} of {layers} layers exceed their tolerance, first {layer} ({op}), {error}, tolerance "
        "{tolerance:.1e}",
        result.over_tolerance,
        layers=found.layers,
        layer=found.layer,
        op=found.op,
        error=_error(result),
        tolerance=found.tolerance,
    )


def _layers(result: Comparison) -> str:
    found = result.finding
    if found.kind in ("layer_fails", "layer_differs"):
        how = (
            tr("fails on its own") if found.kind == "layer_fails" else tr("is the first to differ")
        )
        rounding = (
            ""
            if found.rounding is None
            else tr(" ({rounding:.1e} is rounding)", rounding=found.rounding)
        )
        return tr(
            "{layer} ({op}) {how}: {error}, tolerance {tolerance:.1e}{rounding}; {wrong}{others}",
            layer=found.layer,
            op=found.op,
            how=how,
            error=_error(result),
            tolerance=found.tolerance,
            rounding=rounding,
            wrong=wrong_side(result),
            others=_others(found),
        )
    if found.kind == "whole_run_fails":
        return tr(
            "no layer fails on its own, but {layer} ({op}) gives different "
            "results in {candidate}'s whole run than on its own: an error in its "
            "plan or driver, not rounding",
            layer=found.layer,
            op=found.op,
            candidate=result.candidate,
        )
    if found.kind == "outputs_differ":
        more = "" if found.cause == "no_counterpart" else f"{_largest(result)}{_largest_own(found)}"
        return tr(
            "no layer fails on its own, but output {output} differs, {error}, "
            "limit {tolerance:.1e}: {cause}{more}",
            output=found.output,
            error=_error(result),
            tolerance=found.tolerance,
            cause=_CAUSES[found.cause],
            more=more,
        )
    if found.kind == "outputs_unmatched":
        return tr(
            "no layer fails on its own, but not every output has a counterpart: "
            "{unmatched_outputs}",
            unmatched_outputs="; ".join(result.unmatched_outputs),
        )
    return (
        tr("{baseline} and {candidate} agree", baseline=result.baseline, candidate=result.candidate)
        + f"{_on_how_many(result)}{_largest(result)}{_largest_own(found)}"
        + _ill_conditioned(result)
    )


def wrong_side(result: Comparison) -> str:
    """Which side is the wrong one."""
    found = result.finding
    if found.side == "baseline" and found.reference_error is None:
        return tr("{baseline} is the one that is wrong", baseline=result.baseline)
    if found.side == "baseline":
        return tr(
            "{baseline} is the one that is wrong (error against the NumPy "
            "reference: {reference_error:.1e})",
            baseline=result.baseline,
            reference_error=found.reference_error,
        )
    return tr("{candidate} is the one that is wrong", candidate=result.candidate)


def _others(found: Finding) -> str:
    if not found.also_failing:
        return ""
    return trn(
        "; {n} more layer exceeds its tolerance",
        "; {n} more layers exceed their tolerance",
        found.also_failing,
    )


def _error(result: Comparison) -> str:
    """The relative error, or the number of values that are not finite."""
    found = result.finding
    labels = {"baseline": result.baseline, "candidate": result.candidate}
    if found.error is None:
        counts = [
            tr("{count} on {side}", count=count, side=labels[side])
            for side, count in found.not_finite.items()
        ]
        return tr(
            "NaN or infinite where the other side is not, {counts}",
            counts=tr(" and ").join(counts),
        )
    if found.max_abs is not None:
        return tr(
            "error {error:.1e}, but {max_abs:.1e} in one element",
            error=found.error,
            max_abs=found.max_abs,
        )
    return tr("error {error:.1e}", error=found.error)


def _on_how_many(result: Comparison) -> str:
    """The layers compared, and which of them a device ran."""
    count = result.finding.layers
    if not count:
        return ""
    ran = f"; {result.ran}" if result.ran else ""
    if result.outputs:
        return trn(" on all {n} layer", " on all {n} layers", count) + ran
    return trn(" on {n} layer", " on {n} layers", count) + ran


def _largest(result: Comparison) -> str:
    """The largest difference of whole runs, and its layer."""
    if not any(x.rel_l2 or x.max_abs for x in result.layers):
        return tr("; every value is the same")
    largest = result.finding.largest
    if largest is None and any(not math.isfinite(x.rel_l2) for x in result.layers):
        return ""
    if largest is None:
        return tr("; values differ only by the resolution of their data types")
    return tr(
        "; the largest error in a whole run is {error:.1e}, at {layer}",
        error=largest.error,
        layer=largest.layer,
    )


def _largest_own(found: Finding) -> str:
    """The layer that loses most by its lower precision, where that was measured."""
    own = found.largest_own
    if own is None:
        return ""
    return tr(
        "; {layer} has the largest error of its own, {error:.1e}, which its precision explains",
        layer=own.layer,
        error=own.error,
    )


def _ill_conditioned(result: Comparison) -> str:
    """The outputs that differ although every layer is right, and the ill-conditioned layer."""
    return "".join(
        tr(
            "; output {name} differs by {error:.1e} because {layer} is "
            "ill-conditioned and amplifies a difference within the limit",
            name=name,
            error=result.outputs[name]["rel_l2"],
            layer=layer,
        )
        for name, layer in result.ill_conditioned.items()
    )


__all__ = ["from_float", "sentence", "wrong_side"]
