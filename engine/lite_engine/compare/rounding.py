"""How much of a layer's error rounding alone explains.

A side that stores numbers in fewer bits differs without being wrong. By how much is measured: the
finer side runs the layer once more on inputs and weights rounded as the coarser side stores them,
and its result is stored as the coarser side would. Clipping to a range is no rounding: what is
rounded and what is not are clipped alike, so a range that is too narrow hides nothing.

Of two sides that both hold integers, the one with activations in floats counts as the finer, and
the baseline where they are alike. Its own weights were rounded too: both roundings are measured
together (`widened`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..ir import Graph, Node, Value
from ..ir.bfloat16 import bf16_to_f32, f32_to_bf16
from ..model_file.precision import computes_in_integers, holds_blocks, is_quantised
from ..quantize.groups import SIZES, Groups, nearest_in_groups
from ..quantize.scheme import clip_weight, shaped_scale, weight_scale
from ..quantize.weight_only import weights_of
from .alignment import Pair, closure
from .difference import difference
from .side import FED, Side, Valued, isolated_graph, quant_of, to_float, to_integer
from .widened import rounded_apart, widen

Feeds = Mapping[str, np.ndarray]
#: Unit roundoff, half the relative distance of neighbours. `int8` models keep float layers in fp32.
UNIT = {"fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8, "int8": 2.0**-24}
#: The step at zero, where rounding is no longer relative; of 8 exponent bits the smallest normal
#: number, since kernels may flush what is below.
SMALLEST = {"fp32": 2.0**-126, "fp16": 2.0**-24, "bf16": 2.0**-126, "int8": 2.0**-126}
#: The other side rounds its weights in its own way and its sums in another order: errors up to this
#: many times the measured ones are still called rounding.
LIKE = 3.0


@dataclass(frozen=True)
class Rounding:
    """What fewer bits do to a layer's value. `rel_l2` is the relative error that rounding explains,
    `max_abs` the largest at one place (of an arg-max at a tie: whole indices), `clipping` the
    relative error that the coarser side's ranges explain. `exact` is A's value without rounding but
    with the clipping, of the layer alone (None where A is the coarser side).
    """

    rel_l2: float
    max_abs: float
    clipping: float
    exact: np.ndarray | None
    value: Value | None

    @property
    def explained(self) -> float:
        """The relative error of both: they are independent, so their energies add up."""
        return math.hypot(self.rel_l2, self.clipping)

    def plus(self, other: Rounding) -> Rounding:
        """With the other side's rounding, which is independent."""
        rel_l2 = math.hypot(self.rel_l2, other.rel_l2)
        return replace(self, rel_l2=rel_l2, max_abs=self.max_abs + other.max_abs)

    def clip(self, array: np.ndarray) -> np.ndarray:
        """The real numbers that the coarser side's range leaves."""
        return _clipped(array, self.value)


def one_sided(pair: Pair) -> bool:
    """Only one side is quantised there. Another framework holds what its file says: the same."""
    if pair.value_a is None or pair.value_b is None:
        return False
    return (quant_of(pair.value_a) is None) != (quant_of(pair.value_b) is None)


def explained(
    pairs: Sequence[Pair], every: Sequence[Pair], a: Valued, b: Valued, feeds: tuple[Feeds, Feeds]
) -> dict[str, Rounding]:
    """A's value → what rounding explains, for those `pairs` that one side stores in fewer bits, or
    whose weights are other integers on each.
    `every` is the whole alignment, `feeds` are A's and B's. Two runs of the finer side."""
    found: dict[str, Rounding] = {}
    if isinstance(a, Side) and isinstance(b, Side):
        either = _in_other_integers(a, b)
        for finer, coarser, is_a in ((a, b, True), (b, a, False)):
            if _keeps_more(finer, coarser) or (is_a and either):
                found |= _explained(pairs, every, finer, coarser, is_a, feeds[0 if is_a else 1])
        if either and computes_in_integers(a.graph):  # what a layer reads has two roundings, too
            other = _explained(pairs, every, b, a, False, feeds[1])
            found = {n: r.plus(other[n]) if n in other else r for n, r in found.items()}
    return found


def _keeps_more(one: Side, other: Side) -> bool:
    """One side stores its layers in more bits than the other."""
    if is_quantised(one.graph) != is_quantised(other.graph):
        return is_quantised(other.graph)
    if computes_in_integers(one.graph) != computes_in_integers(other.graph):
        return computes_in_integers(other.graph)
    return UNIT[one.precision] < UNIT[other.precision]


def _in_other_integers(a: Side, b: Side) -> bool:
    """Neither keeps more of a layer, but both rounded their weights, to other integers."""
    if _keeps_more(a, b) or _keeps_more(b, a):
        return False
    return rounded_apart(a.graph, b.graph)


def _explained(
    pairs: Sequence[Pair],
    every: Sequence[Pair],
    finer: Side,
    coarser: Side,
    is_a: bool,
    feeds: Feeds,
) -> dict[str, Rounding]:
    """Layers of the finer side with and without rounding."""
    across: dict[str, Value | None] = {v.name: w for v, w in _inputs(finer, coarser)}
    across |= {_name(p, is_a): _value(p, not is_a) for p in every}
    nodes: dict[int, Node] = {}
    for pair in pairs:
        own, _ = _nodes(pair, is_a)
        leading = closure(own, across) if own else []
        if not any(True for n in leading for _ in n.subgraphs()):
            nodes |= {id(n): n for n in leading}
    ordered = [n for n in finer.graph.nodes if id(n) in nodes]
    made = {v.name for n in ordered for v in n.outputs}
    pairs = [p for p in pairs if _name(p, is_a) in made and _has_steps(_value(p, not is_a))]
    reads = {v.name for n in ordered for v in n.inputs if v and v.const is None} & set(across)
    wanted = [n for n in {*reads, *(_name(p, is_a) for p in pairs)} if n not in feeds]
    exact = {**feeds, **finer.values(feeds, wanted)}
    clipped = {n: _clipped(exact[n], across[n]) for n in reads}
    if any(clipped[n] is not exact[n] for n in reads):
        graph, given = isolated_graph(ordered, clipped)
        alone: Feeds = finer.predictor.like(graph).run(given)
    else:
        alone = exact
    own_values = {v.name: v for n in ordered for v in n.inputs if v}
    known = {
        n: _short(clipped[n], coarser.precision)
        if _read_as(own_values[n]) is not own_values[n]  # both sides quantize it in layers
        else _as_own(_stored(_real(clipped[n], own_values[n]), across[n], coarser), own_values[n])
        for n in reads
    }
    graph, given = isolated_graph(ordered, known)
    apart = rounded_apart(finer.graph, coarser.graph)
    if apart:
        widen(graph, coarser.graph)
    theirs = {own.name: its for own, its in (_nodes(p, is_a) for p in pairs) if own}
    _round_weights(graph, coarser, theirs, _blocks_of(pairs, is_a, across), across)
    rounded = finer.predictor.like(graph).run(given)
    found = {}
    for pair in pairs:
        name, value, own_value = _name(pair, is_a), _value(pair, not is_a), _value(pair, is_a)
        kept = _clipped(_real(alone[name], own_value), value)
        d = difference(kept, _stored(_real(rounded[name], own_value), value, coarser))
        found[pair.name_a] = Rounding(
            # an overflow is no rounding
            0.0 if d.broken else max(d.rel_l2, _half_step(exact[name], own_value) if apart else 0),
            d.max_abs,
            difference(_real(exact[name], own_value), kept).rel_l2,
            kept if is_a and quant_of(own_value) is None else None,
            value,
        )
    return found


def _has_steps(value: Value | None) -> bool:
    """Whether rounding can explain anything: a scale of 0 or NaN leaves no number."""
    quant = quant_of(_read_as(value))
    return quant is None or bool((np.isfinite(quant.scale) & (quant.scale > 0)).all())


def _name(pair: Pair, is_a: bool) -> str:
    return pair.name_a if is_a else pair.name_b


def _value(pair: Pair, is_a: bool) -> Value | None:
    return pair.value_a if is_a else pair.value_b


def _nodes(pair: Pair, is_a: bool) -> tuple[Node | None, Node | None]:
    return (pair.node_a, pair.node_b) if is_a else (pair.node_b, pair.node_a)


def _inputs(side: Side, other: Side) -> Iterator[tuple[Value, Value]]:
    """Graph inputs of both sides: by name, else by position."""
    by_name = {v.name: v for v in other.graph.inputs}
    if set(by_name) == set(side.input_names):
        return ((v, by_name[v.name]) for v in side.graph.inputs)
    return zip(side.graph.inputs, other.graph.inputs, strict=True)


def _clipped(array: np.ndarray, value: Value | None) -> np.ndarray:
    """The real numbers that a quantised value, or what reads it, keeps of an array: the same array
    when nothing is cut off."""
    value = _read_as(value)
    quant = quant_of(value)
    if quant is None or value is None or value.dtype is None or array.dtype.kind != "f":
        return array
    if value.dtype.np.kind not in "iu":
        return array
    info = np.iinfo(value.dtype.np)
    low, high = (
        to_float(np.full((1,) * array.ndim, x, value.dtype.np), quant) for x in (info.min, info.max)
    )
    if array.size and np.all(array >= low) and np.all(array <= high):
        return array
    return np.clip(array, low, high)


def _stored(array: np.ndarray, value: Value | None, side: Side) -> np.ndarray:
    """The numbers that a side has when it stores this array, or that its layers read."""
    value = _read_as(value)
    quant = quant_of(value)
    if quant is not None and value is not None and array.dtype.kind == "f":
        return to_float(to_integer(array, value), quant)
    return _short(array, side.precision)


def _real(array: np.ndarray, own: Value | None) -> np.ndarray:
    """What the finer side's array stands for."""
    return to_float(array, quant_of(own))


def _half_step(array: np.ndarray, own: Value | None) -> float:
    """Half a step of a result in integers, relative to all of it: no inputs are rounded so that
    they tell on which side of a half the other side's sum is."""
    quant = quant_of(own)
    if quant is None or array.dtype.kind not in "iu" or not array.size:
        return 0.0
    step = np.max(np.abs(quant.scale))
    if not (np.isfinite(step) and step):
        return 0.0
    steps = to_float(array, quant) / step
    rms = min(float(np.sqrt(np.mean(np.square(x, dtype=np.float64)))) for x in (array, steps))
    return 0.5 / rms if rms else 0.0


def _as_own(array: np.ndarray, own: Value) -> np.ndarray:
    """Real numbers as the finer side's layers read them."""
    return to_integer(array, own)


def _read_as(value: Value | None) -> Value | None:
    """The integers that a float value becomes before every layer that reads it."""
    if value is None or quant_of(value) is not None or not value.readers:
        return value
    if all(r.op == "QuantizeLinear" for r in value.readers):
        return value.readers[0].output
    return value


def _short(array: np.ndarray, precision: str) -> np.ndarray:
    if array.dtype != np.float32 or precision not in ("fp16", "bf16"):
        return array
    if precision == "bf16":
        return bf16_to_f32(f32_to_bf16(array))
    with np.errstate(over="ignore"):
        return array.astype(np.float16).astype(np.float32)


def _blocks_of(
    pairs: Sequence[Pair], is_a: bool, across: Mapping[str, Value | None]
) -> dict[str, Node]:
    """Our layer → the one with packed weights that leads to the same value of the other side; of
    several the one with most of its sources."""
    known = {v.name for v in across.values() if v is not None}
    found: dict[str, Node] = {}
    for own, its in (_nodes(p, is_a) for p in pairs):
        packed = [n for n in closure(its, known) if holds_blocks(n)] if its else []
        for node in closure(own, across) if own and packed else ():
            found[node.name] = max(packed, key=lambda n: len({*n.sources} & {*node.sources}))
    return found


def _round_weights(
    graph: Graph,
    side: Side,
    theirs: Mapping[str, Node | None],
    blocks: Mapping[str, Node],
    across: Mapping[str, Value | None],
) -> None:
    """Constants as a side stores them: in the groups of `blocks`, else 8 bits per output channel
    for the weights of a quantised model, times the factors of the channels that they read; except
    where that side's own layer (`theirs`, by our name) has the same floats. The graph is
    isolated_graph's, whose constants are its own."""
    for node in graph.nodes:
        axes = weights_of(node) if is_quantised(side.graph) else {}
        other, packed = theirs.get(node.name), blocks.get(node.name)
        for i, value in enumerate(node.inputs):
            if value is None or value.const is None or value.const.dtype != np.float32:
                continue
            its = other.input(i) if other is not None and other.op == node.op else None
            kept = its is not None and its.const is not None
            if i in axes and value.const.ndim > 1 and not kept:
                axis = axes[i] % value.const.ndim
                if node.op == "Gemm" and node.attrs.get("transB", 0):
                    axis = 0
                if packed is not None:
                    value.const = _in_groups(value.const, axis, packed)
                    continue
                by_channel = _scales_read(node, value.const, axis, across)
                value.const = (_eight_bits(value.const * by_channel, axis) / by_channel).astype(
                    np.float32
                )
            else:
                value.const = _short(value.const, side.precision)


def _scales_read(
    node: Node, w: np.ndarray, axis: int, across: Mapping[str, Value | None]
) -> np.ndarray | float:
    """The scale of each channel that the weights are multiplied with, where it has its own."""
    read = node.inputs[0]
    quant = quant_of(across.get(read.name.removesuffix(FED))) if read is not None else None
    inner = 1 - axis if w.ndim == 2 else 1
    if quant is None or inner == axis or w.shape[inner] != np.size(quant.scale):
        return 1.0
    return quant.scale.reshape([-1 if i == inner else 1 for i in range(w.ndim)])


def _in_groups(w: np.ndarray, axis: int, packed: Node) -> np.ndarray:
    """Weights as a layer with packed ones holds them, rounded to nearest; as they are where they
    are not its matrix."""
    rows, columns, size = (packed.attrs[k] for k in ("N", "K", "block_size"))
    if w.shape[axis] != rows or w.size != rows * columns or size not in SIZES:
        return w
    groups = Groups(size, packed.input(3) is None, packed.attrs.get("bits", 4))
    front = np.moveaxis(w, axis, 0)
    real = nearest_in_groups(front.reshape(rows, columns), groups).real()
    return np.moveaxis(real.reshape(front.shape), 0, axis).copy()


def _eight_bits(w: np.ndarray, axis: int) -> np.ndarray:
    scale = shaped_scale(weight_scale(w, axis), w.ndim, axis)
    return (clip_weight(np.rint(w / scale)) * scale).astype(np.float32)


__all__ = ["LIKE", "SMALLEST", "UNIT", "Rounding", "explained", "one_sided"]
