"""Factors between a normalization and the products that read it: the same function in floats.

W · norm(x) = (W·S) · (S⁻¹·norm(x)),   S⁻¹ in the normalization's scale and offset
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..ir import Graph, Node, Value
from .equalize import EQUALIZED

#: Operators whose parameters, the inputs given here, can hold a factor per channel.
NORMS = {"LayerNormalization": (1, 2), "RMSNormalization": (1,)}


def normalized_products(graph: Graph, chosen: frozenset[str]) -> Iterator[tuple[Node, list[Node]]]:
    """Normalizations with constant parameters that only `chosen` products read, and those."""
    for norm in [n for n in graph.nodes if n.op in NORMS]:
        readers = _products(graph, norm.output, chosen)
        if readers and all(value.const is not None for _, value in _parameters(norm)):
            yield norm, readers


def scale_products(graph: Graph, norm: Node, readers: list[Node], s: np.ndarray) -> None:
    """Divides what the normalization hands on by `s` (columns,) and multiplies the weights of its
    readers, in place. The values between them get names of their own."""
    for index, value in _parameters(norm):
        new = (value.const / s).astype(value.const.dtype)  # type: ignore[operator,union-attr]
        norm.set_input(index, graph.constant(new, graph.unique(f"{value.name}.scaled")))
    for reader in readers:
        weight = reader.inputs[1]
        assert weight is not None and weight.const is not None
        per_column = reader.op == "Gemm" and reader.attrs.get("transB", 0)
        new = (weight.const * (s if per_column else s[:, None])).astype(weight.const.dtype)
        reader.set_input(1, graph.constant(new, graph.unique(f"{weight.name}.scaled")))
    between = [norm.output, *(r.inputs[0] for r in readers)]
    for value in {id(v): v for v in between if v is not None}.values():
        value.name += EQUALIZED


def _parameters(norm: Node) -> list[tuple[int, Value]]:
    return [(i, v) for i in NORMS[norm.op] if (v := norm.input(i)) is not None]


def _products(graph: Graph, value: Value, chosen: frozenset[str]) -> list[Node] | None:
    """The chosen products that read a value, through views that keep its last axis; None when
    anything else reads it."""
    if not value.readers or graph.is_output(value):
        return None
    found: list[Node] = []
    for reader in value.readers:
        alone = [v is value for v in reader.inputs] == [True] + [False] * (len(reader.inputs) - 1)
        if reader.name in chosen and reader.op in ("MatMul", "Gemm") and alone:
            found.append(reader)
            continue
        same = value.shape and reader.output.shape and reader.output.shape[-1] == value.shape[-1]
        below = _products(graph, reader.output, chosen) if reader.op == "Reshape" and same else None
        if below is None:
            return None
        found += below
    return found
