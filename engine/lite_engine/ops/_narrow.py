"""Types that are storage only: bf16, floats of 8 and 4 bits, integers of 4 and 2.

References compute on their numbers, `widened`, and what they give is rounded back, `narrowed`.
Sources: the OCP specifications "8-bit Floating Point" (2023) and "Microscaling Formats" (2023);
Noune and others 2022, arXiv:2206.02915 (the types without a negative zero, `fnuz`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..ir import DType, Node
from ..ir.bfloat16 import bf16_to_f32, f32_to_bf16
from ..ir.dtype import BITS


@dataclass(frozen=True)
class Format:
    """A float of sign, exponent and mantissa bits. `nans` and `infinity` are codes without sign."""

    exponent: int
    mantissa: int
    bias: int
    nans: tuple[int, ...] = ()
    infinity: int | None = None
    signed: bool = True
    #: 1000… is NaN, and there is no negative zero
    unsigned_zero: bool = False


FORMATS = {
    DType.F8E4M3FN: Format(4, 3, 7, nans=(0x7F,)),
    DType.F8E4M3FNUZ: Format(4, 3, 8, unsigned_zero=True),
    DType.F8E5M2: Format(5, 2, 15, nans=(0x7D, 0x7E, 0x7F), infinity=0x7C),
    DType.F8E5M2FNUZ: Format(5, 2, 16, unsigned_zero=True),
    DType.F8E8M0: Format(8, 0, 127, nans=(0xFF,), signed=False),
    DType.F4E2M1: Format(2, 1, 1),
}


@functools.cache
def _values(dtype: DType) -> np.ndarray:
    """The number of every code without sign, f32; NaN where there is none."""
    f = FORMATS[dtype]
    codes = np.arange(1 << (f.exponent + f.mantissa))
    exponent, fraction = codes >> f.mantissa, (codes & ((1 << f.mantissa) - 1)) / (1 << f.mantissa)
    if f.signed:
        tiny = exponent == 0
        numbers = (fraction + ~tiny) * 2.0 ** (np.maximum(exponent, 1) - f.bias)
    else:
        numbers = 2.0 ** (exponent - float(f.bias))
    numbers[list(f.nans)] = np.nan
    if f.infinity is not None:
        numbers[f.infinity] = np.inf
    return numbers.astype(np.float32)


def decode(codes: np.ndarray, dtype: DType) -> np.ndarray:
    """Codes held as uint8 → float32."""
    f, values = FORMATS[dtype], _values(dtype)
    if not f.signed:
        return values[codes]
    top = values.size
    y = np.where(codes & top, -1, 1).astype(np.float32) * values[codes & (top - 1)]
    return np.where(codes == top, np.float32(np.nan), y) if f.unsigned_zero else y


def encode(
    x: np.ndarray, dtype: DType, *, saturate: bool = True, rounding: str = "nearest"
) -> np.ndarray:
    """Numbers → codes in uint8, rounded half to even, or `up` or `down` in magnitude.

    What is too large becomes the largest number; without `saturate` infinity, or NaN where there is
    none. A type without NaN takes it as 0, as ml_dtypes does.
    """
    f, values = FORMATS[dtype], _values(dtype)
    finite = values[np.isfinite(values)]
    size = np.abs(x.astype(np.float32))
    if rounding == "nearest":
        between = (finite[1:].astype(np.float64) + finite[:-1]) / 2
        code = np.searchsorted(between, size, "left")
        tie = (code < between.size) & (size == between[np.minimum(code, between.size - 1)])
        code = code + (tie & (code % 2 == 1))
        limit = float(finite[-1]) + float(finite[-1] - finite[-2]) / 2
        large = size >= limit if finite.size % 2 == 0 else size > limit  # half to even
    else:
        code = np.searchsorted(finite, size, "left" if rounding == "up" else "right")
        code = np.clip(code - (rounding == "down"), 0, finite.size - 1)
        large = size > finite[-1]
    nan = f.nans[-1] if f.nans else 0
    if not saturate and (f.nans or f.infinity is not None):
        code = np.where(large, nan if f.infinity is None else f.infinity, code)
    code = np.where(np.isnan(x), nan, code)
    if not f.signed:
        return code.astype(np.uint8)
    out = np.where(np.signbit(x), code + values.size, code)
    if f.unsigned_zero:
        lost = np.isnan(x) | (large & (not saturate))
        out = np.where(lost, values.size, np.where(code == 0, 0, out))
    return out.astype(np.uint8)


def wrapped(x: np.ndarray, dtype: DType) -> np.ndarray:
    """Integers modulo 2 to the bits of a narrow type."""
    bits = BITS[dtype]
    low = x.astype(np.int64) & ((1 << bits) - 1)
    if dtype.np.kind == "i":
        low = np.where(low >> (bits - 1), low - (1 << bits), low)
    return low.astype(dtype.np)


def widened(node: Node, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray | None]:
    """References never see the bits of floats: such inputs become float32."""
    out: list[np.ndarray | None] = []
    for array, value in zip(arrays, node.inputs):
        dtype = None if value is None else value.dtype
        if array is None or dtype is None:
            out.append(array)
        elif dtype is DType.BF16:
            out.append(bf16_to_f32(array))
        else:
            out.append(decode(array, dtype) if dtype in FORMATS else array)
    return out


def narrowed(node: Node, outs: list[np.ndarray]) -> list[np.ndarray]:
    """Outputs that are declared as one of these types are rounded to it."""
    made = []
    for array, value in zip(outs, node.outputs):
        if array.dtype.kind == "f" and value.dtype is DType.BF16:
            array = f32_to_bf16(array)
        elif array.dtype.kind == "f" and value.dtype in FORMATS:
            array = encode(array, value.dtype)
        made.append(array)
    return [*made, *outs[len(made) :]]
