"""The two sides of a comparison, matched: which value of one is which of the other, and what a
layer of the candidate gives on given values. In names, a is the baseline and b the candidate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import UsageError
from ..ir import Node, Value, fits
from ..ir.bfloat16 import stored
from .alignment import Pair, align, closure
from .judge import other_integers
from .rounding import UNIT, one_sided
from .side import Side, Valued, quant_of, to_float, to_integer

Arrays = Mapping[str, np.ndarray]


@dataclass
class Tally:
    """The number of runs so far."""

    runs: int = 0


@dataclass(frozen=True, eq=False)
class Matched:
    """Both sides at the sizes of the inputs.

    feeds, feeds_b  the inputs of each side, by its own names
    inputs          A's input → B's
    pairs, pair_of  the values that both have, in order and by B's names
    known           B's value or input → A's
    kernels         B's layer → its kernel
    tolerance       None: each operator's own
    isolated        B's layers also run on their own, on A's values
    detail          layers whose histogram and channel map are wanted
    tally           counts the runs; nothing else here ever changes
    """

    a: Valued
    b: Valued
    feeds: Arrays
    feeds_b: Arrays
    inputs: Mapping[str, str]
    pairs: tuple[Pair, ...]
    pair_of: Mapping[str, Pair]
    known: Mapping[str, str]
    kernels: Mapping[str, str]
    model_name: str
    tolerance: float | None
    isolated: bool
    detail: frozenset[str]
    tally: Tally = field(default_factory=Tally)

    @property
    def coarser(self) -> str:
        """The precision of the side that rounds more."""
        return max(self.a.precision, self.b.precision, key=UNIT.__getitem__)


def match(
    a: Valued, b: Valued, feeds: Mapping[str, Any], tolerance: float | None, isolated: bool,
    detail: Sequence[str],
) -> Matched:  # fmt: skip
    """Raises ShapeError, and UsageError when the sides have nothing in common."""
    own = next(s for s in (a, b) if isinstance(s, Side))
    inputs = _same_inputs(a, b)
    if not isinstance(a, Side):
        feeds = {inputs.get(n, n): x for n, x in feeds.items()}
    checked = own.predictor.check_feeds(feeds)
    back = {name_b: name_a for name_a, name_b in inputs.items()}
    feeds_a = checked if own is a else {back[n]: x for n, x in checked.items()}
    feeds_b = {inputs[n]: x for n, x in feeds_a.items()}
    if own is a and isinstance(b, Side):
        theirs = {v.name: v for v in b.graph.inputs}
        for value in own.graph.inputs:
            other = theirs[inputs[value.name]]
            x = to_float(fitted(feeds_a[value.name], other.shape), quant_of(value))
            feeds_b[other.name] = to_integer(x, other)
    sized_a = a.at(feeds_a) if isinstance(a, Side) else a
    sized_b = b.at(feeds_b) if isinstance(b, Side) else b
    pairs = tuple(align(sized_a, sized_b))
    return Matched(
        sized_a, sized_b, feeds_a, feeds_b, inputs, pairs,
        {p.name_b: p for p in pairs}, {p.name_b: p.name_a for p in pairs} | back,
        _kernels(sized_b, feeds_b),
        own.predictor.model.name, tolerance, isolated and isinstance(b, Side), frozenset(detail),
    )  # fmt: skip


def reads(on: Matched, pairs: Sequence[Pair]) -> dict[str, str]:
    """B's value → A's, for what B's layers of these pairs read."""
    found: dict[str, str] = {}
    for pair in pairs:
        assert pair.node_b is not None
        for node in closure(pair.node_b, on.known):
            for value in node.inputs:
                if value is not None and value.const is None and value.name in on.known:
                    found[value.name] = on.known[value.name]
    return found


def whole_run(on: Matched, names: Sequence[str], *, of_b: bool = False) -> Arrays:
    """These values and the outputs of A's (or B's) whole run, and its inputs."""
    side, feeds = (on.b, on.feeds_b) if of_b else (on.a, on.feeds)
    on.tally.runs += 1
    wanted = list(dict.fromkeys(n for n in names if n not in feeds))
    return {**feeds, **side.values(feeds, wanted)}


def given_by_a(on: Matched, inputs: Mapping[str, str], va: Arrays) -> dict[str, np.ndarray]:
    """A's values as B's layers read them, by B's names. `inputs` is what `reads` returns."""
    if not inputs:
        return {}
    assert isinstance(on.b, Side)
    by_name = {v.name: v for n in on.b.graph.nodes for v in (*n.inputs, *n.outputs) if v}
    return {
        name: on.feeds_b[name]
        if name in on.feeds_b
        else _as_b(on, by_name[name], va[other])
        for name, other in inputs.items()
        if name in by_name
    }  # fmt: skip


def run_alone(on: Matched, pairs: Sequence[Pair], given: Arrays) -> dict[str, np.ndarray]:
    """B's layers of these pairs on given values of B. B's own nodes are used: its kernels and
    fusions."""
    assert isinstance(on.b, Side)
    wanted: dict[int, Node] = {}
    for pair in pairs:
        assert pair.node_b is not None
        nodes = closure(pair.node_b, given)
        if not any(True for n in nodes for _ in n.subgraphs()):
            wanted |= {id(n): n for n in nodes}
    ordered = [n for n in on.b.graph.nodes if id(n) in wanted]
    if not ordered:
        return {}
    on.tally.runs += 1
    return on.b.isolated(ordered, given)


def again(on: Matched, values_b: Sequence[str]) -> tuple[Arrays, Arrays]:
    """These values of B: from its layers alone on B's own values, and, with what they read, from
    the whole run."""
    assert isinstance(on.b, Side)
    pairs = [on.pair_of[name] for name in values_b]
    inputs = reads(on, pairs)
    whole = whole_run(on, [*inputs, *values_b], of_b=True)
    held = {
        v.name: stored(whole[v.name], v.dtype) if v.dtype else whole[v.name]
        for n in on.b.graph.nodes for v in n.outputs if v.name in inputs
    }  # fmt: skip
    return run_alone(on, pairs, {**on.feeds_b, **held}), whole


def real(
    on: Matched, pair: Pair, x: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """A's and B's arrays of a value as numbers that can be compared: real ones where the sides
    hold other integers, with A's channels where B has them."""
    if one_sided(pair) or other_integers(pair):
        quant_a, quant_b = quant_of(pair.value_a), quant_of(pair.value_b)
        if not (pair.value_a and pair.value_b):  # a framework's integers are the file's
            quant_a = quant_b = quant_a or quant_b
        x, y = to_float(x, quant_a), to_float(y, quant_b)
    if isinstance(on.a, Side) != isinstance(on.b, Side):
        x = fitted(x, y.shape)
    return x, y


def _as_b(on: Matched, value: Value, array: np.ndarray) -> np.ndarray:
    """A's array as B's layer reads it: in its order, in integers where B is quantised."""
    pair = on.pair_of[value.name]
    if pair.value_a is None:
        return to_integer(fitted(array, value.shape), value)
    if one_sided(pair) or other_integers(pair):
        return to_integer(to_float(array, quant_of(pair.value_a)), pair.value_b or value)
    return array


def fitted(array: np.ndarray, shape: Sequence[Any] | None) -> np.ndarray:
    """The array with its channels where `shape` has them: our graphs are NCHW inside, TensorFlow's
    tensors NHWC. Unchanged when that does not explain the difference."""
    if shape is None or array.ndim < 3 or len(shape) != array.ndim:
        return array

    for candidate in (array, np.moveaxis(array, -1, 1), np.moveaxis(array, 1, -1)):
        if fits(tuple(shape), candidate.shape):
            return np.ascontiguousarray(candidate)
    return array


def _kernels(side: Valued, feeds: Arrays) -> dict[str, str]:
    if not isinstance(side, Side):
        return {}
    plan = side.predictor.plan({n: x.shape for n, x in feeds.items()})
    return {s.name: s.kernel for s in plan.steps}


def _same_inputs(a: Valued, b: Valued) -> dict[str, str]:
    """A's input → B's: by name, else in order. Raises UsageError when there are not as many."""
    if set(a.input_names) == set(b.input_names):
        return {name: name for name in a.input_names}
    if len(a.input_names) != len(b.input_names):
        raise UsageError(
            tr(
                "{a} has the inputs {ours}, {b} {theirs}: they cannot get the same inputs",
                a=a.label,
                ours=", ".join(a.input_names),
                b=b.label,
                theirs=", ".join(b.input_names),
            )
        )
    return dict(zip(a.input_names, b.input_names, strict=True))
