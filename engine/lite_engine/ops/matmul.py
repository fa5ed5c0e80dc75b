"""MatMul and Gemm: matrix products with fused residual and activation."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Node, TypeInfo
from ._conditions import all_of, attr, constant, rank
from ._core import define_op
from ._helpers import broadcast_shapes, product, wide
from ._records import Cost
from ._samples import Draw, Sample
from ._sparse import SKIPS_ZEROS, SPARSE_FORMS, mostly_zeros
from .activation import FUSED, apply_activation

matmul = define_op(
    "MatMul",
    weights={0: 0, 1: -1},
    integer_form="matmul",
    quantized="weights",
    inputs="a b",
    attrs=FUSED,
    source="ONNX MatMul-13; activation is ours",
)


def matmul_shape(a: TypeInfo, b: TypeInfo) -> TypeInfo:
    """Shape of numpy.matmul, element type of a. Raises ShapeError."""
    left, right = a.dims, b.dims
    if not left or not right:
        raise ShapeError(tr("a scalar cannot be an operand of a matrix product"))
    left_is_row, right_is_column = len(left) == 1, len(right) == 1
    left = (1, *left) if left_is_row else left
    right = (*right, 1) if right_is_column else right
    if isinstance(left[-1], int) and isinstance(right[-2], int) and left[-1] != right[-2]:
        raise ShapeError(
            tr("inner dimensions {left} and {right} differ", left=left[-1], right=right[-2])
        )
    batch = broadcast_shapes(left[:-2], right[:-2]) or ()
    rows = () if left_is_row else (left[-2],)
    columns = () if right_is_column else (right[-1],)
    return a.with_shape((*batch, *rows, *columns))


def matmul_macs(a: TypeInfo, b: TypeInfo) -> int:
    """Multiply-accumulates of numpy.matmul."""
    return product(matmul_shape(a, b).dims) * int(a.dims[-1] or 0)  # type: ignore[call-overload]


@matmul.infer
def _(a: TypeInfo, b: TypeInfo, **_: Any) -> TypeInfo:
    return matmul_shape(a, b)


@matmul.reference
def _(
    a: np.ndarray, b: np.ndarray, *, activation: str, activation_params: list[float]
) -> np.ndarray:
    """numpy.matmul: (…,M,K) · (…,K,N) → (…,M,N), batch axes broadcast"""
    y = np.matmul(wide(a), wide(b))
    return apply_activation(activation, activation_params, y).astype(a.dtype, copy=False)


@matmul.cost
def _(a: TypeInfo, b: TypeInfo, **_: Any) -> Cost:
    return Cost(macs=matmul_macs(a, b))


gemm = define_op(
    "Gemm",
    weights={1: 1},
    integer_form="gemm",
    quantized="weights",
    inputs="a b c? residual?",
    packed_inputs=("b", "c"),
    attrs={"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0, **FUSED},
    source="ONNX Gemm-13; residual and activation are ours",
)


@gemm.infer
def _(
    a: TypeInfo,
    b: TypeInfo,
    c: TypeInfo | None,
    residual: TypeInfo | None,
    *,
    transA: int,
    transB: int,
    **_: Any,
) -> TypeInfo:
    if a.rank != 2 or b.rank != 2:
        raise ShapeError(
            tr("expected two inputs of rank 2, found {rank} and {other}", rank=a.rank, other=b.rank)
        )
    rows, inner = a.dims[::-1] if transA else a.dims
    inner_b, columns = b.dims[::-1] if transB else b.dims
    if isinstance(inner, int) and isinstance(inner_b, int) and inner != inner_b:
        raise ShapeError(
            tr("inner dimensions {inner} and {inner_b} differ", inner=inner, inner_b=inner_b)
        )
    y = a.with_shape((rows, columns))
    if residual is not None and residual.is_static and y.is_static and residual.dims != y.dims:
        raise ShapeError(
            tr(
                "the residual has shape {residual}, but the output {out}",
                residual=residual,
                out=y,
            )
        )
    return y


@gemm.reference
def _(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None,
    residual: np.ndarray | None,
    *,
    alpha: float,
    beta: float,
    transA: int,
    transB: int,
    activation: str,
    activation_params: list[float],
) -> np.ndarray:
    """y = activation(α·A·B + β·C + R); A (M,K), B (K,N) after transposing, C broadcast to (M,N),
    R (M,N)"""
    y = np.matmul(wide(a.T if transA else a), wide(b.T if transB else b))
    y = y if alpha == 1 else y * alpha
    if c is not None and beta != 0:
        y = y + (c if beta == 1 else c * beta)
    if residual is not None:
        y = y + residual
    return apply_activation(activation, activation_params, y).astype(a.dtype, copy=False)


@gemm.cost
def _(
    a: TypeInfo,
    b: TypeInfo,
    c: TypeInfo | None,
    residual: TypeInfo | None,
    *,
    transA: int,
    transB: int,
    **_: Any,
) -> Cost:
    rows, inner = a.dims[::-1] if transA else a.dims
    columns = b.dims[0] if transB else b.dims[1]
    outputs = product((rows, columns))
    return Cost(
        macs=outputs * product((inner,)), flops=outputs * ((c is not None) + (residual is not None))
    )


def _bias(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """c is a constant row (or number), or a matrix of the output's shape with beta 1, beside which
    no residual can be added."""
    c = types[2] if len(types) > 2 else None
    if c is None or not c.is_static:
        return c is None or tr("the shape of c is not known")
    y = node.output.shape or (0,)
    if c.is_const and (c.size == 1 or (c.dims[-1] == y[-1] and c.size == y[-1])):
        return True
    whole = c.shape == y and node.attrs.get("beta", 1.0) == 1.0 and node.input(3) is None
    return whole or tr("c is neither one row nor as large as the output")


def _no_constant_matrix(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """c of many rows is added as it lies, and constants keep their type."""
    c = types[2] if len(types) > 2 else None
    row = c is None or not c.is_const or c.size == 1 or c.size == c.dims[-1]
    return row or tr("c is a constant matrix")


gemm.kernel(
    "cpu",
    "f32_gemm",
    accepts_pitch=True,
    when=all_of(constant(1), attr("transA", 0), _bias),
    why=tr("dense matrix product"),
)


gemm.kernel(
    "cpu",
    "bf16_gemm",
    dtype="f32,bf16",
    mixed="a",  # not what is added, a sum over many layers
    accepts_pitch=True,
    when=all_of(constant(1), attr("transA", 0), _bias),
    rank=-1,
    why=tr("bf16 products, float32 sums: two multiplications per lane"),
    precision="bf16",
)
gemm.kernel(
    "cpu",
    "f16_gemm",
    dtype="f16",
    accepts_pitch=True,
    when=all_of(constant(1), attr("transA", 0), _bias, _no_constant_matrix),
    rank=-1,
    why=tr("fp16 in memory and in products: eight columns per register"),
    precision="f16",
)


def _row_bias(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """c is absent, or a constant of one number per column."""
    c = types[2] if len(types) > 2 else None
    columns = (node.output.shape or (0,))[-1]
    return c is None or (c.is_const and c.size == columns) or tr("c is not one row")


for _most, _rank in SPARSE_FORMS:
    gemm.kernel(
        "cpu", "f32_gemm_sparse", accepts_pitch=True, rank=_rank,
        when=all_of(constant(1), attr("transA", 0), _row_bias, mostly_zeros(1, _most)),
        why=SKIPS_ZEROS,
    )  # fmt: skip


@dataclass(frozen=True)
class Batches:
    """A product of matrices, (…,M,K)·(…,K,N), whose batch axes broadcast. Rows that follow one
    another and share the matrix on their right are rows of one product."""

    lead: tuple[int, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    m: int
    n: int
    k: int

    @classmethod
    def of(cls, a: tuple[int, ...], b: tuple[int, ...]) -> Batches:
        m, k = a[-2:] if len(a) > 1 else (1, *a)
        n = b[-1] if len(b) > 1 else 1
        rank = max(len(a), len(b), 2) - 2
        left, right = ((1,) * (rank - len(d[:-2])) + d[:-2] for d in (a, b))
        while left and right[-1] == 1:
            m *= left[-1]
            left, right = left[:-1], right[:-1]
        return cls(np.broadcast_shapes(left, right), left, right, m, n, k)

    def repeats(self, side: tuple[int, ...]) -> bool:
        """Whether the matrices of a side, `left` or `right`, are neither one nor all."""
        return side != self.lead and max(side) > 1


#: Most numbers of a copy in which each batch has its own matrix, and most axes of its batches.
_MOST_COPIED, _BATCH_AXES = 1 << 24, 5


def _device_matmul(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """Where the batches of a side repeat in part, a copy is made of it, which has to stay small."""
    a, b = types[0], types[1]
    if a is None or b is None or a.shape is None or b.shape is None:
        return tr("the shapes are not known")
    dims = [tuple(d for d in t.dims if isinstance(d, int)) for t in (a, b)]
    if not (a.is_static and b.is_static):
        left, right = a.dims[:-2], b.dims[:-2]
        return left == right or {1} >= {*left} or {1} >= {*right} or tr("batches repeat in part")
    batches = Batches.of(*dims)
    each = product(batches.lead) * batches.k
    for side, length in ((batches.left, batches.m), (batches.right, batches.n)):
        small = each * length <= _MOST_COPIED and len(side) <= _BATCH_AXES
        if batches.repeats(side) and not small:
            return tr("batches repeat in part")
    return True


matmul.kernel("cpu", "f32_matmul", accepts_pitch=True, why=tr("dense matrix product"))
gemm.kernel(
    "opencl",
    "gemm",
    dtype="f32,f16",
    when=all_of(
        constant(1, 2), attr("transA", 0), attr("beta", 1.0), rank(2), _bias, _no_constant_matrix
    ),
    why=tr("dense matrix product in registers"),
)
matmul.kernel("opencl", "matmul", dtype="f32,f16", when=_device_matmul, why=tr("matrix product"))


@matmul.samples
def _(draw: Draw) -> Iterator[Sample]:
    for a, b in (
        ((1, 5), (5, 3)), ((7, 9), (9, 16)), ((2, 9, 33), (2, 33, 17)), ((2, 3, 5), (5, 6)),
        ((3, 1, 4, 8), (1, 2, 8, 16)), ((4, 9), (2, 9, 5)), ((9,), (9, 4)), ((3, 9), (9,)),
        ((2, 3, 1, 7), (1, 3, 7, 5)), ((2, 4, 3, 7), (2, 1, 7, 5)), ((9,), (9,)),
        ((2, 1, 3, 1, 8), (1, 2, 1, 8, 4)), ((2, 3, 4, 7), (7, 5)), ((3, 9), (2, 9, 4)),
    ):  # fmt: skip
        yield Sample([draw(*a), draw(*b)])
    yield Sample([draw(3, 17), draw(17, 19)], {"activation": "Relu"})


@gemm.samples
def _(draw: Draw) -> Iterator[Sample]:
    for m, n in ((1, 15), (7, 16), (9, 17), (8, 3), (40, 65)):
        a, b, c = draw(m, 19), draw.weights(19, n), draw.f32(n)
        yield Sample([a, b, c], constant=(1, 2))
        yield Sample([a, draw.weights(n, 19)], {"transB": 1, "alpha": 0.5}, constant=(1,))
        yield Sample([a, b, c], {"activation": "Relu"}, constant=(1, 2))
    for m, k, n in ((16, 40, 33), (70, 64, 48)):
        few = draw.weights(k, n) * (draw.ints(0, 5, k, n) == 0)
        yield Sample([draw(m, k), few.astype(np.float32), draw.f32(n)], constant=(1, 2))
        residual = draw(m, n)
        yield Sample([draw(m, k), few.astype(np.float32), draw.f32(n), residual], constant=(1, 2))
    yield Sample([draw(5, 9), draw.weights(9, 6), draw.f32(5, 6)], constant=(1, 2))
    yield Sample([draw(5, 9), draw.weights(9, 6), draw.scalar(1)], constant=(1, 2))
    a, b = draw(5, 9), draw.weights(9, 6)
    yield Sample([a, b, draw.f32(5, 6)], constant=(1,))
    yield Sample([a, b, draw.f32(1)], {"beta": 0.5}, constant=(1, 2))
    for m, n, act in ((1, 6, ""), (7, 16, ""), (40, 65, "Relu")):
        a, b, residual = draw(m, 19), draw.weights(19, n), draw(m, n)
        given = {"activation": act} if act else {}
        yield Sample([a, b, draw.f32(n), residual], given, constant=(1, 2))
        yield Sample([a, b, None, residual], given, constant=(1,))
