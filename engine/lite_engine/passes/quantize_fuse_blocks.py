"""Products with weights that DequantizeLinear reads in blocks keep them in 4 bits.

MatMul(x, DQ(W))                         MatMulNBits(x, W)         blocks along the inner axis
Gemm(x, DQ(W), c)                        MatMulNBits(x, W, c)
MatMulNBits(x, W) + b                    MatMulNBits(x, W, b)
"""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..ir import Graph, Node, Value
from ..ops.matmul_nbits import group_count, pack_bits
from ._core import C, Match, P, Skip, rule, skip
from ._rewrite import constant_like, per_channel, rank_of

_WEIGHT = P("DequantizeLinear", C("q"), C("scale"), C("zero?"), name="dq")


@rule("quantize-fuse-blocks")
class quantize_fuse_blocks:
    patterns = [
        P("MatMul", "x", _WEIGHT, name="product"),
        P("Gemm", "x", _WEIGHT, C("c?"), name="product"),
    ]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        q, scale = m.q.const, m.scale.const
        if q.ndim != 2 or scale.ndim != 2:
            return skip(tr("the weight has no scales of blocks"), m.dq)
        if _inner_axis(m) != m.dq.attrs.get("axis", 1) % 2:
            return skip(tr("the blocks do not run along the inner axis"), m.dq)
        size = m.dq.attrs.get("block_size", 0)
        if (
            size < 16
            or size % 2
            or group_count(q.shape[_inner_axis(m)], size) != scale.shape[_inner_axis(m)]
        ):
            return skip(tr("blocks of {size} elements have no kernel", size=size), m.dq)
        if _stored(m) is None:
            return skip(tr("the weight does not fit 4 bits"), m.dq)
        if m.product.op == "Gemm":
            attrs = m.product.attrs
            if attrs.get("transA", 0) or attrs.get("alpha", 1.0) != 1:
                return skip(tr("it has alpha, beta or transA"), m.product)
            c = m.array("c")
            columns = q.shape[1 - _inner_axis(m)]
            if c is not None and (
                attrs.get("beta", 1.0) != 1 or per_channel(c, columns, 2) is None
            ):
                return skip(tr("the bias is not one number per column"), m.product)
        return None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        axis, size = _inner_axis(m), m.dq.attrs["block_size"]
        stored = _stored(m)
        assert stored is not None
        q, zeros = (a if axis == 1 else a.T for a in stored)
        scales = m.scale.const if axis == 1 else m.scale.const.T
        rows, columns = q.shape
        padded = np.zeros((rows, scales.shape[1] * size), np.uint8)
        padded[:, :columns] = q
        name = m.product.name
        arrays = {
            "q4": pack_bits(padded.reshape(rows, -1, size), 4),
            "scales": np.ascontiguousarray(scales).astype(np.float32),
            "zero_points": None if (zeros == 8).all() else pack_bits(zeros, 4),
        }
        inputs: list[Value | None] = [
            None if a is None else graph.constant(a, graph.unique(f"{name}.{key}"))
            for key, a in arrays.items()
        ]
        c = m.array("c")
        if c is not None:
            bias = per_channel(c, rows, 2)
            assert bias is not None
            inputs += [None, constant_like(graph, bias.astype(np.float32), m.bound["c"], "bias")]
        attrs = {"K": columns, "N": rows, "block_size": size}
        kept = ("activation", "activation_params")
        attrs.update({k: m.product.attrs[k] for k in kept if k in m.product.attrs})
        return graph.replace([m.dq, m.product], "MatMulNBits", [m.x, *inputs], attrs, name=name)


def _inner_axis(m: Match) -> int:
    """Axis of the stored weight that the product sums over."""
    if m.product.op == "Gemm":
        return int(bool(m.product.attrs.get("transB", 0)))
    return 0


def _stored(m: Match) -> tuple[np.ndarray, np.ndarray] | None:
    """The weight and its zero points as u8 of 0…15; None when they do not fit."""
    q = m.q.const
    if q.dtype not in (np.int8, np.uint8) or m.scale.const.dtype != np.float32:
        return None
    zero = m.array("zero")
    zeros = np.zeros(m.scale.const.shape, q.dtype) if zero is None else zero
    shift = 8 if q.dtype == np.int8 else 0
    both = [a.astype(np.int16) + shift for a in (q, zeros)]
    if zeros.shape != m.scale.const.shape or any(a.min() < 0 or a.max() > 15 for a in both):
        return None
    return both[0].astype(np.uint8), both[1].astype(np.uint8)


@rule("fuse-nbits-bias")
class fuse_nbits_bias:
    patterns = [P("Add", P("MatMulNBits", name="product", more=True), C("b"))]

    def check(self, graph: Graph, m: Match) -> Skip | None:
        if m.product.attrs.get("activation") or m.root.attrs.get("activation"):
            return skip(tr("an activation comes between"), m.root)
        if m.product.input(5) is not None:
            return skip(tr("it has a bias already"), m.product)
        rank = rank_of(m.product.output)
        if rank is None or per_channel(m.b.const, m.product.attrs["N"], rank, rank - 1) is None:
            return skip(tr("the constant is not one number per column"), m.root)
        return None

    def rewrite(self, graph: Graph, m: Match) -> Node:
        rank = rank_of(m.product.output)
        assert rank is not None
        bias = per_channel(m.b.const, m.product.attrs["N"], rank, rank - 1)
        assert bias is not None
        inputs = [*m.product.inputs, *[None] * 5][:5]
        inputs.append(constant_like(graph, bias, m.b, "bias"))
        attrs = m.product.attrs
        return graph.replace([m.product, m.root], "MatMulNBits", inputs, attrs, name=m.product.name)
