"""From the rows and outputs of a comparison to its finding."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Literal

import numpy as np

from ..ir import Node, node_reads
from .comparison import LayerDifference
from .finding import Cause, Finding, LayerError
from .ill_conditioned import wrong_in_whole_runs
from .judge import CARRIED, FLOAT_TOLERANCE, ROUNDINGS, within
from .matched import Matched
from .outputs import added_up, rounds_to_steps
from .own_values import off
from .rounding import UNIT
from .side import Side


def find(
    on: Matched, rows: Sequence[LayerDifference], outputs: Mapping[str, Mapping[str, Any]],
    differing: Sequence[str], unmatched: Sequence[str],
) -> Finding:  # fmt: skip
    """`differing` are outputs that nothing excuses, `unmatched` those without a counterpart."""
    seen = Finding(
        "agree", layers=len({x.name for x in rows}), largest=_largest(rows),
        largest_own=_largest_own(rows),
    )  # fmt: skip
    bad = [x for x in rows if not x.within]
    if bad:
        figures = bad[0].isolated or asdict(bad[0])
        side, reference_error = _wrong_side(on, bad[0], figures)
        return replace(
            _at(seen, bad[0], rows), kind="layer_fails" if bad[0].isolated else "layer_differs",
            side=side, reference_error=reference_error,
            **_error(figures, bad[0].tolerance), rounding=bad[0].explained,
            also_failing=len(bad) - 1,
        )  # fmt: skip
    if differing:
        row = wrong_in_whole_runs(on, rows) if on.isolated else None
        if row is not None:
            found = _at(seen, row, rows)
            return replace(found, kind="whole_run_fails", side="candidate",
                           **_error(asdict(row), row.tolerance))  # fmt: skip
        return replace(
            seen, kind="outputs_differ", output=differing[0],
            **_error(outputs[differing[0]], on.tolerance or added_up(rows, on.a, on.b)),
            cause=_cause(on, rows, differing[0]),
        )  # fmt: skip
    return replace(seen, kind="outputs_unmatched") if unmatched else seen


def _at(seen: Finding, row: LayerDifference, rows: Sequence[LayerDifference]) -> Finding:
    after = {x.name for x in rows if x.index > row.index} - {row.name}
    return replace(seen, layer=row.name, op=row.op, after=len(after))


def _error(figures: Mapping[str, Any], tolerance: float) -> dict[str, Any]:
    counts = {side: figures[f"nan_{side}"] for side in ("baseline", "candidate")}
    bad = {side: count for side, count in counts.items() if count}
    error = None if bad else figures["rel_l2"]
    alone = error is not None and error <= tolerance
    return {"error": error, "not_finite": bad, "tolerance": tolerance,
            "max_abs": figures["max_abs"] if alone else None}  # fmt: skip


def _cause(on: Matched, rows: Sequence[LayerDifference], output: str) -> Cause:
    if not any(output in (x.value_baseline, x.value_candidate) for x in rows):
        return "no_counterpart"
    return "steps" if rounds_to_steps(rows, on.a, on.b) else "errors_add_up"


def _largest(rows: Sequence[LayerDifference]) -> LayerError | None:
    known = [x for x in rows if math.isfinite(x.rel_l2) and x.max_abs > CARRIED * x.floor]
    worst = max(known, key=lambda x: x.rel_l2, default=None)
    return None if worst is None else LayerError(worst.name, worst.rel_l2)


def _largest_own(rows: Sequence[LayerDifference]) -> LayerError | None:
    own = [(x.isolated["rel_l2"], x.name) for x in rows if x.explained and x.isolated is not None]
    error, name = max(own, default=(0.0, ""), key=lambda x: x[0])
    return LayerError(name, error) if name else None


def _wrong_side(
    on: Matched, row: LayerDifference, figures: Mapping[str, Any]
) -> tuple[Literal["baseline", "candidate"], float | None]:
    """The side that differs from the NumPy reference on the baseline's own inputs, and the
    baseline's error; None where its own constants are not finite, which the reference computes
    with, too. Another framework is trusted: it has no nodes that we could evaluate."""
    if not isinstance(on.a, Side):
        return "candidate", None
    node = on.a.graph.node(row.name)
    if figures["nan_baseline"] > figures["nan_candidate"] and not _has_finite_constants(node):
        return "baseline", None
    mine = off(on, node, row.value_baseline)
    own = FLOAT_TOLERANCE + ROUNDINGS * UNIT[on.a.precision]  # `row`'s is 0 where B is quantized
    if within(mine, max(row.tolerance, own), row.floor):
        return "candidate", None
    return "baseline", mine.rel_l2


def _has_finite_constants(node: Node) -> bool:
    held = (v.const for v in node_reads(node) if v.const is not None)
    return all(np.isfinite(x).all() for x in held if x.dtype.kind == "f")


__all__ = ["find"]
