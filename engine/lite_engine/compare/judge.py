"""What counts as wrong, and the sentence that says which layer is."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from ..backends.reference import evaluate
from ..ir import Graph, Node
from ..ops import find_op, op_names
from ..quantize.guard import THRESHOLD_DB
from ..quantize.select import WEIGHTED, weight_axis
from .alignment import Pair
from .difference import Difference, difference
from .rounding import SMALLEST, UNIT, one_sided
from .side import Side, Valued, quant_of

if TYPE_CHECKING:
    from .comparison import Comparison, LayerDifference

#: Relative L2 error of a float32 operator that says nothing else (`define_op`).
FLOAT_TOLERANCE = 1e-4
#: A layer in fewer bits loses up to one unit roundoff per input, weight and result, and sums of
#: them cancel: up to this many in all need no proof. What cancels more is measured (`explained`).
ROUNDINGS = 8.0
#: Whole runs against one layer: rounding of a hundred layers (√100), or an exponential at the end.
CARRIED = 10.0
#: Two sides that round integers differently: each is at most half a step off, twice in a fused
#: layer.
STEPS = 2.0
#: Operators whose results are parts of a whole. Implementations round them relative to 1, not to
#: themselves: onnxruntime's Sigmoid is 1e-7 off at any argument, so 100 % off at -20.
PARTS_OF_ONE = op_names(lambda op: op.output_range == (0, 1))


def tolerance_of(pair: Pair, precisions: tuple[str, str], x: np.ndarray) -> float:
    """Relative L2 error that a layer may have by itself, before anything is measured. 0 where only
    one side is quantised: there it always is. `x` is A's array, as real numbers."""
    quants = [q for q in (quant_of(pair.value_a), quant_of(pair.value_b)) if q is not None]
    if one_sided(pair):
        return 0.0
    if other_integers(pair):
        rms = float(np.sqrt(np.mean(np.square(x, dtype=np.float64)))) if x.size else 0.0
        step = sum(float(np.max(q.scale)) for q in quants)
        return STEPS * step / rms if rms else 1.0
    ops = [find_op(n.op) for n in (pair.node_a, pair.node_b) if n is not None]
    own = max((op.tolerance for op in ops if op is not None), default=FLOAT_TOLERANCE)
    return own and own + ROUNDINGS * (max(UNIT[p] for p in precisions) + pair.weights_apart)


def other_integers(pair: Pair) -> bool:
    """Both sides hold integers that were rounded in other ways: another framework's, or with other
    scales."""
    a, b = quant_of(pair.value_a), quant_of(pair.value_b)
    if pair.value_a is None or pair.value_b is None:
        return a is not b
    if a is None or b is None:
        return False
    return not (np.array_equal(a.scale, b.scale) and np.array_equal(a.zero_point, b.zero_point))


def floor_of(node: Node | None, precision: str) -> float:
    """|a−b| that says nothing, however small the numbers are: a step of the smallest that the
    precision holds, in fp16 of every partial sum, and the roundings of a part of one."""
    op = node.attrs.get("activation") or node.op if node is not None else ""
    step = SMALLEST[precision]
    if precision == "fp16" and node is not None:
        step *= max(1.0, 2 * math.sqrt(_terms(node)))
    return max(step, ROUNDINGS * UNIT[precision] if op in PARTS_OF_ONE else 0.0)


def _terms(node: Node) -> int:
    """Products in each sum of a layer with weights. Kernels may add them up in the type that they
    store: below the smallest normal number each sum is off by up to half a step, 1/√12 of one in
    the mean, and 2√terms steps are 7 standard deviations of them all."""
    weight = node.inputs[1] if node.op in WEIGHTED and len(node.inputs) > 1 else None
    if weight is None or weight.const is None:
        return 0
    return int(weight.const.size // max(1, weight.const.shape[weight_axis(node)]))


def within(d: Difference, tolerance: float, floor: float = 0.0, peak: float = 0.0) -> bool:
    """Small in norm and at every single place (ten times the tolerance of the range, or `peak`), or
    nowhere over `floor`; and no NaN or Inf that the other side has not."""
    if d.broken:
        return False
    if d.max_abs <= floor:
        return True
    largest = max(abs(d.range_baseline[0]), abs(d.range_baseline[1]))
    return d.rel_l2 <= tolerance and d.max_abs <= max(10 * tolerance * largest, peak, 1e-12)


def apart(result: Comparison, a: Valued, b: Valued) -> list[str]:
    """The outputs that differ by more than layers that are right explain."""
    limit = result.tolerance or output_limit(result, a, b)
    made: dict[str, Node | None] = {
        v.name: v.producer for s in (b, a) if s.graph is not None for v in s.graph.outputs
    }
    coarser = max(a.precision, b.precision, key=UNIT.__getitem__)
    floor = {n: CARRIED * floor_of(made.get(n), coarser) for n in result.outputs}
    if result.tolerance is not None:
        floor = {}
    return [
        name
        for name, d in result.outputs.items()
        if not within(Difference(**d), limit, floor.get(name, 0.0))
    ]


def judge(result: Comparison, a: Valued, b: Valued, feeds: Mapping[str, np.ndarray]) -> None:
    """Writes first_divergence, agrees and the sentence."""
    bad = [x for x in result.layers if not x.within]
    outputs = [n for n in apart(result, a, b) if n not in result.ill_conditioned]
    result.differing_outputs = outputs
    result.agrees = not (bad or outputs or result.unmatched_outputs)
    if bad:
        first = bad[0]
        wrong = _wrong_side(first, a, b, feeds)
        result.first_divergence = {
            "index": first.index,
            "name": first.name,
            "op": first.op,
            "sources": first.sources,
            "kernel": first.kernel_candidate,
            "wrong_side": wrong,
        }
        result.runs += isinstance(a, Side)
        result.first_divergence["detail"] = first.detail
        figures = first.isolated or asdict(first)
        how = "fails on its own" if first.isolated is not None else "is the first to differ"
        rounding = "" if first.explained is None else f" ({first.explained:.1e} is rounding)"
        more = f"{len(bad) - 1} more layer{'s exceed their' if len(bad) > 2 else ' exceeds its'}"
        others = f"; {more} tolerance" if len(bad) > 1 else ""
        result.verdict = (
            f"{first.name} ({first.op}) {how}: {_error(figures, result)}, tolerance "
            f"{first.tolerance:.1e}{rounding}; {wrong}{others}"
        )
    elif outputs:
        result.verdict = (
            f"no layer fails on its own, but output {outputs[0]} differs, "
            f"{_error(result.outputs[outputs[0]], result)}: "
        )
        if any(outputs[0] in (x.value_baseline, x.value_candidate) for x in result.layers):
            result.verdict += f"rounding errors accumulate{_loses_most(result)}"
        else:
            result.verdict += "the layer that computes it has no counterpart on the other side"
    elif result.unmatched_outputs:
        result.verdict = (
            "no layer fails on its own, but not every output has a counterpart: "
            f"{'; '.join(result.unmatched_outputs)}"
        )
    else:
        result.verdict = (
            f"{result.baseline} and {result.candidate} agree{_on_how_many(result)}"
            f"{_furthest(result)}{_loses_most(result)}{_ill_conditioned(result)}"
        )


def _on_how_many(result: Comparison) -> str:
    """The layers compared, and which of them a device ran."""
    count = len({x.name for x in result.layers})
    if not count:
        return ""
    compared = "layer" if count == 1 else "layers"
    ran = f"; {result.ran}" if result.ran else ""
    return f" on all {count} {compared}{ran}" if result.outputs else f" on {count} {compared}{ran}"


def _furthest(result: Comparison) -> str:
    """The largest difference of whole runs, and its layer."""
    if not any(x.max_abs for x in result.layers):
        return "; every value is the same"
    told = [x for x in result.layers if math.isfinite(x.rel_l2)]
    told = [x for x in told if x.max_abs > CARRIED * x.floor]
    if not told:
        return "; values differ only by the resolution of their data types"
    worst = max(told, key=lambda x: x.rel_l2)
    return f"; the largest error in a whole run is {worst.rel_l2:.1e}, at {worst.name}"


def _error(figures: Mapping[str, Any], result: Comparison) -> str:
    """The relative error, or the number of values that are not finite."""
    counts = (
        (figures["nan_baseline"], result.baseline),
        (figures["nan_candidate"], result.candidate),
    )
    if told := [f"{count} on {label}" for count, label in counts if count]:
        return f"NaN or infinite where the other side is not, {' and '.join(told)}"
    return f"error {figures['rel_l2']:.1e}"


def _loses_most(result: Comparison) -> str:
    """The layer that loses most by its lower precision, where that was measured."""
    rows = [x for x in result.layers if x.explained and x.isolated is not None]
    if not rows:
        return ""
    most = max(rows, key=lambda x: (x.isolated or {})["rel_l2"])
    return (
        f"; {most.name} has the largest error of its own, {(most.isolated or {})['rel_l2']:.1e}, "
        "which its precision explains"
    )


def _ill_conditioned(result: Comparison) -> str:
    """The outputs that differ although every layer is right, and the ill-conditioned layer."""
    return "".join(
        f"; output {name} differs by {result.outputs[name]['rel_l2']:.1e} because {layer} "
        "is ill-conditioned and amplifies a difference within the limit"
        for name, layer in result.ill_conditioned.items()
    )


def output_limit(result: Comparison, a: Valued, b: Valued) -> float:
    """Relative L2 error that outputs of whole runs may have when every layer is right by itself.
    Where values are rounded to steps, a difference in the last bit before becomes a whole step
    after: there as much of the outputs must stay as `lite quantize` demands before it saves."""
    steps = 10 ** (-THRESHOLD_DB / 20)
    graphs = [s.graph for s in (a, b) if s.graph is not None]
    if any(x.quantized for x in result.layers) or any(_rounds_to_steps(g) for g in graphs):
        return steps
    own = [x.isolated["rel_l2"] for x in result.layers if x.isolated is not None and x.within]
    layers = float(np.sqrt(np.sum(np.square(own))))  # independent errors add in energy
    one = FLOAT_TOLERANCE + ROUNDINGS * max(UNIT[a.precision], UNIT[b.precision])
    return min(CARRIED * max(one, layers), steps)


def _rounds_to_steps(graph: Graph) -> bool:
    rounding = ("QuantizeLinear", "DynamicQuantizeLinear")
    return any(n.op in rounding or n.op.startswith("QLinear") for n in graph.nodes)


def _wrong_side(row: LayerDifference, a: Valued, b: Valued, feeds: Mapping[str, np.ndarray]) -> str:
    """The side that differs from the NumPy reference on the baseline's own inputs. Another
    framework is trusted: it has no nodes that we could evaluate."""
    if not isinstance(a, Side):
        return f"{b.label} is the one that is wrong"
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
    if within(mine, row.tolerance, row.floor):
        return f"{b.label} is the one that is wrong"
    return (
        f"{a.label} is the one that is wrong (error against the NumPy reference: {mine.rel_l2:.1e})"
    )
