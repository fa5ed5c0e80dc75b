"""A graph written in half precision computes in float32: f16, bf16 → f32, Casts at its ends.

A file says in which type its author stored the numbers; which type a target computes in is the
precision that it is converted for. The kernels of the CPU take float32 and store fp16 themselves
where that is asked for, so an fp16 file is a float32 file whose inputs and outputs are fp16.
Results are nearer to exact than with a rounding after every node.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from lite_messages import tr

from ..ir import DType, Graph, Journal, Value
from ..ir.bfloat16 import bf16_to_f32
from ._core import graph_pass

NAME = "decompose-fp16"
HALF = (DType.F16, DType.BF16)


@graph_pass(NAME)
def decompose_fp16(graph: Graph, journal: Journal) -> int:
    """Leaves alone a graph with branches or loops beside fp16 or bf16: their ports are typed."""
    wide = [
        node
        for node in graph.nodes
        if node.op != "Cast" and any(v is not None and v.dtype in HALF for v in node.inputs)
    ]
    if not wide:
        return 0
    nested = next((n for n in graph.nodes if any(True for _ in n.subgraphs())), None)
    if nested is not None:
        journal.refused(NAME, (nested.name,), tr("branches and loops hold types of their own"))
        return 0
    ends = {id(v): v for v in (*graph.inputs, *graph.outputs) if v.dtype in HALF}
    for value in [v for v in graph.values() if v.dtype in HALF and id(v) not in ends]:
        if value.const is not None:
            bits = value.dtype is DType.BF16
            value.const = bf16_to_f32(value.const) if bits else value.const.astype(np.float32)
        value.dtype = DType.F32
    for node in graph.nodes:
        node.attrs.update({k: _widened(a) for k, a in node.attrs.items()})
    for value in ends.values():
        _cast_end(graph, value)
    journal.rewrote(NAME, tuple(n.name for n in wide))
    return len(wide)


def _cast_end(graph: Graph, end: Value) -> None:
    """A Cast between an input or output, which keeps its type, and what computes."""
    inner = Value(graph.unique(end.name), DType.F32, end.shape)
    producer = end.producer
    for node in list(dict.fromkeys(end.readers)):
        node.inputs = [inner if v is end else v for v in node.inputs]  # type: ignore[assignment]
    if producer is None:
        first = graph.nodes[0] if graph.nodes else None
        graph.add("Cast", [end], {"to": DType.F32}, outputs=[inner], before=first)
        return
    producer.outputs = [inner if v is end else v for v in producer.outputs]
    inner.producer = producer
    graph.add("Cast", [inner], {"to": end.dtype}, outputs=[end], sources=producer.sources)


def _widened(attr: Any) -> Any:
    """An attribute that names a type, or holds numbers."""
    if isinstance(attr, DType) and attr in HALF:
        return DType.F32
    if isinstance(attr, np.ndarray) and attr.dtype == np.float16:
        return attr.astype(np.float32)
    return attr
