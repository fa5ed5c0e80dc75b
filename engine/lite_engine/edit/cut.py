"""A part of a graph as a graph of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from lite_messages import tr

from ..errors import UsageError
from ..importers import values_named
from ..ir import Graph, Value, outer_reads, verify
from ..ops import infer_types


def extract(graph: Graph, inputs: Sequence[str] = (), outputs: Sequence[str] = ()) -> Graph:
    """What computes `outputs` from `inputs`: names of values, or of layers for what they give.

    Empty: the inputs that are needed, the outputs of the graph. Raises UsageError for an unknown
    name, and where an input that is not listed is needed, too.
    """
    copy = graph.copy()
    ins, outs = values_named(copy, inputs), values_named(copy, outputs)
    return _cut(copy, ins, outs or list(copy.outputs), strict=bool(inputs))


def extract_layers(graph: Graph, layers: Collection[str]) -> Graph:
    """These layers as a graph: what they read from others becomes inputs, what others read of them
    (or the graph gives) outputs. Raises UsageError for an unknown name."""
    known = {n.name for n in graph.nodes}
    unknown = [name for name in layers if name not in known]
    if unknown or not layers:
        values_named(graph, unknown[:1])  # says which name is near
        raise UsageError(tr("no layer is selected"), fix=tr("name at least one layer"))
    copy = graph.copy()
    chosen = [n for n in copy.nodes if n.name in layers]
    made = {id(v) for n in chosen for v in n.outputs}
    reads = (v for n in chosen for v in outer_reads(n))
    ins = [v for v in dict.fromkeys(reads) if not v.is_const and id(v) not in made]
    inside = {id(n) for n in chosen}
    outside = {id(v) for n in copy.nodes if id(n) not in inside for v in outer_reads(n)}
    outside |= {id(v) for v in copy.outputs}
    values = [v for n in chosen for v in n.outputs]
    outs = [v for v in values if id(v) in outside] or list(chosen[-1].outputs)
    return _cut(copy, ins, outs, strict=True)


def _cut(graph: Graph, ins: Sequence[Value], outs: Sequence[Value], *, strict: bool) -> Graph:
    infer_types(graph)
    starts: dict[int, Value] = {}
    for value in ins:
        if value.is_const:
            raise UsageError(tr("{name} is a constant, not an input", name=value.name))
        start = value if value.producer is None else Value(value.name, value.dtype, value.shape)
        starts[id(value)] = start
        for node in list(dict.fromkeys(value.readers)) if start is not value else ():
            node.inputs = [start if v is value else v for v in node.inputs]  # type: ignore[assignment]
    kept = {id(v) for v in starts.values()}
    _forget(graph, starts.keys() != kept, outs)
    graph.outputs = list(dict.fromkeys(outs))
    graph.remove_unread()
    more = [v for v in graph.inputs if v.readers and id(v) not in kept]
    if strict and more:
        raise UsageError(
            tr("the outputs also need {names}", names=_names(more)),
            fix=tr("add it to the inputs"),
        )
    graph.inputs = [*starts.values(), *more]
    unread = [v for v in starts.values() if not v.readers and not graph.is_output(v)]
    if unread:
        raise UsageError(tr("the outputs do not need {names}", names=_names(unread)))
    verify(graph, "edit")
    return graph


def _forget(graph: Graph, behind: bool, outs: Sequence[Value]) -> None:
    """What the metadata says of pictures no longer holds where the graph begins `behind` its own
    inputs, nor what they say of answers where outputs have other shapes."""
    if behind:
        graph.metadata.pop("preprocess", None)
    if [v.shape for v in outs] != [v.shape for v in graph.outputs]:
        graph.metadata.pop("labels", None)
        graph.metadata.pop("adapter", None)


def _names(values: Iterable[Value]) -> str:
    return ", ".join(v.name for v in values)
