"""A Loop that pastes masks into an image, one for each box, becomes PasteMasks.

Exporters write the loop of torchvision's Mask R-CNN as some hundred operators on sizes that depend
on each box. What it does is told by what it answers: the body gets masks and boxes at random, of
which some reach out of the image, and must paste as PasteMasks does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import LiteError
from ..ir import DType, Graph, Node, Value
from ..ops import find_op, run_node
from ..ops.control_flow import run_control_flow
from ..ops.paste_masks import paste
from ._core import Match, P, Skip, no_match, rule

Array = np.ndarray
_BOXES = 12


class Pasted(NamedTuple):
    masks: Value
    boxes: Value
    height: int
    width: int


@rule("recompose-pasted-masks")
class recompose_pasted_masks:
    patterns = [P("Loop", "trips", "condition", "start")]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        return no_match(m.root) if _recognise(m.root) is None else None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        found = _recognise(m.root)
        assert found is not None
        size = {"height": found.height, "width": found.width}
        return graph.replace(m.nodes, "PasteMasks", [found.masks, found.boxes], size)


def _recognise(node: Node) -> Pasted | None:
    body: Graph = node.attrs["body"]
    if len(node.inputs) != 3 or len(node.outputs) != 1 or any(n.has_subgraph for n in body.nodes):
        return None
    start = node.inputs[2]
    if start is None or start.const is None or start.const.ndim != 3 or len(start.const):
        return None
    own = {id(v) for n in body.nodes for v in n.outputs} | {id(v) for v in body.inputs}
    read = [v for n in body.nodes for v in n.inputs if v is not None and v.const is None]
    outer = list({id(v): v for v in read if id(v) not in own}.values())
    masks = [v for v in outer if v.dtype is DType.F32 and v.shape and len(v.shape) == 4]
    boxes = [v for v in outer if v.dtype is DType.I64 and v.shape and len(v.shape) == 2]
    if len(outer) != 2 or len(masks) != 1 or len(boxes) != 1 or node.inputs[0] is None:
        return None
    height, width = start.const.shape[1:]
    found = Pasted(masks[0], boxes[0], int(height), int(width))
    return found if _counts(node.inputs[0], found) and _pastes(node, found) else None


def _counts(value: Value, found: Pasted) -> bool:
    """Is it the number of masks: a constant, or Gather(Shape(masks or boxes), 0)?"""
    if value.const is not None:
        rows = [(v.shape or (None,))[0] for v in (found.masks, found.boxes)]
        return value.const.size == 1 and rows == [int(value.const.item())] * 2
    made = value.producer
    while made is not None and _hands_on(made):
        made = made.inputs[0].producer if made.inputs[0] is not None else None
    if made is None or made.op != "Gather" or made.inputs[1] is None or made.inputs[0] is None:
        return False
    index, shape = made.inputs[1].const, made.inputs[0].producer
    if index is None or index.size != 1 or index.item() != 0 or shape is None:
        return False
    first = shape.op == "Shape" and not shape.attrs.get("start")
    return first and shape.inputs[0] in (found.masks, found.boxes)


def _hands_on(node: Node) -> bool:
    """Does it give the same number in another type or shape?"""
    op = find_op(node.op)
    return node.op == "Cast" or (op is not None and op.layout == "view")


def _pastes(node: Node, found: Pasted) -> bool:
    rng = np.random.default_rng(0)
    cells = [d if isinstance(d, int) else 6 for d in (found.masks.shape or ())[2:]]
    masks = rng.uniform(0, 1, (_BOXES, 1, *cells)).astype(np.float32)
    size = np.array([found.width, found.height])
    low = rng.integers(-5, size - 1, (_BOXES, 2))
    high = np.maximum(low, 0) + rng.integers(0, np.maximum(size, 2), (_BOXES, 2))
    boxes = np.concatenate([low, high], 1)
    given = {id(found.masks): masks, id(found.boxes): boxes}

    def run(graph: Graph, arrays: Sequence[Array]) -> list[Array]:
        known = given | {id(v): a for v, a in zip(graph.inputs, arrays)}
        for inner in graph.nodes:
            read = [None if v is None else known.get(id(v), v.const) for v in inner.inputs]
            known |= {id(v): a for v, a in zip(inner.outputs, run_node(inner, read))}
        return [known[id(v)] if v.const is None else v.const for v in graph.outputs]

    start = node.inputs[2]
    assert start is not None
    try:
        trips = np.array(_BOXES, np.int64)
        (pasted,) = run_control_flow(node, [trips, np.array(True), start.const], run)
    except LiteError:
        return False
    wanted = paste(masks, boxes, height=found.height, width=found.width)
    return pasted.shape == wanted.shape and np.allclose(pasted, wanted, atol=1e-5)
