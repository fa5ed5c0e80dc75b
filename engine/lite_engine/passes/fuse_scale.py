"""A number that multiplies a whole tensor goes where there is less to multiply.

    (x · a) · b                      →  x · (a·b)
    (x · s) · a                      →  x · (s · a)                      s smaller than x
    view(Split(Gemm(x, W, c))) · a   →  view(Split(Gemm(x, W·s, c·s)))   s: a in that part, else 1

What it multiplied is a feature map behind a gate (NFNet), or the queries of an attention that mixes
heads and stays written out (CaiT, DaViT).
"""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node, Value
from ._core import C, Match, P, Skip, captured_outputs, no_match, rule, skip
from ._rewrite import constant_like, per_channel, rank_of, same_shape

_SCALES = ("Mul", "Div")


def _number(node: Node, constant: Value) -> float | None:
    """What the node multiplies every element with; None where that is not one finite number, or
    where it changes the rank."""
    array, rank = constant.const, rank_of(node.output)
    if array is None or array.size != 1 or array.dtype.kind != "f":
        return None
    others = [v for v in node.inputs if v is not None and v is not constant]
    if rank is None or array.ndim > rank or not all(same_shape(v, node.output) for v in others):
        return None
    number = float(array.ravel()[0])
    if node.op == "Div":
        number = 1 / number if number else np.inf
    return number if np.isfinite(number) else None


@rule("merge-scales")
class merge_scales:
    patterns = [P(_SCALES, P(_SCALES, "x", C("a"), name="first"), C("b"))]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        return None if _both(m) is not None else no_match(m.root)

    def rewrite(self, graph: Graph, m: Match) -> Node:
        both = _both(m)
        assert both is not None
        made = constant_like(graph, both, m.a, "scale")
        return graph.replace([m.first, m.root], "Mul", [m.x, made])


def _both(m: Match) -> np.ndarray | None:
    """The product of two numbers; None where their type has no such finite number."""
    a, b = _number(m.first, m.a), _number(m.root, m.b)
    if a is None or b is None:
        return None
    with np.errstate(over="ignore", under="ignore"):
        array = np.asarray(a * b, m.a.const.dtype)
    return array if np.isfinite(array) and bool(array) == bool(a and b) else None


@rule("hoist-scale")
class hoist_scale:
    patterns = [P(_SCALES, P("Mul", "x", "s", name="product"), C("a"))]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        computed = not m.x.is_const and not m.s.is_const
        if not computed or not _smaller(m.s, m.x) or _number(m.root, m.a) is None:
            return no_match(m.root)
        return None

    def rewrite(self, graph: Graph, m: Match) -> list[Node]:
        scaled = graph.add(
            m.root.op, [m.s, m.a], name=graph.unique(m.root.name), sources=m.root.sources,
            before=m.product,
        )  # fmt: skip
        sources = m.product.sources
        made = graph.replace([m.product, m.root], "Mul", [m.x, scaled.output], name=m.product.name)
        made.sources = sources
        return [scaled, made]


def _smaller(s: Value, x: Value) -> bool:
    """Whether `s` is repeated along an axis of `x`, and nothing of `x` along one of `s`."""
    if s.shape is None or x.shape is None or len(s.shape) > len(x.shape):
        return False
    padded = (1,) * (len(x.shape) - len(s.shape)) + tuple(s.shape)
    pairs = list(zip(padded, x.shape))
    fits = all(d == 1 or (d is not None and d == own) for d, own in pairs)
    return fits and any(d == 1 and isinstance(own, int) and own > 1 for d, own in pairs)


@rule("fuse-split-scale")
class fuse_split_scale:
    patterns = [P(_SCALES, P(("Reshape", "Transpose"), "part", name="view", more=True), C("k"))]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        found = _columns(m.part)
        if found is None or _number(m.root, m.k) is None:
            return no_match(m.root)
        gemm, held = found[0], captured_outputs(graph)
        if gemm.attrs.get("activation"):
            return skip(tr("an activation comes between"), m.root)
        for value, reader in _above(m.part, m.view):
            if graph.sole_reader(value) is not reader or id(value) in held:
                return skip(tr("{node} output has another reader", node=gemm.op), gemm)
        return None

    def rewrite(self, graph: Graph, m: Match) -> list[Node]:
        found, number = _columns(m.part), _number(m.root, m.k)
        assert found is not None and number is not None
        gemm, part, constants = found
        scale = np.ones(constants[0].shape[1], constants[0].dtype)
        scale[part] = number
        inputs = list(gemm.inputs)
        for i, (array, old) in enumerate(zip(constants, gemm.inputs[1:]), 1):
            scaled = (array * scale).astype(array.dtype)
            inputs[i] = constant_like(graph, scaled, old, "weight" if i == 1 else "bias")
        made = graph.replace([gemm], "Gemm", inputs, {**gemm.attrs, "transB": 0})
        made.sources = tuple(dict.fromkeys((*made.sources, *m.root.sources)))
        view = graph.replace([m.view, m.root], m.view.op, list(m.view.inputs), m.view.attrs)
        return [made, view]


def _above(part: Value, reader: Node) -> list[tuple[Value, Node]]:
    """Each value from an output of a Split up to a product in front, with its reader. A Reshape may
    lie between."""
    found = [(part, reader)]
    for op in ("Split", "Reshape"):
        maker = found[-1][0].producer
        if maker is not None and maker.op == op and maker.inputs[0] is not None:
            found.append((maker.inputs[0], maker))
    return found


def _columns(part: Value) -> tuple[Node, slice, list[np.ndarray]] | None:
    """The product whose columns a Split divides, the columns in this output, and what it multiplies
    with and adds, columns last. None where they are not constant, or the Split has other axes."""
    split = part.producer
    if split is None or split.op != "Split" or split.inputs[0] is None:
        return None
    gemm, dims = _above(part, split)[-1][0].producer, split.inputs[0].shape
    if gemm is None or gemm.op != "Gemm" or not dims:
        return None
    constants = [v.const for v in gemm.inputs[1:] if v is not None and v.const is not None]
    if len(constants) != len(gemm.inputs) - 1:
        return None
    if gemm.attrs.get("transB", 0):
        constants[0] = constants[0].T
    columns = constants[0].shape[1]
    if any(per_channel(c, columns, 2) is None for c in constants[1:]):
        return None
    widths = [v.shape[-1] for v in split.outputs if v.shape and isinstance(v.shape[-1], int)]
    last = split.attrs.get("axis", 0) in (-1, len(dims) - 1) and dims[-1] == columns
    if not last or len(widths) != len(split.outputs) or sum(widths) != columns:
        return None
    place = split.outputs.index(part)
    return gemm, slice(sum(widths[:place]), sum(widths[: place + 1])), constants
