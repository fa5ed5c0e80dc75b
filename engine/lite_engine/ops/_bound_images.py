"""What becomes of open rows (bounds.py) that are images, or regions of them."""

from __future__ import annotations

from ..ir import Node
from ._bound_rows import NOWHERE, Found, alone, first, rank_of, refusal
from ._bounding import Bounding, Rule
from ._helpers import residual_of


def _images(b: Bounding, node: Node) -> Found:
    """Convolutions, pools and their like: each image of a batch by itself."""
    rows = b.of(first(node))
    if rows is None:
        return alone(b, node)
    residual = residual_of(node)
    if rows.axis != 0 or (residual is not None and b.of(residual) != rows):
        raise refusal(node)
    if any(b.of(v) for v in node.inputs[1:] if v is not residual):
        raise refusal(node)
    return [rows for _ in node.outputs]


def _pad(b: Bounding, node: Node) -> Found:
    """Pads that leave the axis of the rows alone."""
    rows, pads = b.of(first(node)), node.input(1)
    if rows is None:
        return alone(b, node)
    if pads is None or pads.const is None or node.input(3) is not None:
        raise refusal(node)
    both = pads.const.ravel()[[rows.axis, rows.axis + rank_of(first(node))]]
    if both.any() or b.of(node.input(2)):
        raise refusal(node)
    return [rows]


def _regions(b: Bounding, node: Node) -> Found:
    """RoiAlign; no image is looked at for regions that are not there."""
    rows, images = b.of(node.inputs[1]), node.inputs[2]
    if b.of(node.inputs[0]) or rows != b.of(images) or images is None:
        raise refusal(node)
    node.set_input(2, b.masked(images, NOWHERE))
    return [rows]


def _pasted(b: Bounding, node: Node) -> Found:
    """PasteMasks: a mask and a box for each row."""
    rows = b.of(first(node))
    if rows != b.of(node.inputs[1]) or (rows and rows.axis != 0):
        raise refusal(node)
    return [rows]


_EACH = (
    "AveragePool", "BatchNormalization", "Conv", "ConvTranspose", "GlobalAveragePool",
    "GlobalMaxPool", "MaxPool", "Resize",
)  # fmt: skip
IMAGES: dict[str, Rule] = {
    **dict.fromkeys(_EACH, _images),
    "Pad": _pad,
    "PasteMasks": _pasted,
    "RoiAlign": _regions,
}
