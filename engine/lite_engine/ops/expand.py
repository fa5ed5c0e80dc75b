"""Operators written out in others, for backends that have no kernel of their own for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import MISFIT, ShapeError
from ..ir import Dim, DType, Graph, Node, Value
from ._core import get_op
from ._expand_transforms import TRANSFORMS
from ._expand_views import VIEWS, is_fixed, sizes_of
from ._writer import Condition, Rewrite, Types, Writer, sizes
from .activation import FUSED
from .attention import expressible, heads_type


def expand_missing(graph: Graph, runs: Callable[[Node, Types], bool]) -> None:
    """Writes out, in place, every node that `runs` is false of and that can be written out. The
    graph is specialised: types are known and sizes fixed."""
    for op, (_, write) in _EXPANSIONS.items():  # what one becomes another may write out
        for node in [n for n in graph.nodes if n.op == op]:
            types = [None if v is None or v.dtype is None else v.type for v in node.inputs]
            if can_expand(node, types) and not runs(node, types):
                write(graph, node, types)


def can_expand(node: Node, types: Types) -> bool:
    """Whether a node can be written out in others. Not where an input has no elements: a Reshape
    would take its 0 for a size that stays. Raises ShapeError for types that the operator cannot
    have, which a damaged file may state."""
    if any(t is not None and not t.is_const and 0 in (t.shape or ()) for t in types):
        return False
    try:
        return node.op in _EXPANSIONS and _EXPANSIONS[node.op][0](node, types)
    except MISFIT as error:
        raise ShapeError(error, where=f"{node.name} ({node.op})") from error


def has_kernels(node: Node) -> bool:
    """Whether any backend has a kernel for the operator."""
    return bool(get_op(node.op).kernels)


def needs_float32(node: Node) -> bool:
    """Whether its products would lose what matters in 16 bits: quiet bands beside a loud one."""
    return node.op in ("DFT", "STFT")


def is_ours(node: Node) -> bool:
    """Whether a model format may lack the operator in this form, or backends of others."""
    return node.op in ("QLinearAttention", "QLinearMatMul", "Attention", "TurnPairs")


def _plain_attention(node: Node, types: Types) -> bool:
    """Of known heads, without a state of keys and values; a causal one of fixed lengths."""
    if any(t is not None and (t.shape is None or None in t.shape) for t in types):
        return False
    lengths = [t.dims[-2] for t in types[:2] if t is not None]
    fixed = not node.attrs.get("is_causal") or all(isinstance(n, int) for n in lengths)
    widths = [
        t.dims[i] for t in types[:3] if t is not None for i in range(1, t.rank) if i != t.rank - 2
    ]
    fixed = fixed and all(isinstance(n, int) for n in widths)
    return fixed and all(t is None for t in types[4:]) and expressible(node, types) is True


def _of_two_computed(_: Node, types: Types) -> bool:
    """Are both matrices computed, with one scale each?"""
    b, parameters = types[3], [types[i] for i in (1, 2, 4, 5, 6, 7)]
    single = all(t is not None and t.dims in ((), (1,)) for t in parameters)
    return single and b is not None and b.const is None


#: What scalars are where float32 would not be of the type that is computed in.
_SCALARS: dict[DType, Any] = {DType.F16: np.float16, DType.F64: np.float64}


def _attention(graph: Graph, node: Node, types: Types) -> None:
    """Products around a softmax; a group's query heads are rows of one product."""
    q, k, v = types[:3]
    assert q is not None and k is not None and v is not None
    attrs = node.attrs
    kv = attrs.get("kv_num_heads")
    batch, heads, rows, size = heads_type(q, attrs.get("q_num_heads"))
    _, shared, keys, _ = heads_type(k, kv)
    v_size = heads_type(v, kv)[3]
    assert isinstance(heads, int) and isinstance(size, int)  # `_plain_attention`
    assert isinstance(shared, int) and isinstance(v_size, int)
    write = Writer(graph, node)
    group = heads // shared
    together = group * rows if isinstance(rows, int) else None  # of the rows of a group

    def split(value: Value, count: int, perm: list[int], swap: bool) -> Value:
        if value.shape is not None and len(value.shape) == 3:
            width = value.shape[2]
            assert isinstance(width, int)
            value = write.shaped(value, *value.shape[:2], count, width // count)
            return write("Transpose", value, perm=perm)
        return write("Transpose", value, perm=[0, 1, 3, 2]) if swap else value

    query, key, values = node.inputs[:3]
    assert query is not None and key is not None and values is not None
    query = split(query, heads, [0, 2, 1, 3], False)
    scale = attrs.get("scale") or 1 / math.sqrt(size)
    number = _SCALARS.get(q.dtype, np.float32)
    query = write("Mul", query, np.array(number(scale)))
    if shared != heads:
        query = write.shaped(query, batch, shared, together, size)
    scores = write("MatMul", query, split(key, shared, [0, 2, 3, 1], True))
    if shared != heads:
        scores = write.shaped(scores, batch, heads, rows, keys)
    if attrs.get("softcap"):
        cap = np.array(number(attrs["softcap"]))
        scores = write("Mul", write("Tanh", write("Div", scores, cap)), cap)
    scores, guarded = _biased(write, node, scores, rows, keys, number)
    chance = write("Softmax", scores, axis=-1)
    if guarded:
        zero = np.array(number(0))
        chance = write("Where", write("IsNaN", chance), zero, chance)
    if shared != heads:
        chance = write.shaped(chance, batch, shared, together, keys)
    y = write("MatMul", chance, split(values, shared, [0, 2, 1, 3], False))
    if shared != heads:
        y = write.shaped(y, batch, heads, rows, v_size)
    if q.rank == 4:
        graph.replace([node], "Identity", [y])
        return
    y = write("Transpose", y, perm=[0, 2, 1, 3])
    shape = graph.constant(sizes((batch, rows, heads * v_size), y))
    graph.replace([node], "Reshape", [y, shape])


def _biased(
    write: Writer, node: Node, scores: Value, rows: Dim, keys: Dim, number: Any
) -> tuple[Value, bool]:
    """Scores with the mask, and whether a row may see nothing: Attention gives 0 there."""
    mask, guarded = node.input(3), False
    if mask is not None:
        low = np.array(number(-np.inf))
        if mask.dtype is DType.BOOL:
            mask = write("Where", mask, np.array(number(0)), low)
        array = node.input(3).const  # type: ignore[union-attr]
        if array is None:
            guarded = True
        else:
            hides = ~array if array.dtype == bool else np.isneginf(array)
            guarded = bool(hides.all(-1).any())
        scores = write("Add", scores, mask)
    if node.attrs.get("is_causal"):
        assert isinstance(rows, int) and isinstance(keys, int)
        causal = np.triu(np.full((rows, keys), -np.inf, number), 1)
        scores = write("Add", scores, causal)
        guarded = guarded or mask is not None
    return scores, guarded


def _integer_attention(graph: Graph, node: Node, types: Types) -> None:
    """Attention of real numbers between DequantizeLinear and QuantizeLinear."""
    write = Writer(graph, node)
    given = [node.input(i) for i in range(12)]
    q, k, v = (write("DequantizeLinear", *given[at : at + 3]) for at in (0, 3, 6))
    mask = given[11:] if given[11] is not None else []
    y = write("Attention", q, k, v, *mask, **node.attrs)
    graph.replace([node], "QuantizeLinear", [y, *given[9:11]])


def _integer_product(graph: Graph, node: Node, types: Types) -> None:
    """A product of real numbers between DequantizeLinear and QuantizeLinear."""
    write = Writer(graph, node)
    given = [node.input(i) for i in range(8)]
    a, b = (write("DequantizeLinear", *given[at : at + 3]) for at in (0, 3))
    graph.replace([node], "QuantizeLinear", [write("MatMul", a, b), *given[6:]])


def _group_norm(graph: Graph, node: Node, types: Types) -> None:
    """An instance norm of the groups, then scale and bias of each channel."""
    write, (x, scale, bias) = Writer(graph, node), node.inputs[:3]
    info, groups = types[0], int(node.attrs.get("num_groups", 1))
    assert x is not None and scale is not None and bias is not None and info is not None
    dims = [int(d or 0) for d in info.dims]  # type: ignore[call-overload]
    of_channels = (dims[1], *[1] * (len(dims) - 2))
    one, zero = (np.full(groups, number, info.dtype.np) for number in (1, 0))
    grouped = write.shaped(x, dims[0], groups, math.prod(dims[1:]) // groups)
    epsilon = float(node.attrs.get("epsilon", 1e-5))
    y = write.shaped(write("InstanceNormalization", grouped, one, zero, epsilon=epsilon), *dims)
    y = write("Mul", y, write.shaped(scale, *of_channels))
    fused = {k: node.attrs[k] for k in FUSED if k in node.attrs}
    graph.replace([node], "Add", [y, write.shaped(bias, *of_channels)], fused)


def _turns(node: Node, types: Types) -> bool:
    """Heads of fixed sizes, and an angle for each pair and row."""
    x, cos, sin, *given = types
    if x is None or cos is None or sin is None or not is_fixed(node, types):
        return False
    heads, part = node.attrs.get("num_heads") or 0, node.attrs.get("rotary_embedding_dim") or 0
    if not (isinstance(heads, int) and isinstance(part, int)):
        return False
    size = x.dims[-1] if x.rank == 4 else x.dims[-1] // heads if heads else 0  # type: ignore[operator]
    width = part or size
    whole = x.rank == 4 or (x.rank == 3 and heads > 0 and x.dims[-1] % heads == 0)  # type: ignore[operator]
    rank = 2 if given and given[0] is not None else 3
    pairs = 0 < width <= size and width % 2 == 0 and cos.dims[-1:] == (width // 2,)  # type: ignore[operator]
    return whole and pairs and cos.rank == rank and sin.dims == cos.dims and 0 not in x.dims


def _rotary(graph: Graph, node: Node, types: Types) -> None:
    """Pairs of numbers turned by their angle: products with cosines and sines."""
    write, (x, cos, sin, *given) = Writer(graph, node), node.inputs
    assert x is not None and cos is not None and sin is not None
    sizes, between = sizes_of(x), bool(node.attrs.get("interleaved"))
    if len(sizes) == 3:
        heads = int(node.attrs["num_heads"])
        heads_at, shape = 2, [*sizes[:2], heads, sizes[2] // heads]
        turned = write.shaped(x, *shape)
    else:
        heads_at, shape, turned = 1, sizes, x
    size, width = shape[-1], int(node.attrs.get("rotary_embedding_dim") or shape[-1])
    if given and given[0] is not None:
        cos, sin = (write("Gather", table, given[0], axis=0) for table in (cos, sin))
    cos, sin = (
        write("Unsqueeze", table, np.array([heads_at, 4] if between else [heads_at], np.int64))
        for table in (cos, sin)
    )

    def part(value: Value, begin: int, end: int) -> Value:
        return write("Slice", value, *(np.array([n], np.int64) for n in (begin, end, -1)))

    moved = part(turned, 0, width) if width < size else turned
    if between:
        moved = write.shaped(moved, *shape[:-1], width // 2, 2)
    half = 1 if between else width // 2
    a, b = part(moved, 0, half), part(moved, half, 2 * half)
    real = write("Sub", write("Mul", cos, a), write("Mul", sin, b))
    imaginary = write("Add", write("Mul", sin, a), write("Mul", cos, b))
    y = write("Concat", real, imaginary, axis=-1)
    if between:
        y = write.shaped(y, *shape[:-1], width)
    if width < size:
        y = write("Concat", y, part(turned, width, size), axis=-1)
    graph.replace([node], "Reshape", [y, graph.constant(np.array(sizes, np.int64))])


def _turn_pairs(graph: Graph, node: Node, types: Types) -> None:
    """x·cos + t·sin, where t is made of slices of x."""
    write, (x, cos, sin) = Writer(graph, node), node.inputs
    assert x is not None
    *lead, size = sizes_of(x)

    def part(begin: int, step: int) -> Value:
        end = size if node.attrs.get("interleaved") else begin + size // 2
        return write("Slice", x, *(np.array([n], np.int64) for n in (begin, end, -1, step)))

    if node.attrs.get("interleaved"):
        pairs = [
            write.shaped(v, *lead, size // 2, 1) for v in (write("Neg", part(1, 2)), part(0, 2))
        ]
        turned = write.shaped(write("Concat", *pairs, axis=-1), *lead, size)
    else:
        turned = write("Concat", write("Neg", part(size // 2, 1)), part(0, 1), axis=-1)
    graph.replace([node], "Add", [write("Mul", x, cos), write("Mul", turned, sin)])


def _always(*_: object) -> bool:
    return True


_EXPANSIONS: dict[str, tuple[Condition, Rewrite]] = {
    "QLinearAttention": (_always, _integer_attention),
    "QLinearMatMul": (_of_two_computed, _integer_product),
    "Attention": (_plain_attention, _attention),
    "GroupNormalization": (is_fixed, _group_norm),
    "RotaryEmbedding": (_turns, _rotary),
    "TurnPairs": (is_fixed, _turn_pairs),
    **TRANSFORMS,
    **VIEWS,
}
