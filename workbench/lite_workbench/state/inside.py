"""What is in a tensor of a session's graphs: outputs of layers on any side, weights."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from lite_engine.compare import Side
from lite_engine.compare.evidence import compared_values
from lite_engine.errors import UsageError
from lite_engine.ir import Graph, Node, Value
from lite_engine.ir.bfloat16 import widened
from lite_engine.ops import find_op
from lite_engine.runtime import Predictor
from lite_messages import tr

from ..looking import Look
from ._state import SessionState
from .comparisons import backend_and_version, mixed, sides_of
from .feeds import input_of
from .predictors import predictor

#: The side that is the graph as it is in the file, before anything was optimised.
FILE = "file"


def look(state: SessionState, name: str, sides: Sequence[str] | str, image: Any = None) -> Look:
    """See `Session.look`. Raises UsageError, LiteError."""
    names = [sides] if isinstance(sides, str) else list(sides)
    if not 1 <= len(names) <= 2 or len(set(names)) != len(names):
        raise UsageError(
            tr("expected one side or two different ones, got {sides}", sides=", ".join(names))
        )
    with state.busy:
        feeds = input_of(state, image)
        used = _predictors(state, names)
        first, value = find(used[names[0]].graph, name)
        arrays = _arrays(used, feeds, name, value)
    layer = first.name if first is not None else ""
    role = "weight" if value.is_const else "activation"
    source = "" if role == "weight" else (tr("image") if state.image else state.input_name)
    told = names[0] if len(names) == 1 else tuple(names)
    given = f", {told!r}" if names != ["auto"] else ""
    state.remember(f"session.look({name!r}{given})")
    return Look(value.name, layer, role, arrays, tensors_of(first), source)


def _predictors(state: SessionState, names: Sequence[str]) -> dict[str, Predictor]:
    """Side → Predictor; those of a comparison while it is the pair's."""
    if len(names) == 2 and FILE not in names:
        return sides_of(state, (names[0], names[1]))
    return {side: _predictor(state, side) for side in names}


def _predictor(state: SessionState, side: str) -> Predictor:
    if side != FILE:
        return predictor(state, *backend_and_version(state, side))
    if state.as_in_file is None:
        state.as_in_file = predictor(state, planted=False).like(state.graph)
    return state.as_in_file


def find(graph: Graph, name: str) -> tuple[Node | None, Value]:
    """The layer and the value that a name stands for: a layer's first output, or a value by its
    own name. Raises UsageError with the nearest names."""
    made = {node.name: node for node in graph.nodes}
    if name in made:
        return made[name], made[name].outputs[0]
    for node in graph.nodes:
        for value in (*node.outputs, *(v for v in node.inputs if v is not None)):
            if value.name == name:
                return node, value
    inside = [n for n, node in made.items() if name in node.sources]
    near = inside or difflib.get_close_matches(name, made, 3)
    raise UsageError(
        tr("there is no layer or tensor {name!r}", name=name),
        fix=tr("close: {names}", names=", ".join(near)) if near else tr("list them"),
        command="" if near else "lite info MODEL --layers",
    )


def tensors_of(node: Node | None) -> list[list[str]]:
    """[[name, text]]: the outputs and the constant arrays of a layer."""
    if node is None:
        return []
    outs = [[v.name, tr("output {name}", name=v.name)] for v in node.outputs]
    schema = find_op(node.op)
    words = [w.rstrip("?") for w in schema.inputs] if schema else []
    consts = [
        [v.name, f"{words[i] if i < len(words) else tr('constant')} {v.name}"]
        for i, v in enumerate(node.inputs)
        if v is not None and v.const is not None and v.const.size > 1
    ]
    return outs + consts


def _arrays(
    used: Mapping[str, Predictor], feeds: Mapping[str, np.ndarray], name: str, value: Value
) -> dict[str, np.ndarray]:
    """Side → what it holds there. Integers beside floats are the numbers that they stand for:
    their layers and values have other names."""
    first, *others = used
    inside = not value.is_const and value.name not in feeds
    if not (others and inside and mixed(used, (first, others[0]))):
        return {side: _values(one, feeds, name, value) for side, one in used.items()}
    a, b = (Side(one, side) for side, one in used.items())
    return dict(zip(used, compared_values(a, b, feeds, value.name), strict=True))


def _values(
    used: Predictor, feeds: Mapping[str, np.ndarray], name: str, value: Value
) -> np.ndarray:
    """Of a constant its values in this side's graph, else what a run makes."""
    if not value.is_const and value.name in feeds:
        return widened({value.name: np.asarray(feeds[value.name])}, lambda: used.graph)[value.name]
    _, own = find(used.graph, name)
    if own.const is not None:
        return np.asarray(own.const)
    return Side(used).values(feeds, [own.name])[own.name]
