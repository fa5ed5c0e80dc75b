"""A model's outputs on both sides: which is which, how far they are apart, and how far they may be
when every layer is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node, format_shape
from ..quantize.guard import THRESHOLD_DB
from .comparison import LayerDifference
from .difference import Difference, difference
from .judge import CARRIED, FLOAT_TOLERANCE, ROUNDINGS, floor_of, within
from .matched import Arrays, Matched, fitted
from .rounding import UNIT
from .side import Valued, quant_of, to_float

#: As much of the outputs must stay where values are rounded to steps as `lite quantize` demands.
STEPS_LIMIT = 10 ** (-THRESHOLD_DB / 20)


def compare_outputs(on: Matched, va: Arrays, vb: Arrays) -> tuple[dict[str, Any], list[str]]:
    """Differences of the outputs among the values of two whole runs, and those that the other side
    does not have or has in another shape, one sentence each."""
    graphs = [s.graph for s in (on.a, on.b) if s.graph is not None]
    quant = [{v.name: quant_of(v) for v in g.outputs} for g in graphs]
    real_a = {n: to_float(va[n], quant[0].get(n)) for n in on.a.output_names}
    real_b = {n: to_float(vb[n], quant[-1].get(n)) for n in on.b.output_names}
    other = _same_outputs(real_a, real_b)
    out = {n: asdict(difference(_as_shaped(x, real_b[other[n]]), real_b[other[n]]))
           for n, x in real_a.items() if n in other}  # fmt: skip
    alone = [
        tr("only {side} has {name}, {shape}", side=side.label, name=n, shape=format_shape(x.shape))
        for side, real, known in ((on.a, real_a, other), (on.b, real_b, other.values()))
        for n, x in real.items() if n not in known
    ]  # fmt: skip
    return out, alone


def _same_outputs(a: Arrays, b: Arrays) -> dict[str, str]:
    """A's output → B's: by name, the others in order where the shape is the same."""
    found: dict[str, str] = {}
    for name in [*(n for n in a if n in b), *(n for n in a if n not in b)]:
        left = [n for n in b if n not in found.values() and (n == name or n not in a)]
        for other in [n for n in left if n == name] or left:
            if _as_shaped(a[name], b[other]).shape == b[other].shape:
                found[name] = other
                break
    return found


def _as_shaped(x: np.ndarray, like: np.ndarray) -> np.ndarray:
    """The array with its channels where `like` has them and without the ones that it has not."""
    x = fitted(x, like.shape)
    return x.reshape(like.shape) if np.squeeze(x).shape == np.squeeze(like).shape else x


def differing(
    on: Matched, rows: Sequence[LayerDifference], outputs: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """The outputs that differ by more than the errors of layers that are right add up to."""
    limit = on.tolerance or added_up(rows, on.a, on.b)
    made: dict[str, Node | None] = {
        v.name: v.producer for s in (on.b, on.a) if s.graph is not None for v in s.graph.outputs
    }
    floor = {n: CARRIED * floor_of(made.get(n), on.coarser, d["range_baseline"])
             for n, d in outputs.items()}  # fmt: skip
    if on.tolerance is not None:
        floor = {}
    return [
        name
        for name, d in outputs.items()
        if not within(Difference(**d), limit, floor.get(name, 0.0))
    ]


def added_up(rows: Sequence[LayerDifference], a: Valued, b: Valued) -> float:
    """Relative L2 error that the layers' own errors add up to at the outputs."""
    own = [x.isolated["rel_l2"] for x in rows if x.isolated is not None and x.within]
    layers = float(np.sqrt(np.sum(np.square(own))))  # independent errors add in energy
    one = FLOAT_TOLERANCE + ROUNDINGS * max(UNIT[a.precision], UNIT[b.precision])
    return min(CARRIED * max(one, layers), STEPS_LIMIT)


def output_limit(rows: Sequence[LayerDifference], a: Valued, b: Valued) -> float:
    """Relative L2 error up to which a value of whole runs can be used. Where values are rounded to
    steps, a difference in the last bit before becomes a whole step after, so that errors do not
    just add up."""
    return STEPS_LIMIT if rounds_to_steps(rows, a, b) else added_up(rows, a, b)


def rounds_to_steps(rows: Sequence[LayerDifference], a: Valued, b: Valued) -> bool:
    """Values become integers on the way."""
    graphs = [s.graph for s in (a, b) if s.graph is not None]
    return any(x.quantized for x in rows) or any(_quantizes(g) for g in graphs)


def _quantizes(graph: Graph) -> bool:
    rounding = ("QuantizeLinear", "DynamicQuantizeLinear")
    return any(n.op in rounding or n.op.startswith("QLinear") for n in graph.nodes)


__all__ = ["added_up", "compare_outputs", "differing", "output_limit", "rounds_to_steps"]
