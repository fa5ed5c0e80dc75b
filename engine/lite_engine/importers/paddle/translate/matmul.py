"""Matrix products."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lite_messages import tr

from ....ir import Value
from ..registry import Call, translates
from .fused import fused_activation
from .lite_int8 import bias_of, weight_of, with_int8_input, with_int8_output


def swap_last(op: Call, x: Value) -> Value:
    rank = op.rank(x)
    if rank < 2:
        return x
    return op.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def flat(op: Call, x: Value, columns: int) -> Value:
    """x as a matrix: the first `columns` axes are rows."""
    rank = op.rank(x)
    if rank == 2 and columns == 1:
        return x
    return op.node("Flatten", [x], axis=columns)


@translates("matmul", "matmul_v2", "bmm", "mv", "fused_matmul")
def _(op: Call) -> None:
    x = with_int8_input(op, "X")
    y = weight_of(op, "Vec") if op.type == "mv" else weight_of(op, "Y", axis=1)
    if op.attr("transpose_X", op.attr("trans_x", False)):
        x = swap_last(op, x)
    if op.attr("transpose_Y", op.attr("trans_y", False)):
        y = swap_last(op, y)
    z = op.node("MatMul", [x, y])
    alpha = float(op.attr("alpha", 1.0)) if op.type == "matmul" else 1.0
    if alpha != 1.0:
        z = op.node("Mul", [z, op.const(alpha, like=z)])
    if op.type == "matmul" and op.rank(x) == 1 and op.rank(y) == 1:
        z = op.to_shape(z, [1])
    op.set("Out", with_int8_output(op, fused_activation(op, z), "Out"))


@translates("mul")
def _(op: Call) -> None:
    """x flattened to (rows, K) times y flattened to (K, columns), leading and trailing axes back"""
    x, y = with_int8_input(op, "X"), weight_of(op, "Y", axis=1)
    rows, cols = int(op.attr("x_num_col_dims", 1)), int(op.attr("y_num_col_dims", 1))
    rank_x, rank_y = op.rank(x), op.rank(y)
    if rank_y == 2 and cols == 1 and rank_x == rows + 1:
        z = op.node("MatMul", [x, y])  # the rows may keep their axes
    else:
        z = op.node("MatMul", [flat(op, x, rows), flat(op, y, cols)])
        if rows != 1 or rank_y - cols != 1:
            z = _unflatten(op, z, x, rows, list(y.shape or ())[cols:])
    op.set("Out", with_int8_output(op, z, "Out"))


def _unflatten(op: Call, z: Value, x: Value, rows: int, tail: Sequence[object]) -> Value:
    if not all(isinstance(d, int) for d in tail):
        raise op.unsupported(tr("its second operand has an unknown shape"))
    lead = list(x.shape or ())[:rows]
    dims = [d if isinstance(d, int) else -1 for d in lead]
    if dims.count(-1) > 1:
        shape = op.node("Shape", [x], start=0, end=rows)
        return op.node("Reshape", [z, op.node("Concat", [shape, op.const(tail)], axis=0)])
    return op.to_shape(z, [*dims, *tail])  # type: ignore[list-item]


@translates("fc")
def _(op: Call) -> None:
    x, w = with_int8_input(op, "Input"), weight_of(op, "W", axis=1)
    rows = int(op.attr("in_num_col_dims", 1))
    rank = op.rank(x)
    rows = rows + rank if rows < 0 else rows
    wide = w.shape[0] if w.shape is not None else None
    if (rank == rows + 1 and op.attr("op_type", "mul") != "matmul") or (
        op.attr("op_type") == "matmul" and x.shape is not None and x.shape[-1] == wide
    ):
        z = op.node("MatMul", [x, w])
    else:
        z = op.node("MatMul", [flat(op, x, rows), w])
        if rows != 1:
            z = _unflatten(op, z, x, rows, list(w.shape or ())[1:])
    bias = bias_of(op)
    if bias is not None:
        z = op.node("Add", [z, op.to_shape(bias, [-1]) if op.rank(bias) > 1 else bias])
    if op["Prelu_alpha"] is not None:
        alpha = op.to_shape(op.need("Prelu_alpha"), [-1])
        z = op.node("PRelu", [z, alpha])
    else:
        z = fused_activation(op, z)
    op.set("Out", with_int8_output(op, z, "Out"))


@translates("addmm")
def _(op: Call) -> None:
    """β·input + α·(x·y)"""
    op.set("Out", op.node(
        "Gemm", [op.need("X"), op.need("Y"), op.need("Input")],
        alpha=float(op.attr("Alpha", op.attr("alpha", 1.0))),
        beta=float(op.attr("Beta", op.attr("beta", 1.0))),
    ))  # fmt: skip


@translates("linear_v2", "linear")
def _(op: Call) -> None:
    z = op.node("MatMul", [op.need("X"), op.need("Y")])
    op.set("Out", z if op["Bias"] is None else op.node("Add", [z, op.need("Bias")]))


@translates("dot")
def _(op: Call) -> None:
    product = op.node("Mul", [op.need("X"), op.need("Y")])
    op.set("Out", op.node("ReduceSum", [product, op.const([-1])], keepdims=0))


@translates("cos_sim")
def _(op: Call) -> None:
    x, y = op.need("X"), op.need("Y")
    last = op.const([-1])
    dot = op.node("ReduceSum", [op.node("Mul", [x, y]), last], keepdims=1)
    size = [op.node("ReduceL2", [v, last], keepdims=1) for v in (x, y)]
    op.set("Out", op.node("Div", [dot, op.node("Mul", size)]))


@translates("einsum")
def _(op: Call) -> None:
    op.set("Out", op.node("Einsum", op.all("Operands"), equation=str(op.attr("equation"))))


@translates("flash_attn")
def _(op: Call) -> None:
    """softmax(q·kᵀ/√d)·v with q, k, v (batch, length, heads, size)"""
    q, k, v = (op.transpose(op.need(s), [0, 2, 1, 3]) for s in ("q", "k", "v"))
    size = q.shape[-1] if q.shape is not None else None
    if not isinstance(size, int) or op.flag("causal"):
        raise op.unsupported(tr("only plain attention of a known head size is supported"))
    scores = op.node("MatMul", [q, swap_last(op, k)])
    scores = op.node("Mul", [scores, op.const(1 / math.sqrt(size))])
    weights = op.node("Softmax", [scores], axis=-1)
    op.set("out", op.transpose(op.node("MatMul", [weights, v]), [0, 2, 1, 3]))
