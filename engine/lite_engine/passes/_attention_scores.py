"""What lies between the product of queries and keys and the softmax of an attention, and the mask
that its additions make."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node, Shape, Value
from ._attention_operands import HIDES, is_causal
from ._core import infer_new
from ._rewrite import constant_like, static_shape

#: Larger constant biases stay additions of their own.
_MOST_BIAS = 1 << 22


class Refusal(Exception):
    """Why products around a softmax are no attention."""

    def __init__(self, reason: str, where: Node) -> None:
        self.reason, self.where = reason, where


@dataclass
class Scores:
    """What lies between the product of queries and keys and the softmax."""

    nodes: list[Node] = field(default_factory=list)  # from the softmax up
    #: what is added, the scores with it, and by what their sum is multiplied
    biases: list[tuple[Value, Value, float]] = field(default_factory=list)
    scale: float = 1.0
    cap: float = 0.0  # what a hyperbolic tangent of the scores is multiplied by; 0: there is none
    head_scale: np.ndarray | None = None  # a number for each head: (heads, 1, 1)
    #: what is added to scores in another shape, whose rows and keys are the pixels of maps
    maps: list[list[Value]] = field(default_factory=list)


def mask_of(graph: Graph, scores: Scores, product: Node, root: Node) -> tuple[Value | None, bool]:
    """The sum of the biases, of rank 2 to 4 and with a column for each key, and whether rows see
    only the keys up to their own number besides. Before `root`, all are computed. Raises
    Refusal."""
    shape, known = static_shape(product.output), product.output.shape
    if shape is not None and len(shape) > 4:
        known = shape = (int(np.prod(shape[:-3])), *shape[-3:])
    arrays, computed, causal = [], [], False
    for bias, added, scale in scores.biases:
        if bias.const is not None:
            array = bias.const * np.float32(scale)
            there = static_shape(added)
            if there is None and added.shape == known:
                there = shape = _where_it_repeats(array, known or ())
            if there is None or shape is None:
                raise Refusal(tr("the bias needs fixed sizes"), product)
            arrays.append(_like_scores(array, there, shape))
        elif scale != 1.0:
            raise Refusal(tr("the sum of scores and bias is scaled"), product)
        elif added.shape != known or not 2 <= len(bias.shape or ()) <= len(known or ()):
            raise Refusal(tr("a computed bias has another shape than the scores"), product)
        elif not known or None in known or not bias.shape or bias.shape[-1] != known[-1]:
            raise Refusal(tr("a computed bias has no column for each key"), product)
        else:
            computed.append(bias)
    if arrays and any(array.any() for array in arrays):
        total = arrays[0]
        for array in arrays[1:]:
            if np.broadcast(total, array).size > _MOST_BIAS:
                raise Refusal(tr("the bias is too large"), product)
            with np.errstate(over="ignore"):  # hidden twice is hidden
                total = total + array
        if total.size > _MOST_BIAS:
            raise Refusal(tr("the bias is too large"), product)
        # Where gives all keys of such a row one score, whatever they had before.
        replaced = any(
            b.producer is not None and b.producer.op == "Where" for _, b, _ in scores.biases
        )
        if replaced and (total <= HIDES).all(axis=-1).any():
            raise Refusal(tr("the mask hides every key of a row"), product)
        causal = is_causal(total)
        if not causal:
            first = next(b for b, *_ in scores.biases if b.const is not None)
            computed.append(constant_like(graph, total, first, "bias"))
    for terms in scores.maps:
        if shape is None:
            raise Refusal(tr("the bias needs fixed sizes"), product)
        target = graph.constant(np.array(shape, np.int64))
        whole = _added(graph, "Reshape", [_sum(graph, terms, root), target], root)
        computed.append(whole)
    return (_sum(graph, computed, root) if computed else None), causal


def _sum(graph: Graph, values: list[Value], before: Node) -> Value:
    total = values[0]
    for value in values[1:]:
        total = _added(graph, "Add", [total, value], before)
    return total


def _added(graph: Graph, op: str, inputs: list[Value], before: Node) -> Value:
    node = graph.add(op, inputs, before=before)
    infer_new([node])
    return node.output


def _where_it_repeats(bias: np.ndarray, scores: Shape) -> tuple[int, ...] | None:
    """The shape of the scores with 1 for all axes but the keys, whose number is fixed, where the
    bias repeats along the open ones."""
    if not scores or not isinstance(scores[-1], int) or len(scores) > 4:
        return None
    repeats = all(n in (1, size) for n, size in zip(bias.shape[::-1], scores[::-1]))
    return (*[1] * (len(scores) - 1), scores[-1]) if repeats else None


def _like_scores(bias: np.ndarray, there: tuple[int, ...], shape: tuple[int, ...]) -> np.ndarray:
    """A bias that is added to scores of shape `there`, as one for scores of `shape`: whole rows of
    keys, other axes of size 1 where it repeats along them."""
    bias = np.broadcast_to(bias, (*bias.shape[:-1], there[-1])) if bias.ndim else bias
    if there != shape:
        bias = np.broadcast_to(bias, there).reshape(shape)
    while bias.ndim < len(shape):
        bias = bias[None]
    bias = np.broadcast_to(bias, (*bias.shape[:-1], shape[-1]))
    for axis in range(bias.ndim - 1):
        first = bias.take([0], axis)
        if bias.shape[axis] > 1 and (bias == first).all():
            bias = first
    return np.ascontiguousarray(bias, np.float32)
