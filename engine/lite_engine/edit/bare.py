"""A graph without its preprocessing or post-processing: what computes from numbers to numbers."""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..errors import UsageError
from ..ir import DType, Graph, Node, Value, outer_reads
from ..ops import OpDef, find_op, infer_types
from ..passes._core import C, P, match
from ..preprocess import Preprocess
from .cut import extract
from .ends import one_input
from .nodes import rename

_NORMALIZATION = (P(("Add", "Sub", "Mul", "Div"), "x", C("k")), P(("Cast", "Identity"), "x"))
_PASSED_ON = (
    P(("Cast", "Identity"), "x"),
    P(("QuantizeLinear", "DequantizeLinear"), "x", C("scale"), "zero_point?"),
)


def remove_normalization(
    graph: Graph, name: str = ""
) -> tuple[Graph, list[str], tuple[np.ndarray, np.ndarray]]:
    """The graph without the layers that normalize an input (default: the only one), their names,
    and (mean, std): it now takes (x − mean) / std in the type that they gave, under the old name.

    Layers are part of it from the input on: casts, and sums and products with a constant for
    everything or for each channel. Raises UsageError where there are none.
    """
    copy = graph.copy()
    infer_types(copy)
    x = one_input(copy, name)
    y, gone = x, list[str]()
    scale, offset = np.ones(1), np.zeros(1)
    while (node := _next(copy, y)) is not None:
        found = next((m for p in _NORMALIZATION for m in match(p, node) if m.x is y), None)
        k = None if found is None else found.array("k")
        if found is None or (k is not None and sum(d != 1 for d in k.shape) > 1):
            break
        if k is not None:
            scale, offset = _after(node.op, scale, offset, k.astype(np.float64))
        y = node.output
        gone.append(node.name)
    if not gone:
        raise UsageError(
            tr(
                "no layers normalize {name}: it is read by {readers}",
                name=x.name,
                readers=", ".join(f"{n.name} ({n.op})" for n in dict.fromkeys(x.readers)),
            )
        )
    part = extract(copy, [y.name if v is x else v.name for v in copy.inputs])
    made = rename(part, {y.name: x.name})
    made.metadata = dict(graph.metadata)  # a part has lost what it says of its pictures
    mean, std = -offset / scale, 1 / scale
    _tell(made, x, mean.ravel(), std.ravel())
    return made, gone, (mean, std)


def _tell(graph: Graph, was: Value, mean: np.ndarray, std: np.ndarray) -> None:
    """The metadata says how pixels become the new input: what made the old one of them, and then
    (x − mean) / std. Without such words floats were pixels / 255 and integers the pixels."""
    dtype = was.dtype
    if was.shape is None or len(was.shape) != 4 or dtype in (None, DType.BOOL):
        return
    try:
        known = Preprocess.of(graph.metadata)
        low, width = (0.0, 255.0) if dtype.is_float else (-np.iinfo(dtype.np).min, 1.0)
        before, unit = np.array(known.mean or (low,)), np.array(known.std or (width,))
        numbers = {"mean": (before + mean * unit).tolist(), "std": (unit * std).tolist()}
        made = Preprocess.from_dict({**known.to_dict(), **numbers})
    except UsageError:  # an input of other channels, or somebody else's words: no pixels to tell of
        graph.metadata.pop("preprocess", None)
    else:
        graph.metadata["preprocess"] = made.to_dict()


def _next(graph: Graph, value: Value) -> Node | None:
    """The only node that reads a value."""
    readers = list(dict.fromkeys(value.readers))
    return readers[0] if len(readers) == 1 and not graph.is_output(value) else None


def _after(op: str, scale: np.ndarray, offset: np.ndarray, k: np.ndarray) -> tuple:
    """scale · x + offset after a layer with the constant k."""
    if op in ("Mul", "Div"):
        k = k if op == "Mul" else 1 / k
        return scale * k, offset * k
    return scale, offset + (k if op == "Add" else -k)


def remove_postprocessing(graph: Graph) -> tuple[Graph, list[str]]:
    """The graph up to what its post-processing reads, and the names of the layers that are gone.

    Gone are functions of scores (Softmax, Sigmoid, …), choices (ArgMax, TopK, suppression of
    boxes) and whatever follows them, where nothing but outputs comes of it. The outputs have the
    names of what was read. Raises UsageError where a model ends in none of these.
    """
    copy = graph.copy()
    infer_types(copy)
    copy.sort()
    chosen = _tail(copy, _after_choice(copy))
    gone: dict[int, Node] = {}
    for node in chosen:
        op = find_op(node.op)
        of_gone = any(v.producer is not None and id(v.producer) in gone for v in outer_reads(node))
        if (op and op.postprocess) or of_gone:
            gone[id(node)] = node
    read = [v for n in gone.values() for v in outer_reads(n) if _stays(v, gone)]
    if not read:
        raise UsageError(
            tr(
                "there is no post-processing to remove: the outputs come from {ends}",
                ends=", ".join(
                    f"{v.producer.name} ({v.producer.op})" for v in copy.outputs if v.producer
                ),
            )
        )
    ends = [v for v in copy.outputs if _stays(v, gone)] + read
    numbers = [v for v in ends if v.dtype is not None and v.dtype.is_float] or ends
    names = list(dict.fromkeys(v.name for v in numbers))
    return extract(copy, [], names), [n.name for n in gone.values()]


def _stays(value: Value, gone: dict[int, Node]) -> bool:
    return value.producer is not None and id(value.producer) not in gone


def _after_choice(graph: Graph) -> set[int]:
    """Nodes that compute from a choice, the choices among them."""
    after: set[int] = set()
    for node in graph.nodes:
        op = find_op(node.op)
        follows = any(v.producer is not None and id(v.producer) in after for v in outer_reads(node))
        if (op and op.postprocess == "choice") or follows:
            after.add(id(node))
    return after


def _tail(graph: Graph, after_choice: set[int]) -> list[Node]:
    """In their order: the nodes whose results reach outputs only through such nodes, which are
    post-processing, pass a result on as it is, or compute from a choice without weights."""
    inside: set[int] = set()
    for node in reversed(graph.nodes):
        op = find_op(node.op)
        passes = op is not None and (
            bool(op.postprocess)
            or op.layout == "view"
            or any(next(match(p, node), None) for p in _PASSED_ON)
            or (id(node) in after_choice and not _has_weights(node, op))
        )
        if passes and all(id(r) in inside for v in node.outputs for r in v.readers):
            inside.add(id(node))
    return [n for n in graph.nodes if id(n) in inside]


def _has_weights(node: Node, op: OpDef) -> bool:
    return any((v := node.input(i)) is not None and v.is_const for i in op.weights)
