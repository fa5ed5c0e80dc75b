"""Nodes that change nothing: Identity, Dropout, and others whose parameters make them so."""

from __future__ import annotations

from collections.abc import Callable

from lite_messages import tr

from ..ir import DType, Graph, Journal, Node, Value
from ..ops import nested_graphs
from ._core import graph_pass, is_number
from ._rewrite import bypass, same_shape


@graph_pass("drop-identity", local=True)
def drop_identity(graph: Graph, journal: Journal) -> int:
    count, nested = 0, nested_graphs(graph)
    for node in list(graph.nodes):
        value = _passed_through(node)
        if value is None:
            continue
        reason = tr("its other outputs are read") if _side_outputs(graph, node) else ""
        reason = reason or bypass(graph, node, value, nested)
        if reason:
            journal.refused("drop-identity", (node.name,), reason)
        else:
            journal.rewrote("drop-identity", (node.name,))
            count += 1
    return count


def _side_outputs(graph: Graph, node: Node) -> bool:
    return any(v.readers or graph.is_output(v) for v in node.outputs[1:])


def _passed_through(node: Node) -> Value | None:
    """The input that equals the output, None when the node does something."""
    checker = _CHECKS.get(node.op)
    if checker is None:
        return None
    answer = checker(node)
    if isinstance(answer, bool):
        return node.inputs[0] if answer else None
    return answer


def _always(node: Node) -> bool:
    return node.inputs[0] is not None


def _dropout(node: Node) -> bool:
    """Not in training mode, or with nothing to drop."""
    ratio, training = node.input(1), node.input(2)
    return training is None or any(
        v is not None and v.const is not None and not v.const.any() for v in (ratio, training)
    )


def _cast(node: Node) -> bool:
    value, to = node.inputs[0], node.attrs.get("to")
    return (
        value is not None
        and value.dtype is not None
        and to is not None
        and (value.dtype is to if isinstance(to, DType) else value.dtype is node.output.dtype)
    )


def _keeps_shape(node: Node) -> bool:
    value = node.inputs[0]
    return value is not None and same_shape(value, node.output)


def _reshape(node: Node) -> bool:
    """Equal shapes, or a target that copies every dimension."""
    value, target = node.inputs[0], node.input(1)
    if _keeps_shape(node):
        return True
    if target is None or target.const is None or value is None or value.shape is None:
        return False
    zeros = not target.const.any() and not node.attrs.get("allowzero", 0)
    return zeros and target.const.size == len(value.shape)


def _transpose(node: Node) -> bool:
    perm = list(node.attrs.get("perm") or [])
    return bool(perm) and perm == list(range(len(perm)))


def _pad(node: Node) -> bool:
    pads = node.input(1)
    return pads is not None and pads.const is not None and not pads.const.any()


def _slice(node: Node) -> bool:
    steps = node.input(4)
    forward = steps is None or (steps.const is not None and bool((steps.const == 1).all()))
    return forward and _keeps_shape(node)


def _single(node: Node) -> bool:
    return len(node.inputs) == 1


def _resize(node: Node) -> bool:
    ordinary = node.attrs.get("coordinate_transformation_mode") != "tf_crop_and_resize"
    scales = node.input(2)
    fitting = scales is None or scales.const is None or bool((scales.const == 1).all())
    return ordinary and fitting and _keeps_shape(node)


def _pool(node: Node) -> bool:
    kernel, strides = node.attrs.get("kernel_shape", []), node.attrs.get("strides", [])
    ones = set(kernel) == {1} and set(strides) <= {1} and not any(node.attrs.get("pads", []))
    return ones and node.attrs.get("auto_pad", "NOTSET") in ("NOTSET", "", "VALID")


def _neutral(number: float, *, either: bool) -> Callable[[Node], Value | None]:
    """A binary operator with its neutral element on the right (or on either side)."""

    def check(node: Node) -> Value | None:
        a, b = node.inputs[0], node.input(1)
        if a is None or b is None:
            return None
        for value, other in ((a, b), (b, a)) if either else ((a, b),):
            array = other.const
            exact = is_number(array, number) and array is not None and array.ravel()[0] == number
            if exact and value.shape is not None and len(other.shape or ()) <= len(value.shape):
                return value
        return None

    return check


def _add(node: Node) -> Value | None:
    return None if node.attrs.get("activation") else _neutral(0.0, either=True)(node)


_CHECKS: dict[str, Callable[[Node], bool | Value | None]] = {
    "Identity": _always,
    "Dropout": _dropout,
    "Cast": _cast,
    "Reshape": _reshape,
    "Expand": _keeps_shape,
    "Flatten": _keeps_shape,
    "Squeeze": _keeps_shape,
    "Unsqueeze": _keeps_shape,
    "Tile": _keeps_shape,
    "Transpose": _transpose,
    "Pad": _pad,
    "Slice": _slice,
    "Concat": _single,
    "Sum": _single,
    "Max": _single,
    "Min": _single,
    "Resize": _resize,
    "MaxPool": _pool,
    "AveragePool": _pool,
    "Add": _add,
    "Sub": _neutral(0.0, either=False),
    "Mul": _neutral(1.0, either=True),
    "Div": _neutral(1.0, either=False),
    "Pow": _neutral(1.0, either=False),
}
