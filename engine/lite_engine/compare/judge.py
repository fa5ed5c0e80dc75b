"""How much a layer may differ before it counts as wrong."""

from __future__ import annotations

import math

import numpy as np

from ..ir import Node
from ..ops import find_op, op_names
from ..quantize.select import WEIGHTED, weight_axis
from .alignment import Pair
from .difference import Difference
from .rounding import SMALLEST, UNIT, one_sided
from .side import quant_of

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
        step = sum(float(np.max(np.abs(q.scale))) for q in quants if np.isfinite(q.scale).all())
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


def floor_of(node: Node | None, precision: str, values: tuple[float, float] = (0, 1)) -> float:
    """|a−b| that says nothing, however small the numbers are: a step of the smallest that the
    precision holds, in fp16 of every partial sum, and the roundings of a part of one. `values` is
    the range of the layer's values: the parts of a softmax are rounded like the largest of them,
    which among many is far below one."""
    op = node.attrs.get("activation") or node.op if node is not None else ""
    step = SMALLEST[precision]
    if precision == "fp16" and node is not None:
        step *= max(1.0, 2 * math.sqrt(_terms(node)))
    if op not in PARTS_OF_ONE:
        return step
    whole = min(1.0, max(map(abs, values))) if op == "Softmax" else 1.0
    return max(step, ROUNDINGS * UNIT[precision] * whole)


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
