"""Elementwise functions of one input that are not activations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir import DType, TypeInfo
from ._core import Cost, OpDef, define_op
from ._helpers import float_kernels, same_type, typed

erf = np.vectorize(math.erf, otypes=[np.float64])


#: Functions that the OpenCL kernel has.
_ON_DEVICE = (
    "Abs",
    "Neg",
    "Exp",
    "Log",
    "Sqrt",
    "Reciprocal",
    "Floor",
    "Ceil",
    "Round",
    "Sign",
    "Erf",
    "Sin",
    "Cos",
)


def _unary(
    name: str,
    fn: Callable[..., Any],
    source: str,
    *,
    flops: int = 1,
    native: bool = False,
    **attrs: Any,
) -> OpDef:
    op = define_op(name, inputs="x", attrs=attrs, layout="elementwise", source=source)
    op.infer(same_type)
    op.reference(typed(fn))
    op.cost(lambda x, **_: Cost(flops=flops * x.size))
    if native:
        float_kernels(op, "unary", accepts_pitch=True, in_place=True)
        if name in _ON_DEVICE:
            op.kernel("opencl", "unary", dtype="f32,f16")
    if name in ("Abs", "Neg", "Sign", "BitwiseNot"):
        op.kernel("cpu", "any_unary", dtype="f16,bf16,f64,i8,u8,i16,u16,i32,u32,i64", rank=1)
    return op


def _test(name: str, fn: Callable[..., Any], source: str, **attrs: Any) -> OpDef:
    """A function whose result is bool."""
    op = define_op(name, inputs="x", attrs=attrs, layout="elementwise", source=source)
    op.infer(lambda x, **_: TypeInfo(DType.BOOL, x.shape))
    op.reference(fn)
    op.kernel("cpu", "any_unary", dtype="bool" if name == "Not" else "f32,f16,bf16,f64")
    return op


def _reciprocal(x: np.ndarray) -> np.ndarray:
    """y = 1 / x"""
    return np.asarray(1, x.dtype) / x


def _is_inf(x: np.ndarray, *, detect_negative: int, detect_positive: int) -> np.ndarray:
    """y = x is an infinity of a wanted sign"""
    return np.isinf(x) & ((x < 0) & bool(detect_negative) | (x > 0) & bool(detect_positive))


_unary("Abs", np.abs, "ONNX Abs-13", native=True)
_unary("Neg", np.negative, "ONNX Neg-13", native=True)
_unary("Exp", np.exp, "ONNX Exp-13", flops=10, native=True)
_unary("Log", np.log, "ONNX Log-13", flops=10, native=True)
_unary("Sqrt", np.sqrt, "ONNX Sqrt-13", flops=4, native=True)
_unary("Reciprocal", _reciprocal, "ONNX Reciprocal-13", flops=4, native=True)
_unary("Floor", np.floor, "ONNX Floor-13", native=True)
_unary("Ceil", np.ceil, "ONNX Ceil-13", native=True)
_unary("Round", np.rint, "ONNX Round-22: half to even", native=True)
_unary("Sign", np.sign, "ONNX Sign-13", native=True)
_unary("Erf", erf, "ONNX Erf-13", flops=14, native=True)
_unary("Sin", np.sin, "ONNX Sin-22", flops=12, native=True)
_unary("Cos", np.cos, "ONNX Cos-22", flops=12, native=True)
_unary("Tan", np.tan, "ONNX Tan-22", flops=16, native=True)
_unary("Asin", np.arcsin, "ONNX Asin-22", flops=16, native=True)
_unary("Acos", np.arccos, "ONNX Acos-22", flops=16, native=True)
_unary("Atan", np.arctan, "ONNX Atan-22", flops=16, native=True)
_unary("Sinh", np.sinh, "ONNX Sinh-22", flops=16, native=True)
_unary("Cosh", np.cosh, "ONNX Cosh-22", flops=16, native=True)
_unary("Asinh", np.arcsinh, "ONNX Asinh-22", flops=16, native=True)
_unary("Acosh", np.arccosh, "ONNX Acosh-22", flops=16, native=True)
_unary("Atanh", np.arctanh, "ONNX Atanh-22", flops=16, native=True)
_unary("BitwiseNot", np.invert, "ONNX BitwiseNot-18")
_unary("Square", np.square, "TFLite SQUARE: y = x²", native=True)
_unary("Rsqrt", lambda x: 1 / np.sqrt(x), "TFLite RSQRT: y = 1/√x", flops=5, native=True)
_test("Not", np.logical_not, "ONNX Not-1")
_test("IsNaN", np.isnan, "ONNX IsNaN-20")
_test("IsInf", _is_inf, "ONNX IsInf-20", detect_negative=1, detect_positive=1)
