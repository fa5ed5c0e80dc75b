"""Layers renamed, dropped and replaced."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from lite_messages import tr

from ..errors import UsageError
from ..importers import values_named
from ..ir import Graph, Node, Value, format_shape, outer_reads, verify
from ..ops import find_op, infer_types
from ..passes._core import Match, P, match, words_of


def rename(graph: Graph, names: Mapping[str, str]) -> Graph:
    """Other names for values (inputs and outputs, too) and layers, all at once: two can swap
    theirs. Raises UsageError for a name that is not there or taken."""
    copy = graph.copy()
    groups: tuple[Sequence[Value | Node], ...] = (list(copy.values()), copy.nodes)
    for old in names.keys() - {each.name for group in groups for each in group}:
        values_named(copy, [old])
    for group in groups:
        made = Counter(names.get(each.name, each.name) for each in group)
        for new in names.values():
            if made[new] > 1 or not new:
                raise UsageError(tr("the name {new!r} is taken or empty", new=new))
        for each in group:
            each.name = names.get(each.name, each.name)
    return copy


def drop(graph: Graph, layers: Sequence[str]) -> Graph:
    """The graph without these layers: their readers get their first input. Raises UsageError for an
    unknown name, and where the input has another type or shape than the output."""
    copy = graph.copy()
    infer_types(copy)
    for name in layers:
        node = values_named(copy, [name])[0].producer
        if node is None:
            raise UsageError(tr("{name} is an input, not a layer", name=name))
        x = next((v for v in node.inputs if v is not None and not v.is_const), None)
        if x is None or (x.dtype, x.shape) != (node.output.dtype, node.output.shape):
            raise UsageError(
                tr(
                    "{name} ({op}) turns {shape} into {made}, so its readers cannot read its input",
                    name=node.name,
                    op=node.op,
                    shape="nothing" if x is None else x.type,
                    made=node.output.type,
                ),
                fix=tr("replace it by a model of the same sizes instead"),
            )
        _take_over(copy, node.output, x)
    copy.remove_unread()
    verify(copy, "edit")
    return copy


def _take_over(graph: Graph, old: Value, new: Value) -> None:
    """Everyone reads `new` instead. An output keeps its name: it gets an Identity where `new` is an
    input, a constant or another output, which have their own."""
    if graph.is_output(old):
        end, name = new, old.name
        if new.producer is None or graph.is_output(new):
            made = Value(graph.unique(name), new.dtype, new.shape)
            end = graph.add("Identity", [new], outputs=[made]).output
        graph.outputs = [end if v is old else v for v in graph.outputs]
        old.name, end.name = graph.unique(name), name
    graph.replace_uses(old, new)


def replace(graph: Graph, inputs: Sequence[str], outputs: Sequence[str], by: Graph) -> Graph:
    """The graph with what computes `outputs` from `inputs` replaced by another model, whose inputs
    and outputs stand for these in their order. Raises UsageError where counts, types or shapes
    differ, and where an input depends on an output."""
    copy = graph.copy()
    infer_types(copy)
    ins, outs = values_named(copy, inputs), values_named(copy, outputs)
    _check_direction(ins, outs)
    _graft(copy, ins, outs, by)
    return _finished(copy)


def _check_direction(ins: Sequence[Value], outs: Sequence[Value]) -> None:
    """Raises UsageError for an output that an input depends on, or that no layer computes."""
    for value in outs:
        if value.producer is None:
            raise UsageError(
                tr("no layer computes {name}: it is an input of the model", name=value.name),
                fix=tr("name an output of a layer behind the colon"),
            )  # fmt: skip
    ends = {id(v) for v in outs}
    for value in ins:
        waiting, seen = [value], set[int]()
        while waiting:
            each = waiting.pop()
            if id(each) in ends:
                raise UsageError(
                    tr("{name} depends on {other}, which is to be computed from it",
                       name=value.name, other=each.name),
                    fix=tr("name the values in the order in which they are computed: INS:OUTS"),
                )  # fmt: skip
            if id(each) not in seen and each.producer is not None:
                waiting += outer_reads(each.producer)
            seen.add(id(each))


def replace_matches(graph: Graph, pattern: P, by: Graph) -> tuple[Graph, int]:
    """Every place that a pattern of `lite_engine.passes` fits, replaced by a model of one output
    whose inputs have the names of the pattern's words; the graph and how many there were.

        replace_matches(graph, P("Mul", "x", P("Sigmoid", "x")), swish)
        replace_matches(graph, P("LeakyRelu", "x", attrs={"alpha": A("slope")}), by)

    What an attribute is goes where its word names an input of the model, as a constant, or
    an attribute of its layers. Raises UsageError for a word that the model does not have.
    """
    copy = graph.copy()
    infer_types(copy)
    count = 0
    for root in list(copy.nodes):
        for m in match(pattern, root) if root in copy.nodes else ():
            if any(r not in m.nodes for n in m.inner for v in n.outputs for r in v.readers):
                continue
            part = _with_attributes(by, pattern, m)
            _graft(copy, [_input(copy, v, m) for v in by.inputs], [root.output], part)
            count += 1
            break
    return _finished(copy), count


def _input(graph: Graph, wanted: Value, m: Match) -> Value:
    """What stands for an input of the model. Raises UsageError."""
    found = m.bound.get(wanted.name)
    if isinstance(found, Value):
        return found
    if found is None or isinstance(found, (Node, str)) or wanted.dtype is None:
        raise UsageError(tr("the pattern does not name the input {name!r}", name=wanted.name))
    array = np.asarray(found, wanted.dtype.np)
    sizes = wanted.shape or ()
    if array.size == 1 and all(n == 1 for n in sizes):
        array = array.reshape([1] * len(sizes))
    return graph.constant(array, graph.unique(wanted.name))


def _with_attributes(by: Graph, pattern: P, m: Match) -> Graph:
    """The model with the attributes that the pattern's words stand for. Raises UsageError for one
    that is neither an input nor an attribute of it."""
    made = by.copy()
    for word in words_of(pattern):
        takers = [n for n in made.nodes if (op := find_op(n.op)) and word in op.attrs]
        for node in takers:
            node.attrs[word] = m.bound[word]
        if not takers and word not in [v.name for v in by.inputs]:
            raise UsageError(
                tr("the model has neither an input nor an attribute {name!r}", name=word)
            )
    return made


def _finished(graph: Graph) -> Graph:
    graph.sort()
    graph.remove_unread()
    infer_types(graph)
    verify(graph, "edit")
    return graph


def _graft(graph: Graph, ins: Sequence[Value], outs: Sequence[Value], by: Graph) -> None:
    part = by.copy()
    infer_types(part)
    for what, have, need in ((tr("inputs"), ins, part.inputs), (tr("outputs"), outs, part.outputs)):
        if len(have) != len(need):
            raise UsageError(
                tr(
                    "expected a model with {wanted} {what}, found {count}: {names}",
                    wanted=len(have),
                    what=what,
                    count=len(need),
                    names=", ".join(v.name for v in need),
                )
            )
        for a, b in zip(have, need):
            if a.dtype != b.dtype or not _fits(a, b):
                raise UsageError(
                    tr(
                        "{name} is {type}, that of the model {other}",
                        name=a.name,
                        type=f"{a.dtype}[{format_shape(a.shape)}]",
                        other=f"{b.dtype}[{format_shape(b.shape)}]",
                    )
                )
    taken = {v.name for v in graph.values()} | {n.name for n in graph.nodes}
    for value in part.values():
        value.name = graph.unique(value.name) if value.name in taken else value.name
    for a, b in zip(ins, part.inputs):
        part.replace_uses(b, a)
    for node in part.nodes:
        node.name = graph.unique(node.name) if node.name in taken else node.name
        graph.nodes.append(node)
    graph._taken = None
    for a, b in zip(outs, part.outputs):
        _take_over(graph, a, b)


def _fits(a: Value, b: Value) -> bool:
    """Equal sizes, where both are numbers."""
    if a.shape is None or b.shape is None:
        return True
    pairs = list(zip(a.shape, b.shape))
    return len(a.shape) == len(b.shape) and all(
        x == y or not isinstance(x, int) or not isinstance(y, int) for x, y in pairs
    )
