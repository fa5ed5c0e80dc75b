"""Weight-only quantisation: weights as i8 or i16 with a scale per channel, arithmetic in floats.

The file shrinks to a quarter (or half); no calibration is needed. A backend may dequantise when it
loads, or compute with the integers in place.
"""

from __future__ import annotations

from collections.abc import Mapping

from lite_messages import tr

from ..errors import UsageError
from ..ir import Graph, Node
from ..ops import find_op, infer_types
from .rounding import preserve_sums
from .scheme import weight_scale

#: Smaller weights stay: their scales would outweigh what is saved.
MIN_ELEMS = 256


def weights_of(node: Node) -> Mapping[int, int]:
    """Inputs that are weights → the axis of their channels."""
    op = find_op(node.op)
    return {} if op is None else op.weights


def quantize_weights(graph: Graph, bits: int = 8, *, keep: frozenset[str] = frozenset()) -> Graph:
    """A copy whose large constant weights are integers behind DequantizeLinear.

    Nodes named in `keep` stay. Raises UsageError for other widths than 8 and 16.
    """
    if bits not in (8, 16):
        raise UsageError(tr("weights must have 8 or 16 bits, got {bits}", bits=bits))
    out = graph.copy()
    done: dict[tuple[int, int], object] = {}
    for node in list(out.nodes):
        if node.name not in keep:
            for index, axis in weights_of(node).items():
                _quantize_input(out, node, index, axis, bits, done)
    infer_types(out)
    return out


def _quantize_input(graph: Graph, node: Node, index: int, axis: int, bits: int, done: dict) -> None:
    value = node.input(index)
    array = None if value is None else value.const
    if value is None or array is None or array.dtype.kind != "f" or array.size < MIN_ELEMS:
        return
    if array.ndim < 2:
        return
    if node.op == "Gemm" and node.attrs.get("transB", 0):
        axis = 0
    axis %= array.ndim
    key = id(value), axis
    if key not in done:
        scale = weight_scale(array, axis, bits)
        q = preserve_sums(array, scale, axis, bits)
        name = value.name
        integers = graph.constant(q, f"{name}.q")
        dq = graph.add(
            "DequantizeLinear", [integers, graph.constant(scale, f"{name}.scale")], {"axis": axis},
            outputs=[f"{name}.dq"], name=f"{name}.dq", sources=node.sources, before=node,
        )  # fmt: skip
        done[key] = dq.output
    node.set_input(index, done[key])  # type: ignore[arg-type]
