"""What counts as wrong, and the sentence that says which layer is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backends.reference import evaluate
from ..ops import find_op
from .alignment import Pair
from .difference import Difference, difference
from .side import Side, Valued, quant_of

if TYPE_CHECKING:
    from .compare import Comparison, LayerDifference

#: Tolerance of a precision, as a multiple of the operator's own float32 tolerance. int8 is another
#: graph: its integer operators have tolerances of their own and its float ones are float32.
PRECISION_FACTOR = {"fp32": 1.0, "fp16": 100.0, "bf16": 400.0, "int8": 1.0}
#: A quantised layer against a float one: 8 bits keep about 2 digits of a layer's range.
INT8_AGAINST_FLOAT = 0.12
#: Integers against another framework's: it may round halves another way.
OTHER_ROUNDING = 0.02
#: Outputs of whole runs, against rounding that adds up along the model (times the factor).
OUTPUT_TOLERANCE = 1e-3


def factor_of(precisions: tuple[str, str]) -> float:
    """By the coarser of two precisions."""
    return max(PRECISION_FACTOR[p] for p in precisions)


def tolerance_of(pair: Pair, precisions: tuple[str, str], *, int8: bool = False) -> float:
    """Relative L2 error that a layer may have by itself. `int8`: one model is quantised and the
    other is not, so that also its float layers read what 8 bits kept."""
    if int8:
        return INT8_AGAINST_FLOAT
    if pair.value_a is None and quant_of(pair.value_b) is not None:
        return OTHER_ROUNDING
    ops = [find_op(n.op) for n in (pair.node_a, pair.node_b) if n is not None]
    own = max((op.tolerance for op in ops if op is not None), default=1e-4)
    return own * factor_of(precisions)


def within(d: Difference, tolerance: float) -> bool:
    """Small in norm and at every single place (ten times the tolerance of the range), and no NaN
    or Inf that the other side has not."""
    if d.broken:
        return False
    largest = max(abs(d.range_a[0]), abs(d.range_a[1]))
    return d.rel_l2 <= tolerance and d.max_abs <= max(10 * tolerance * largest, 1e-12)


def judge(result: Comparison, a: Valued, b: Valued, feeds: Mapping[str, np.ndarray]) -> None:
    """Writes first_divergence, agrees and the sentence."""
    precisions = (a.precision, b.precision)
    limit = result.tolerance or OUTPUT_TOLERANCE * factor_of(precisions)
    if result.tolerance is None and any(x.tolerance >= OTHER_ROUNDING for x in result.layers):
        limit = max(limit, 2 * INT8_AGAINST_FLOAT)  # eight bits of every layer before it
    bad = [x for x in result.layers if not x.within]
    apart = [n for n, d in result.outputs.items() if not within(Difference(**d), limit)]
    result.agrees = not bad and not apart
    if bad:
        first = bad[0]
        wrong = _wrong_side(first, a, b, feeds)
        result.first_divergence = {
            "index": first.index,
            "name": first.name,
            "op": first.op,
            "sources": first.sources,
            "kernel": first.kernel_b,
            "wrong_side": wrong,
        }
        number = (first.isolated or asdict(first))["rel_l2"]
        how = "by itself" if first.isolated is not None else "first"
        others = f", {len(bad) - 1} more layers are over tolerance too" if len(bad) > 1 else ""
        result.verdict = (
            f"{first.name} ({first.op}) is wrong {how}: error {number:.1e}, tolerance "
            f"{first.tolerance:.1e}; {wrong}{others}"
        )
    elif apart:
        result.verdict = (
            f"no layer is wrong by itself, but output {apart[0]} differs by "
            f"{result.outputs[apart[0]]['rel_l2']:.1e}: rounding adds up along the model"
        )
    else:
        worst = max((x.rel_l2 for x in result.layers), default=0.0)
        result.verdict = f"{result.a} and {result.b} agree: largest error {worst:.1e}"


def _wrong_side(row: LayerDifference, a: Valued, b: Valued, feeds: Mapping[str, np.ndarray]) -> str:
    """The NumPy reference on side A's own inputs says which side left it. Another framework is
    trusted: it has no nodes that we could evaluate."""
    if not isinstance(a, Side):
        return f"{b.label} is the wrong side"
    node = a.graph.node(row.name)
    reads = [v.name for v in node.inputs if v is not None and v.const is None]
    out = next(v.name for v in node.outputs)
    values: dict[str, Any] = {
        **feeds, **a.values(feeds, [*(r for r in reads if r not in feeds), out])
    }  # fmt: skip
    given = [
        None if v is None else v.const if v.const is not None else values[v.name]
        for v in node.inputs
    ]
    mine = difference(evaluate(node, given, {})[0], values[out])
    if within(mine, row.tolerance):
        return f"{b.label} is the wrong side"
    return f"{a.label} is the wrong side (it leaves the NumPy reference by {mine.rel_l2:.1e})"
