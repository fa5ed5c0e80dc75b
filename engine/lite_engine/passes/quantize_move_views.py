"""View → Q becomes Q → view where an operator with an integer form waits before the view, and
DQ → view becomes view → DQ: nothing stands between that operator and its numbers."""

from __future__ import annotations

from lite_messages import trn

from ..ir import Graph, Journal, Node
from ._core import graph_pass
from ._quantised import dequantised, written
from .quantize_fuse_qdq import INTEGER_FORMS, VIEWS

NAME = "quantize-move-views"


@graph_pass(NAME)
def quantize_move_views(graph: Graph, journal: Journal) -> int:
    count = 0
    for node in list(graph.nodes):
        if node.op not in VIEWS or not node.inputs or node.inputs[0] is None:
            continue
        producer, reader = node.inputs[0].producer, graph.sole_reader(node.output)
        after = reader is not None and reader.op == "QuantizeLinear"
        if producer is not None and producer.op == "DequantizeLinear" and not after:
            x = dequantised(graph, node.inputs[0])
            if x is not None and x.per_tensor:
                _sink_dequantize(graph, node, producer)
                count += 1
        elif after and producer is not None and graph.sole_reader(node.inputs[0]) is node:
            assert reader is not None
            if written(graph, reader) is not None and producer.op in INTEGER_FORMS:
                _hoist_quantize(graph, node, reader)
                count += 1
    if count:
        journal.rewrote(NAME, (trn("{n} view", "{n} views", count),))
    return count


def _sink_dequantize(graph: Graph, view: Node, dq: Node) -> None:
    moved = graph.add(
        view.op, [dq.inputs[0], *view.inputs[1:]], view.attrs, name=graph.unique(view.name),
        sources=view.sources, before=view,
    )  # fmt: skip
    assert dq.inputs[0] is not None
    moved.output.dtype, moved.output.shape = dq.inputs[0].dtype, view.output.shape
    attrs = {k: v for k, v in dq.attrs.items() if k != "axis"}
    sources = view.sources
    new = graph.replace([view], "DequantizeLinear", [moved.output, *dq.inputs[1:]], attrs)
    new.sources = (*dq.sources, *sources)


def _hoist_quantize(graph: Graph, view: Node, q: Node) -> None:
    attrs = {k: v for k, v in q.attrs.items() if k != "axis"}
    moved = graph.add(
        "QuantizeLinear", [view.inputs[0], *q.inputs[1:]], attrs, name=graph.unique(q.name),
        sources=q.sources, before=view,
    )  # fmt: skip
    assert view.inputs[0] is not None
    moved.output.dtype, moved.output.shape = q.output.dtype, view.inputs[0].shape
    sources = view.sources
    new = graph.replace(
        [view, q], view.op, [moved.output, *view.inputs[1:]], view.attrs, name=view.name
    )
    new.sources = sources
