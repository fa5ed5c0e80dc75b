"""MatMulNBits: a matrix product with constant weights of 2, 4 or 8 bits, scaled in groups.

The weights stay packed in memory: kernels widen a few columns at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Node, TypeInfo
from ._conditions import absent, all_of, attr, constant, of_type
from ._core import REQUIRED, define_op
from ._helpers import product, wide
from ._records import Cost
from ._samples import Draw, Sample
from .activation import FUSED, apply_activation

Array = np.ndarray

matmul_nbits = define_op(
    "MatMulNBits",
    inputs="a b scales zero_points? g_idx? bias?",
    packed_inputs=("b", "scales", "zero_points", "g_idx", "bias"),
    attrs={
        "K": REQUIRED, "N": REQUIRED, "bits": 4, "block_size": REQUIRED, "accuracy_level": 0,
        "weight_prepacked": 0, **FUSED,
    },
    blocks=True,
    source="com.microsoft MatMulNBits-1; activation is ours",
)  # fmt: skip


def pack_bits(q: Array, bits: int) -> Array:
    """Unsigned numbers (…, n) → u8 (…, ⌈n·bits/8⌉), the first in the lowest bits of a byte."""
    per_byte = 8 // bits
    padded = np.pad(q, [(0, 0)] * (q.ndim - 1) + [(0, -q.shape[-1] % per_byte)])
    parts = padded.reshape(*q.shape[:-1], -1, per_byte).astype(np.uint8)
    return np.bitwise_or.reduce(parts << (np.arange(per_byte, dtype=np.uint8) * bits), axis=-1)


def unpack_bits(packed: Array, bits: int) -> Array:
    """u8 (…, bytes) → u8 (…, bytes·8/bits); the inverse of `pack_bits`, up to its padding."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = (packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return parts.reshape(*packed.shape[:-1], -1)


def group_count(k: int, block_size: int) -> int:
    return -(-k // block_size)


@matmul_nbits.infer
def _(
    a: TypeInfo, b: TypeInfo, scales: TypeInfo, zeros: TypeInfo | None, order: TypeInfo | None,
    bias: TypeInfo | None, *, K: int, N: int, bits: int, block_size: int, **_: Any,
) -> TypeInfo:  # fmt: skip
    if bits not in (2, 4, 8):
        raise ShapeError(tr("weights must have 2, 4 or 8 bits, got {bits}", bits=bits))
    if K < 1 or N < 1 or block_size < 8 // bits or block_size * bits % 8:
        raise ShapeError(
            tr("K {k}, N {n} and block_size {size} do not fit", k=K, n=N, size=block_size)
        )
    if not a.dims or (isinstance(a.dims[-1], int) and a.dims[-1] != K):
        raise ShapeError(tr("the last axis of a must have size {k}", k=K))
    groups = group_count(K, block_size)
    wanted = {"b": N * groups * block_size * bits // 8, "scales": N * groups}
    for name, info in (("b", b), ("scales", scales)):
        if info.is_static and info.size != wanted[name]:
            raise ShapeError(
                tr(
                    "expected {wanted} values in {name}, found {found}",
                    wanted=wanted[name],
                    name=name,
                    found=info.size,
                )
            )
    if bias is not None and bias.is_static and bias.size != N:
        raise ShapeError(tr("expected {n} values in bias, found {found}", n=N, found=bias.size))
    return a.with_shape((*a.dims[:-1], N))


def dequantize_nbits(
    b: Array, scales: Array, zeros: Array | None, order: Array | None,
    *, K: int, N: int, bits: int, block_size: int,
) -> Array:  # fmt: skip
    """(N,K) float32: w[n,k] = (q[n,k] − z[n,g])·s[n,g] with g = k // block_size, or g_idx[k]"""
    groups = group_count(K, block_size)
    q = unpack_bits(b.reshape(N, groups, -1), bits).reshape(N, -1)[:, :K]
    s = scales.reshape(N, groups).astype(np.float32)
    z = zero_points(zeros, bits=bits, shape=(N, groups))
    at = np.arange(K) // block_size if order is None else order[:K].astype(np.int64)
    if order is not None and (at.min(initial=0) < 0 or at.max(initial=0) >= groups):
        raise ShapeError(tr("g_idx names a group that does not exist"))
    return np.asarray((q.astype(np.float32) - z[:, at]) * s[:, at])


def zero_points(zeros: Array | None, *, bits: int, shape: tuple[int, int]) -> Array:
    """(N, groups) float32: 2^(bits−1) when there are none, else packed u8 rows, or floats."""
    if zeros is None:
        return np.full(shape, 1 << (bits - 1), np.float32)
    if zeros.dtype != np.uint8:
        return zeros.reshape(shape).astype(np.float32)
    return unpack_bits(zeros.reshape(shape[0], -1), bits)[:, : shape[1]].astype(np.float32)


@matmul_nbits.reference
def _(
    a: Array, b: Array, scales: Array, zeros: Array | None, order: Array | None,
    bias: Array | None, *, K: int, N: int, bits: int, block_size: int, activation: str,
    activation_params: list[float], **_: Any,
) -> Array:  # fmt: skip
    """y = activation(a·Wᵀ + bias), W of `dequantize_nbits`; a (…,K) → (…,N)"""
    w = dequantize_nbits(b, scales, zeros, order, K=K, N=N, bits=bits, block_size=block_size)
    y = np.matmul(wide(a), w.T)
    y = y if bias is None else y + wide(bias)
    return apply_activation(activation, activation_params, y).astype(a.dtype, copy=False)


@matmul_nbits.cost
def _(a: TypeInfo, *_: Any, K: int, N: int, **__: Any) -> Cost:
    return Cost(macs=product(a.dims) * N)


def _packed_zeros(node: Node, types: list[TypeInfo | None]) -> bool | str:
    zeros = types[3] if len(types) > 3 else None
    return zeros is None or str(zeros.dtype) == "u8" or tr("its zero points are floats")


_FOUR_BITS = all_of(
    attr("bits", 4), attr("weight_prepacked", 0), of_type(1, dtype="u8"), of_type(2),
    constant(1, 2, 3, 5), absent(4), _packed_zeros,
)  # fmt: skip

matmul_nbits.kernel(
    "cpu",
    "f32_matmul_nbits",
    when=_FOUR_BITS,
    why=tr("4-bit weights, widened a panel at a time"),
)

matmul_nbits.kernel(
    "opencl",
    "matmul_nbits",
    dtype="f32,f16",
    when=_FOUR_BITS,
    why=tr("4-bit weights, widened as they are read"),
)


@matmul_nbits.samples
def _(draw: Draw) -> Iterator[Sample]:
    for rows, k, n, size, zeros, bias, activation in (
        ((1,), 32, 16, 32, False, False, ""),
        ((3,), 70, 33, 32, True, True, "Relu"),
        ((2, 7), 128, 65, 64, True, False, "Gelu"),
        ((40,), 200, 31, 16, False, True, ""),
        ((1, 1), 256, 48, 128, True, True, "Silu"),
    ):
        groups = group_count(k, size)
        inputs: list[Array | None] = [
            draw(*rows, k),
            draw.ints(0, 256, n, groups, size // 2, dtype=np.uint8),
            np.abs(draw.f32(n, groups)) / np.float32(8),
            draw.ints(0, 256, n, -(-groups // 2), dtype=np.uint8) if zeros else None,
            None,
            draw.f32(n) if bias else None,
        ]
        attrs = {"K": k, "N": n, "block_size": size, "activation": activation}
        yield Sample(inputs, attrs, constant=(1, 2, 3, 5))
