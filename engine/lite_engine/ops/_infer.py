"""Type inference and constant folding over a whole graph, with the operators' own functions."""

from __future__ import annotations

import math
import shlex
from collections.abc import Container, Iterable, Mapping
from operator import eq, is_

import numpy as np
from lite_messages import tr

from ..errors import LiteError, ShapeError
from ..ir import DType, Graph, Node, Shape, Value, fits, holders, misfit
from ._core import find_op, get_op
from ._inferred import infer_node
from .quantize import stored_integers

#: A constant made by folding may not be larger than this unless it replaces larger inputs.
FOLD_LIMIT_BYTES = 1 << 24
#: Where larger inputs are still read by others, all constants together may not exceed this.
FOLD_TOTAL_BYTES = 1 << 30


def run_node(node: Node, arrays: list[np.ndarray | None]) -> list[np.ndarray]:
    """Reference result of one node (no subgraphs: the reference backend runs those)."""
    return get_op(node.op, node.name).run(node, arrays)


def infer_types(graph: Graph, *, strict: bool = False) -> None:
    """Writes dtype and shape of every node output, in order.

    What cannot be inferred keeps the type it has; `strict` raises instead.
    """
    for node in graph.nodes:
        infer_outputs(node, strict)


def infer_outputs(node: Node, strict: bool = False) -> LiteError | None:
    """Writes dtype and shape of a node's outputs, as `infer_types` does; why not, when they cannot
    be told."""
    try:
        types = infer_node(node)
    except LiteError as error:
        if strict:
            raise
        return error
    for value, info in zip(node.outputs, types, strict=False):
        value.dtype = info.dtype
        value.shape = _refine(value.shape, info.shape)
    return None


def check_types(failed: Iterable[tuple[Node, LiteError]]) -> None:
    """Raises ShapeError for a node whose types could not be told although the sizes of all that it
    reads are known: they can never fit it.

    Where sizes are open others may fit, and a branch that is never taken need not. Operators that
    nobody has are not told of here.
    """
    for node, error in failed:
        known = all(v is None or (v.dtype is not None and v.type.is_static) for v in node.inputs)
        # What is not supported is told of in a table, with all others.
        if known and isinstance(error, ShapeError) and not node.has_subgraph:
            raise ShapeError(
                error, fix=tr("the shapes in the model contradict each other")
            ) from None


def _same(old: Shape | None, new: Shape | None) -> bool:
    """Equal, of the same kinds of dimensions: a NumPy integer is not a static one."""
    return old is new or (old == new and all(map(is_, map(type, old or ()), map(type, new or ()))))


def _refine(old: Shape | None, new: Shape | None) -> Shape | None:
    """The more exact of two shapes, dimension by dimension."""
    if _same(old, new):
        return old  # the same object: what reads it keeps its type
    if old is None or new is None or len(old) != len(new):
        return new if new is not None else old
    return tuple(n if isinstance(n, int) or n is not None else o for o, n in zip(old, new))


def fold_constants(graph: Graph, keep: Container[str] = ()) -> int:
    """Replaces nodes whose inputs are all constant by constants; returns how many.

    What reads static shapes only counts as constant. Works in one pass, in order; what was folded
    tells shapes of what follows, and those fold again. Operators named in `keep` stay.
    """
    folded, nested = 0, nested_graphs(graph)
    for node in list(graph.nodes):
        if folded and any(v.dtype is None or not v.type.is_static for v in node.outputs):
            infer_outputs(node)
        if node.op not in keep and fold_node(graph, node, nested):
            folded += 1
    return folded


def fold_node(graph: Graph, node: Node, nested: Iterable[Graph]) -> bool:
    """Replaces a node whose inputs are all constant by constants; False when it has to stay.

    `nested` are `nested_graphs(graph)`, found once for all nodes.
    """
    arrays = _foldable(node)
    if arrays is None or _grows(graph, node, arrays):
        return False
    _make_constant(graph, node, run_node(node, arrays), nested)
    return True


def _foldable(node: Node) -> list[np.ndarray | None] | None:
    """The arrays to fold a node with, None when it is not constant."""
    op = find_op(node.op)
    if op is None:
        return None  # one that nothing has is told of later
    if op.random or op.has_subgraphs:
        return None
    if op.of_shapes:
        return _of_their_shapes(node)
    for value in node.inputs:
        if value is not None and value.const is None:
            return None
    if op._reference is None:
        return None
    return [None if v is None else v.const for v in node.inputs]


def _of_their_shapes(node: Node) -> list[np.ndarray | None] | None:
    """Zeros, held once each, in the place of inputs of known shapes."""
    arrays: list[np.ndarray | None] = []
    for value in node.inputs:
        if value is not None and (value.dtype is None or not value.type.is_static):
            return None
        dims = () if value is None else tuple(d for d in value.shape or () if isinstance(d, int))
        if math.prod(dims) > np.iinfo(np.intp).max:
            return None  # sizes that no array has
        zeros = None if value is None else np.zeros((), value.type.dtype.np)
        arrays.append(None if zeros is None else np.broadcast_to(zeros, dims))
    return arrays


def _grows(graph: Graph, node: Node, arrays: list[np.ndarray | None]) -> bool:
    """Whether the folded constants would be large, and larger than what they replace."""
    after = 0
    for value in node.outputs:
        if value.dtype is not None and value.type.is_static:
            after += value.type.nbytes
    if after <= FOLD_LIMIT_BYTES:
        return False
    inputs = {id(v): v for v in node.inputs if v is not None and v.const is not None}
    if after > sum(v.type.nbytes for v in inputs.values()):
        return True
    if all(len(v.readers) == 1 for v in inputs.values()):
        return False  # they go when this node goes
    return after + constant_bytes(graph) > FOLD_TOTAL_BYTES


def constant_bytes(graph: Graph) -> int:
    """Bytes of all constants that the graph's nodes read, each counted once."""
    values = {id(v): v for n in graph.nodes for v in n.inputs if v is not None}
    return sum(v.const.nbytes for v in values.values() if v.const is not None)


def _make_constant(
    graph: Graph, node: Node, arrays: list[np.ndarray], nested: Iterable[Graph]
) -> None:
    for value, array in zip(list(node.outputs), arrays, strict=False):
        array = np.asarray(array, order="C")
        const = Value(value.name, value.dtype, const=array, quant=value.quant)
        const.integers = stored_integers(node)
        if value.dtype is not DType.BF16 and not (value.dtype and value.dtype.is_narrow):
            const.dtype = DType.of(array)
        _replace(graph, nested, value, const)
    graph.remove(node)


def nested_graphs(graph: Graph) -> list[Graph]:
    """All graphs that a graph's nodes hold, at any depth."""
    own = [sub for node in holders(graph) for _, sub in node.subgraphs()]
    return own + [inner for sub in own for inner in nested_graphs(sub)]


def _replace(graph: Graph, nested: Iterable[Graph], old: Value, new: Value) -> None:
    """`new` for `old` everywhere; a value knows its readers in nested graphs, which may also hand
    it out."""
    graph.replace_uses(old, new)
    for sub in nested:
        sub.replace_uses(old, new)


def has_sizes(graph: Graph) -> bool:
    """Whether every size in the graph is a number, and those of its nodes follow from their
    inputs."""
    if not all(v.dtype is not None and v.type.is_static for v in graph.inputs):
        return False
    return all(map(_has_sizes, graph.nodes))


def _has_sizes(node: Node) -> bool:
    if node.attrs and node.has_subgraph:
        return False  # some of its nodes may never run
    try:
        types = infer_node(node)
    except LiteError:
        return False
    known = [v.type for v in node.outputs if v.dtype is not None]
    return (
        len(known) == len(node.outputs)
        and all(info.is_static for info in known)
        and all(map(eq, known, types))
    )


def is_specialised(graph: Graph) -> bool:
    """Whether `specialise` would give a mere copy."""
    if not has_sizes(graph) or any(_foldable(node) is not None for node in graph.nodes):
        return False
    handed = set(graph.outputs)
    return all(any(v.readers or v in handed for v in node.outputs) for node in graph.nodes)


def specialise(graph: Graph, shapes: Mapping[str, Shape] | None = None) -> Graph:
    """A copy with input shapes fixed, types inferred and shape arithmetic folded.

    Node by node: infer, then fold when everything it reads is constant. Values whose shape depends
    on data stay without a static shape. Raises ShapeError for a symbolic input dimension left.
    """
    out = graph.copy()
    for value in out.inputs:
        given = (shapes or {}).get(value.name)
        if given is not None:
            value.shape = check_shape(value, tuple(given))
        if value.dtype is None or not value.type.is_static:
            sizes = "x".join(str(d) if isinstance(d, int) else "?" for d in value.shape or "????")
            raise ShapeError(
                tr(
                    "input {name} has shape {type}",
                    name=value.name,
                    type=value.type if value.dtype else "?",
                ),
                fix=tr(
                    "fix it with --shape {name}:{sizes} (a number for each ?)",
                    name=shlex.quote(value.name),
                    sizes=sizes,
                ),
            )
    waiting, nested = list(reversed(out.nodes)), nested_graphs(out)
    while waiting:
        node = waiting.pop()
        if node.op == "If" and (taken := _inline_branch(out, node, nested)) is not None:
            waiting.extend(reversed(taken))
            continue
        try:
            types = infer_node(node)
        except ShapeError as error:
            for value in node.outputs:
                value.shape = None
            if any(
                v is not None and (v.dtype is None or not v.type.is_static) for v in node.inputs
            ):
                continue  # reads a value whose shape depends on data
            if any(True for _ in node.subgraphs()):
                continue  # a branch that these shapes never take need not fit them
            raise ShapeError(error, fix=tr("the model does not fit these input shapes")) from None
        for value, info in zip(node.outputs, types, strict=False):
            value.dtype = info.dtype
            if not _same(
                value.shape, info.shape
            ):  # or the object stays, by which its type is known
                value.shape = info.shape
        fold_node(out, node, nested)
    out.remove_unread()
    return out


def _inline_branch(graph: Graph, node: Node, nested: Iterable[Graph]) -> list[Node] | None:
    """An If whose condition is constant: the taken branch's nodes in its place, None otherwise."""
    condition = node.input(0)
    if condition is None or condition.const is None or condition.const.size != 1:
        return None
    attrs = get_op("If").filled_attrs(node)
    branch = attrs["then_branch" if condition.const.item() else "else_branch"]
    if not isinstance(branch, Graph) or len(branch.outputs) < len(node.outputs):
        raise ShapeError(
            tr("its branch does not have {values} outputs", values=len(node.outputs)),
            where=node.name,
        )
    at, names = graph.nodes.index(node), {v.name for v in graph.values()}
    for inner in branch.nodes:
        for value in inner.outputs:
            if value.name in names:
                value.name = graph.unique(value.name)
    graph.nodes[at:at] = branch.nodes
    for old, new in zip(list(node.outputs), branch.outputs):
        _replace(graph, nested, old, new)
    graph.remove(node)
    return list(branch.nodes)


def check_shape(value: Value, given: Shape) -> Shape:
    """`given` when it fits the declared shape, whose open sizes may stay as they are. Raises
    ShapeError that says both."""
    declared = value.shape
    if any(d not in (declared or ()) if not isinstance(d, int) else d < 0 for d in given):
        raise ShapeError(
            tr("input {name}: {given!r} is not a valid shape", name=value.name, given=given),
            fix=tr("use whole numbers"),
        )
    if declared is None:
        return given
    if not fits(declared, given):
        raise misfit(value.name, value.type, given)
    return given
