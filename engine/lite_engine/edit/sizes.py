"""Other input sizes for a graph whose sizes are fixed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lite_messages import tr

from ..errors import LiteError, UsageError
from ..importers import fix_shapes
from ..ir import Dim, Graph, Node, Shape, Value, format_shape
from ..ops import find_op, infer_node, infer_types, specialise
from ..preprocess import Preprocess
from .kept_numbers import kept_numbers
from .moved_constants import adapt, follow_resize
from .moving_size import MovingSize, Place
from .reshaped import follow_reshape


@dataclass(frozen=True)
class Refusal:
    """A layer that cannot have the new sizes, and why."""

    layer: str
    op: str
    why: str


@dataclass
class Resized:
    """A graph with other input sizes. `adapted` are layers whose constant sizes were replaced;
    `kept` are those with numbers that fit the sizes before and stayed, and what they are; the graph
    is of use only when `refused` is empty."""

    graph: Graph
    adapted: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)


def resize(graph: Graph, shapes: Mapping[str, Shape]) -> Resized:
    """The graph with inputs of these shapes, fixed or symbolic ("batch"); what cannot follow is
    listed. Raises ModelFormatError for an unknown input, UsageError for another rank."""
    made = _resized(graph, shapes, batch=False)
    for value in graph.inputs:
        if value.name in shapes:
            _fit_pictures(made.graph, value.shape, shapes[value.name])
    return made


def _fit_pictures(graph: Graph, before: Shape | None, shape: Shape) -> None:
    """The size that the preprocessing says, if it says one, follows the input that has it."""
    said = graph.metadata.get("preprocess")
    if not isinstance(said, dict) or "size" not in said or before is None:
        return
    rest = {key: value for key, value in said.items() if key != "size"}
    try:
        how = Preprocess.from_dict(rest)
        own, size = how.fitted(before).size, how.fitted(shape).size
        fits = own is None or own == Preprocess.from_dict(said).size
    except LiteError:  # the shape is no image's, or the words are somebody else's
        return
    if fits:
        graph.metadata["preprocess"] = {**rest, "size": list(size)} if size else rest


def batched(graph: Graph) -> list[Value]:
    """The inputs that have a row for each sample: those that leave their first size open; where
    none does, all that have axes."""
    rows = [v for v in graph.inputs if v.shape]
    return [v for v in rows if v.shape and not isinstance(v.shape[0], int)] or rows


def rebatch(graph: Graph, batch: int | str) -> Resized:
    """The graph with another first axis of every input that has the batch (a number, or a symbol
    like "N"). Raises UsageError where they begin with different numbers, which cannot all be it."""
    rows = batched(graph)
    shapes = {v.name: (batch, *v.shape[1:]) for v in rows if v.shape}
    if len({v.shape[0] for v in rows if v.shape and isinstance(v.shape[0], int)}) > 1:
        raise UsageError(
            tr("the inputs have no common batch size: {inputs}",
               inputs=", ".join(f"{v.name} {format_shape(v.shape)}" for v in rows)),
            fix=tr("give each input its sizes, as with --shape"),
        )  # fmt: skip
    return _resized(graph, shapes, batch=True)


def _resized(graph: Graph, shapes: Mapping[str, Shape], batch: bool) -> Resized:
    """Sizes that the graph computes follow by themselves; where that is not enough, those of the
    old inputs are computed first, and adapted like other constants."""
    made = _adapted(graph.copy(), shapes, batch)
    if not made.refused or not all(v.type.is_static for v in graph.inputs):
        return made
    try:
        again = _adapted(specialise(graph), shapes, batch)
    except LiteError:
        return made
    return made if again.refused else again


def _adapted(copy: Graph, shapes: Mapping[str, Shape], batch: bool) -> Resized:
    infer_types(copy)
    old = {id(v): v.shape for n in copy.nodes for v in n.outputs}
    old |= {id(v): v.shape for v in copy.inputs}
    _set_inputs(copy, shapes)
    made, moving = Resized(copy), _moving(copy, old)
    lost: set[int] = set()
    for node in list(copy.nodes):
        inputs = [v for v in node.inputs if v is not None]
        if any(id(v) in lost for v in inputs):  # told once, where it begins
            lost |= {id(v) for v in node.outputs}
        elif why := _follow(node, old, made, moving, batch):
            made.refused.append(Refusal(node.name, node.op, why))
            lost |= {id(v) for v in node.outputs}
    if batch and moving and not made.refused:
        made.refused += _mixed(copy, moving)
    if not made.refused:
        _compute(made, moving)
    return made


def _set_inputs(graph: Graph, shapes: Mapping[str, Shape]) -> None:
    by_name = {v.name: v for v in graph.inputs}
    fix_shapes(graph, {name: () for name in shapes if name not in by_name})
    for name, shape in shapes.items():
        known = by_name[name].shape
        if known is not None and len(known) != len(shape):
            raise UsageError(
                tr(
                    "expected {rank} sizes for {name} ({known}), got {count}",
                    rank=len(known),
                    name=name,
                    known=format_shape(known),
                    count=len(shape),
                )
            )
        by_name[name].shape = tuple(shape)


def _moving(graph: Graph, old: dict[int, Shape | None]) -> MovingSize | None:
    """The one size that changes in the inputs; None where several do, or it was not a number."""
    places: dict[int, Place] = {}
    sizes: set[tuple[Dim, Dim]] = set()
    for value in graph.inputs:
        pairs = list(zip(old[id(value)] or (), value.shape or ()))
        changed = [i for i, (was, now) in enumerate(pairs) if was != now]
        sizes |= {pairs[i] for i in changed}
        if len(changed) > 1:
            return None
        places |= {id(value): Place(i) for i in changed}
    if len(sizes) != 1:
        return None
    (size,) = sizes
    return MovingSize(graph, old, size[0], size[1], places) if isinstance(size[0], int) else None


def _mixed(graph: Graph, moving: MovingSize) -> list[Refusal]:
    """Outputs that do not have an axis for the samples alone."""
    found = []
    for value in graph.outputs:
        place, before, node = moving.places.get(id(value)), moving.old[id(value)], value.producer
        alone = place and before and place.inner == 1 and before[place.axis] == moving.before
        if place and not alone and node is not None:
            shape = format_shape(value.shape)
            why = tr("its output {shape} has no axis of the batch alone", shape=shape)
            found.append(Refusal(node.name, node.op, why))
    return found


def _compute(made: Resized, moving: MovingSize | None) -> None:
    """Sizes that the graph itself computes, with these inputs; the first layer that they refuse. A
    symbol is tried with a number."""
    trial = moving.before + 2 if moving and isinstance(moving.now, str) else None
    shapes: dict[str, Shape] = {}
    for value in made.graph.inputs:
        dims = (None,) if value.shape is None else value.shape
        shapes[value.name] = tuple(trial if trial and d == moving.now else d for d in dims)  # type: ignore[union-attr]
        if not all(isinstance(d, int) for d in shapes[value.name]):
            return  # other sizes are open
    try:
        fixed = specialise(made.graph.copy(), shapes)
    except LiteError as error:
        text = str(error)  # it begins with the layer
        node = next((n for n in made.graph.nodes if text.startswith(f"{n.name} ({n.op}")), None)
        layer, op = (node.name, node.op) if node else (str(error.where), "")
        made.refused.append(Refusal(layer, op, text.partition("): ")[2] or text))
        return
    if trial is None:
        for value, known in zip(made.graph.outputs, fixed.outputs):
            value.shape = known.shape


def _follow(
    node: Node, old: Mapping[int, Shape | None], made: Resized, moving: MovingSize | None,
    batch: bool,
) -> str:  # fmt: skip
    """Infers a node anew; the reason where it does not fit."""
    before = [v.shape for v in node.outputs]
    try:
        replaced = moving is not None and adapt(moving, node)
        if node.op == "Reshape" and not replaced:
            replaced = follow_reshape(made.graph, node, old, moving, batch)
        if node.op == "Resize":
            replaced = follow_resize(made.graph, node, old)
        if not batch and not replaced:  # a batch is checked with numbers
            made.kept += [f"{node.name} ({node.op}): {why}" for why in kept_numbers(node, old)]
        made.adapted += [node.name] if replaced else []
        for value in node.outputs:
            value.shape = None
        types = infer_node(node)
    except LiteError as error:
        # Where sizes are computed, numbers tell (_compute).
        known = all(v is None or (v.dtype and v.shape is not None) for v in node.inputs)
        return str(error.what) if known else ""
    for value, info in zip(node.outputs, types):
        value.dtype, value.shape = info.dtype, info.shape
    if moving is not None:
        moving.note(node)
    op = find_op(node.op)
    if batch and not (op and op.of_shapes) and _loses_batch(node, old, moving, before[0]):
        return tr(
            "its output keeps the shape {shape} for every batch", shape=format_shape(before[0])
        )
    return ""


def _loses_batch(
    node: Node, old: Mapping[int, Shape | None], moving: MovingSize | None, before: Shape | None
) -> bool:
    """Whether an input has another batch, and the output the same fixed shape as before."""
    x = node.input(0)
    was, now = (None, None) if x is None else (old.get(id(x)), x.shape)
    first = before[:1] if before is not None else ("unknown",)
    kept = node.output.shape == before and all(isinstance(n, int) for n in first)
    if was and now and not isinstance(was[0], int):  # any batch becomes this one
        kept = kept and first != now[:1]
    if moving:
        return kept and moving.reads(node)
    return kept and bool(was and now and was[0] != now[0] and None not in (was[0], now[0]))
