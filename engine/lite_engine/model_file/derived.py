"""Weights that a program needs as float32 and a file keeps as integers.

A weight-only model holds DequantizeLinear over constant integers. The planner folds them, so a
program asks for float32 weights; instead of a second copy the file says how to make them:

    WDERIVE   rows of u32 weight, data, scales, width; u64 outer, channels, inner
              weight[o, c, i] = integer[o, c, i] · scale[c]   (lite_derived.cc of the runtime)
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

import numpy as np

from ..ir import Graph, Node
from ..ops import run_node
from ..ops.quantize import stored_integers
from ..plan.program import WeightTable

_ROW = struct.Struct("<4I3Q")


@dataclass(frozen=True)
class _Recipe:
    integers: np.ndarray
    scales: np.ndarray
    outer: int
    channels: int
    inner: int


def recipes(graph: Graph) -> list[tuple[np.ndarray, _Recipe]]:
    """(float32 values, how to make them) of every symmetric DequantizeLinear of constants."""
    found = []
    for node in graph.nodes:
        recipe = _recipe(node) if node.op == "DequantizeLinear" else None
        if recipe is not None:
            arrays = [None if v is None else v.const for v in node.inputs]
            found.append((run_node(node, arrays)[0], recipe))
    return found


def _recipe(node: Node) -> _Recipe | None:
    found = stored_integers(node)
    if found is None:
        return None
    q, scale, axis = found.q, found.scale, found.axis
    if scale.size == 1:
        return _Recipe(q, scale, 1, 1, q.size)
    outer, inner = math.prod(q.shape[:axis]), math.prod(q.shape[axis + 1 :])
    return _Recipe(q, scale, outer, q.shape[axis], inner)


def derive(graph: Graph, table: WeightTable, held: int) -> bytes:
    """Rows for the weights of `table` that integers of the graph make; those blobs become empty.

    The first `held` blobs are the graphs' own and stay.
    """
    rows = b""
    for values, recipe in recipes(graph):
        index = table.find(values)
        if index is None or index < held or not table.blobs[index].size:
            continue
        data, scales = table.add(recipe.integers), table.add(recipe.scales)
        width = recipe.integers.dtype.itemsize
        sizes = recipe.outer, recipe.channels, recipe.inner
        rows += _ROW.pack(index, data, scales, width, *sizes)
        table.blobs[index] = np.empty(0, np.uint8)
    return rows
