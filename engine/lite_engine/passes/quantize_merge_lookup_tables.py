"""Tables of tables, and sums and products of two functions of the same bytes, or of bytes and a
number, are one table.

QLookup(QLookup(x))      QLookup: a Sigmoid's Clip
x · QLookup(x)           QLookup: a HardSwish that a file spells out
x + number               QLookup
"""

from __future__ import annotations

import numpy as np

from ..ir import Graph, Journal, Value
from ..ops import op_names, run_node
from ._core import graph_pass, infer_new
from ._quantised import EIGHT_BITS

NAME = "quantize-merge-lookup-tables"
PAIRS = tuple(f"QLinear{n}" for n in op_names(lambda op: op.integer_form == "binary"))


@graph_pass(NAME)
def quantize_merge_lookup_tables(graph: Graph, journal: Journal) -> int:
    count = 0
    for node in list(graph.nodes):
        if node.op == "QLookup":
            operands = [node.inputs[0]]
        elif node.op in PAIRS:
            operands = [node.inputs[0], node.inputs[3]]
        else:
            continue
        numbers = [
            v for v in operands if v is not None and v.const is not None and v.const.size == 1
        ]
        operands = [v for v in operands if v not in numbers]
        tables = [v.producer for v in operands if v is not None and v.producer is not None]
        tables = [t for t in tables if t.op == "QLookup"]
        roots = {id(r): r for v in operands if (r := _root(v)) is not None}
        if not (tables or numbers) or len(roots) != 1 or any(v is None for v in operands):
            continue
        (root,) = roots.values()
        if root.dtype not in EIGHT_BITS or root.shape != node.output.shape:
            continue
        info = np.iinfo(root.dtype.np)
        every = np.arange(info.min, info.max + 1).astype(root.dtype.np)
        known = {id(root): every}
        known |= {id(t.output): run_node(t, [every])[0] for t in tables}
        arrays = [None if v is None else known.get(id(v), v.const) for v in node.inputs]
        answers = run_node(node, arrays)[0].ravel()
        attrs = {"table": [int(a) for a in answers], "output_dtype": str(node.output.dtype)}
        sources = tuple(dict.fromkeys(s for n in (*tables, node) for s in n.sources))
        made = graph.replace([node], "QLookup", [root], attrs, name=node.name)
        made.sources = sources
        infer_new([made])
        journal.rewrote(NAME, tuple(t.name for t in tables) + (node.name,), (made.name,))
        count += 1
    return count


def _root(value: Value | None) -> Value | None:
    """The bytes that a value is a table of, or the value itself."""
    table = None if value is None else value.producer
    return table.inputs[0] if table is not None and table.op == "QLookup" else value
