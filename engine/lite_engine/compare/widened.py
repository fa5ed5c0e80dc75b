"""Two sides that both hold integers: a layer with the rounding that its own weights have had.

What a side's weights were before they became integers is in no file. Rounded to steps of s they
were off by anything up to ±s/2: as much again, at random, is what the side's own rounding does to a
layer, and independent of what the other side's does.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ir import DType, Graph, Node, QuantParams, Value
from ..model_file.precision import holds_blocks, is_quantised
from ..ops.matmul_nbits import dequantize_nbits
from .side import to_float


def integers_of(graph: Graph) -> frozenset[bytes]:
    """The integers that a graph's weights are."""
    return frozenset(_bytes(v.const) for v in graph.constants() if _is_weight(v))


def rounded_apart(a: Graph, b: Graph) -> bool:
    """Both hold integers, and not the same: of weights, or with other steps of activations."""
    if not (is_quantised(a) and is_quantised(b)):
        return False
    return integers_of(a) != integers_of(b) or _steps_of(a) != _steps_of(b)


def _steps_of(graph: Graph) -> frozenset[bytes]:
    """Constants of the layers that compute in integers: their scales and zero points."""
    inputs = (v for n in graph.nodes if n.op.startswith("Q") for v in n.inputs)
    return frozenset(_bytes(v.const) for v in inputs if v is not None and v.const is not None)


def widen(graph: Graph, other: Graph) -> None:
    """Weights of the layers that are in integers become floats that are off at random by up to half
    a step, or by up to a whole one, for the other side's rounding too, where integers are computed
    with. Those that `other` holds as well, rounded alike, stay. The graph is isolated_graph's."""
    theirs = integers_of(other)
    random = np.random.default_rng(0)
    real: dict[int, Value] = {}
    for node in list(graph.nodes):
        if node.op.startswith("Q") and node.op != "QLookup":
            _move_integers(node, theirs, random)
        integers = node.inputs[1 if holds_blocks(node) else 0] if node.inputs else None
        own = integers is not None and _is_weight(integers) and _bytes(integers.const) not in theirs
        if own and holds_blocks(node):
            _widen_blocks(graph, node, random)
        elif own and _is_of_channels(node):
            made = node.outputs[0]
            w, step = _of_channels(node)
            made_of = Value(f"{made.name}.real", DType.F32, const=_off(w, step, random))
            real[id(made)] = made_of
            graph.nodes.remove(node)
            graph.outputs = [v for v in graph.outputs if v is not made]
    for node in graph.nodes:
        for i, value in enumerate(node.inputs):
            if id(value) in real:
                node.set_input(i, real[id(value)])


def _move_integers(node: Node, theirs: frozenset[bytes], random: np.random.Generator) -> None:
    for value in node.inputs:
        if value is None or value.const is None or not _is_weight(value):
            continue
        if value.const.dtype == np.int8 and _bytes(value.const) not in theirs:
            moved = value.const + np.rint(random.uniform(-1, 1, value.const.shape))
            value.const = np.clip(moved, -127, 127).astype(np.int8)


def _is_weight(value: Value) -> bool:
    w = value.const
    return w is not None and w.dtype.kind in "iu" and w.dtype.itemsize <= 2 and w.ndim > 1


def _bytes(array: np.ndarray | None) -> bytes:
    return b"" if array is None else array.tobytes()


def _off(w: np.ndarray, step: np.ndarray, random: np.random.Generator) -> np.ndarray:
    return (w + step * random.uniform(-0.5, 0.5, w.shape)).astype(np.float32)


def _is_of_channels(node: Node) -> bool:
    """DequantizeLinear of constants, with a scale per channel or one in all."""
    if node.op != "DequantizeLinear" or any(v is not None and v.const is None for v in node.inputs):
        return False
    scale = node.inputs[1]
    return scale is not None and scale.const is not None and scale.const.ndim < 2


def _of_channels(node: Node) -> tuple[np.ndarray, np.ndarray]:
    """The weights that a DequantizeLinear gives, and their steps."""
    q, scale = (v.const for v in node.inputs[:2] if v is not None)
    assert q is not None and scale is not None
    held = node.input(2)
    zero = np.zeros(scale.shape, q.dtype) if held is None or held.const is None else held.const
    axis = node.attrs.get("axis", 1) if scale.ndim else None
    quant = QuantParams(scale, zero, axis)
    return to_float(q, quant), to_float(np.ones_like(q), QuantParams(scale, 0 * zero, axis))


def _widen_blocks(graph: Graph, node: Node, random: np.random.Generator) -> None:
    """A product with packed weights as MatMul and Add, under the same names."""
    a, b, scales, zeros, order, bias = (node.input(i) for i in range(6))
    how = {k: node.attrs.get(k, 4) for k in ("K", "N", "bits", "block_size")}
    held = [None if v is None else v.const for v in (b, scales, zeros, order)]
    if held[0] is None or held[1] is None:
        return
    w = dequantize_nbits(held[0], held[1], held[2], held[3], **how)
    groups = held[1].reshape(how["N"], -1)
    at = np.arange(how["K"]) // how["block_size"] if held[3] is None else held[3][: how["K"]]
    weights = _off(w, np.abs(groups[:, at]), random).T.copy()
    fused: dict[str, Any] = {
        k: node.attrs[k] for k in ("activation", "activation_params") if k in node.attrs
    }
    out = node.outputs[0]
    real = Value(f"{node.name}.real", DType.F32, const=weights)
    product = out if bias is None else Value(f"{node.name}.sum", out.dtype, out.shape)
    steps = [Node("MatMul", [a, real], [product], {} if bias is not None else fused, name=node.name,
                  sources=node.sources)]  # fmt: skip
    if bias is not None:
        steps.append(Node("Add", [product, bias], [out], fused, name=f"{node.name}.bias",
                          sources=node.sources))  # fmt: skip
    at_node = graph.nodes.index(node)
    graph.nodes[at_node : at_node + 1] = steps


__all__ = ["integers_of", "rounded_apart", "widen"]
