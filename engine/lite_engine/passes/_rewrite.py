"""Small tools that several passes share: bypassing a node, per-channel constants, shapes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from lite_messages import tr

from ..ir import Dim, Graph, Node, Value


def bypass(graph: Graph, node: Node, value: Value, nested: Iterable[Graph]) -> str:
    """Readers of the node's output get `value`; the node goes. Returns why not, or "".

    An output of the model keeps its name: the producer of `value` then makes the old Value itself.
    `nested` are `nested_graphs(graph)`, found once for all nodes; they may hand out values, too.
    """
    out = node.output
    if not graph.is_output(out):
        graph.replace_uses(out, value)
        for inner in nested:
            inner.outputs = [value if v is out else v for v in inner.outputs]
    else:
        if value.producer is None or value.producer not in graph.nodes:
            return tr("it connects an input or constant to an output of the model")
        if graph.is_output(value):
            return tr("its input and its output are outputs of the model")
        producer = value.producer
        graph.detach(node)
        graph.replace_uses(value, out)
        for inner in nested:
            inner.outputs = [out if v is value else v for v in inner.outputs]
        producer.outputs = [out if v is value else v for v in producer.outputs]
        out.producer = producer
        out.dtype, out.shape = value.dtype or out.dtype, value.shape or out.shape
        producer.sources = tuple(dict.fromkeys((*producer.sources, *node.sources)))
        return ""
    graph.remove(node)
    if value.producer is not None:
        kept = (*value.producer.sources, *node.sources)
        value.producer.sources = tuple(dict.fromkeys(kept))
    return ""


def rank_of(value: Value) -> int | None:
    return None if value.shape is None else len(value.shape)


def static_shape(value: Value) -> tuple[int, ...] | None:
    """The shape when every dimension is a number."""
    if value.shape is None or not all(isinstance(d, int) for d in value.shape):
        return None
    return tuple(d for d in value.shape if isinstance(d, int))


def known_shape(value: Value | None) -> tuple[Dim, ...] | None:
    """The shape when every dimension is a number or a symbol."""
    if value is None or value.shape is None or None in value.shape:
        return None
    return tuple(value.shape)


def same_shape(a: Value, b: Value) -> bool:
    """Are the shapes known to be equal? Equal symbols count, unknown dimensions do not."""
    return a.shape is not None and a.shape == b.shape and None not in a.shape


def per_channel(
    array: np.ndarray, channels: int, rank: int | None, axis: int = 1
) -> np.ndarray | None:
    """A constant that broadcasts over a rank-`rank` tensor as one number per channel: (channels,).

    None when it has another shape or would change the tensor's rank.
    """
    if array.size == 1 and (rank is None or array.ndim <= rank):
        return np.full(channels, array.ravel()[0], array.dtype)
    if rank is None or array.ndim > rank or array.size != channels:
        return None
    padded = (1,) * (rank - array.ndim) + array.shape
    want = tuple(channels if i == axis else 1 for i in range(rank))
    return array.reshape(channels) if padded == want else None


def product(dims: Sequence[int]) -> int:
    return math.prod(dims)


def constant_like(graph: Graph, array: np.ndarray, like: Value | None, stem: str) -> Value:
    """A new constant named after the one it comes from."""
    name = graph.unique((like.name if like is not None else stem) + "'")
    return graph.constant(np.asarray(array, order="C"), name)  # ascontiguousarray has no rank 0
