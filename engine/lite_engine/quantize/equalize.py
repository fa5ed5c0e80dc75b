"""Cross-layer equalisation: channel ranges of two layers in a row are made alike.

    conv₂(relu(conv₁(x))) = conv₂·S (relu(S⁻¹·conv₁(x))),   s = √(r₁·r₂) / r₂   per channel

r₁, r₂ are the largest magnitudes of a channel in the first and second weight. The network computes
the same in floats and loses less to weights with one scale. Source: Nagel 2019 §4.1.
"""

from __future__ import annotations

import numpy as np

from ..ir import Graph, Node

#: Factors, of all rounds together, stay within 1/LIMIT … LIMIT: a channel that hardly counts need
#: not become loud.
LIMIT = 1e3
ROUNDS = 8
#: Ends the names of values that hold other numbers than the model's own, up to a factor.
EQUALIZED = ".equalized"


def equalize(graph: Graph, *, rounds: int = ROUNDS) -> list[tuple[str, str]]:
    """Changes the weights of the graph in place; returns the pairs of node names. The values
    between two layers get names of their own, since no other version has their numbers."""
    pairs = [p for n in graph.nodes if (p := _pair(graph, n)) is not None]
    done = {first.name: np.ones(_weight(first).shape[0]) for first, _ in pairs}
    for _ in range(rounds):
        for first, second in pairs:
            done[first.name] = _equalize_pair(first, second, done[first.name])
    for first, second in pairs:
        for value in {id(v): v for v in (first.output, second.inputs[0]) if v}.values():
            value.name += EQUALIZED
    return [(a.name, b.name) for a, b in pairs]


def _pair(graph: Graph, first: Node) -> tuple[Node, Node] | None:
    """Two convolutions with nothing but a ReLU between them and no other reader."""
    if not _constant(first) or first.attrs.get("activation", "") not in ("", "Relu"):
        return None
    second = graph.sole_reader(first.output)
    if second is not None and second.op == "Relu":
        second = graph.sole_reader(second.output)
    if second is None or not _constant(second) or second.inputs[0] is None:
        return None
    group = second.attrs.get("group", 1)
    weight = second.inputs[1]
    assert weight is not None and weight.const is not None
    depthwise = group == weight.const.shape[0] and weight.const.shape[1] == 1
    return (first, second) if group == 1 or depthwise else None


def _constant(node: Node) -> bool:
    """A convolution with a constant weight and bias that nobody else reads."""
    if node.op != "Conv" or node.input(3) is not None:
        return False
    own = [v for v in node.inputs[1:3] if v is not None]
    return all(v.const is not None and len(v.readers) == 1 for v in own)


def _equalize_pair(first: Node, second: Node, before: np.ndarray) -> np.ndarray:
    """`before` holds the factors so far; returns those after this round."""
    w1, w2 = _weight(first), _weight(second)
    axis = 0 if w2.shape[1] == 1 and second.attrs.get("group", 1) > 1 else 1
    r1 = np.abs(w1).max(axis=tuple(range(1, w1.ndim)))
    r2 = np.abs(w2).max(axis=tuple(i for i in range(w2.ndim) if i != axis))
    alive = (r1 > 0) & (r2 > 0)
    s = np.where(alive, np.sqrt(r1 * r2) / np.where(alive, r2, 1), 1.0)
    after = np.clip(before * s, 1 / LIMIT, LIMIT)
    s = after / before  # divides the first layer and multiplies the second
    _set(first, 1, w1 / s.reshape(-1, *[1] * (w1.ndim - 1)))
    bias = first.input(2)
    if bias is not None and bias.const is not None:
        _set(first, 2, bias.const / s)
    _set(second, 1, w2 * s.reshape([-1 if i == axis else 1 for i in range(w2.ndim)]))
    return after


def _weight(node: Node) -> np.ndarray:
    value = node.inputs[1]
    assert value is not None and value.const is not None
    return value.const


def _set(node: Node, index: int, array: np.ndarray) -> None:
    """Copies share constant arrays: the value gets a new one."""
    value = node.inputs[index]
    assert value is not None and value.const is not None
    value.const = array.astype(value.const.dtype)
