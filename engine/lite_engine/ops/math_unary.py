"""Elementwise functions of one input that are not activations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..ir import DType, TypeInfo
from ._core import OpDef, define_op, get_op
from ._helpers import same_type
from ._unary import unary

erf = np.vectorize(math.erf, otypes=[np.float64])


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


unary("Abs", np.abs, "ONNX Abs-13", opencl="fabs(x)")
unary("Neg", np.negative, "ONNX Neg-13", opencl="(-(x))")
unary("Exp", np.exp, "ONNX Exp-13", opencl="exp(x)", flops=10)
unary("Log", np.log, "ONNX Log-13", opencl="log(x)", flops=10)
unary("Expm1", np.expm1, "NumPy expm1: y = eˣ − 1, exact near 0", opencl="expm1(x)", flops=12)
unary("Log1p", np.log1p, "NumPy log1p: y = ln(1 + x), exact near 0", opencl="log1p(x)", flops=12)
unary("Log2", np.log2, "NumPy log2", opencl="log2(x)", flops=10)
unary("Log10", np.log10, "NumPy log10", opencl="log10(x)", flops=10)
unary("Sqrt", np.sqrt, "ONNX Sqrt-13", opencl="sqrt(x)", flops=4)
unary("Rsqrt", lambda x: 1 / np.sqrt(x), "TFLite RSQRT: y = 1/√x", opencl="rsqrt(x)", flops=5)
unary("Square", np.square, "TFLite SQUARE: y = x²", opencl="((x)*(x))")
unary("Reciprocal", _reciprocal, "ONNX Reciprocal-13", opencl="(1.0f/(x))", flops=4)
unary("Floor", np.floor, "ONNX Floor-13", opencl="floor(x)")
unary("Ceil", np.ceil, "ONNX Ceil-13", opencl="ceil(x)")
unary("Round", np.rint, "ONNX Round-22: half to even", opencl="rint(x)")
unary("Trunc", np.trunc, "NumPy trunc: towards zero", opencl="trunc(x)")
unary("Sign", np.sign, "ONNX Sign-13", opencl="((x)!=(x)?(x):sign(x))")
unary("Erf", erf, "ONNX Erf-13", opencl="erf(x)", flops=14)
unary("Sin", np.sin, "ONNX Sin-22", opencl="sin(x)", flops=12)
unary("Cos", np.cos, "ONNX Cos-22", opencl="cos(x)", flops=12)
unary("Tan", np.tan, "ONNX Tan-22", opencl="tan(x)", flops=16)
unary("Asin", np.arcsin, "ONNX Asin-22", opencl="asin(x)", flops=16)
unary("Acos", np.arccos, "ONNX Acos-22", opencl="acos(x)", flops=16)
unary("Atan", np.arctan, "ONNX Atan-22", opencl="atan(x)", flops=16)
unary("Sinh", np.sinh, "ONNX Sinh-22", opencl="sinh(x)", flops=16)
unary("Cosh", np.cosh, "ONNX Cosh-22", opencl="cosh(x)", flops=16)
unary("Asinh", np.arcsinh, "ONNX Asinh-22", opencl="asinh(x)", flops=16)
unary("Acosh", np.arccosh, "ONNX Acosh-22", opencl="acosh(x)", flops=16)
unary("Atanh", np.arctanh, "ONNX Atanh-22", opencl="atanh(x)", flops=16)

_bitwise_not = define_op(
    "BitwiseNot", inputs="x", layout="elementwise", source="ONNX BitwiseNot-18"
)
_bitwise_not.infer(same_type)
_bitwise_not.reference(np.invert)
for _name in ("Abs", "Neg", "Sign", "Square", "BitwiseNot"):
    _types = "f16,bf16,f64,i8,u8,i16,u16,i32,u32,i64"
    get_op(_name).kernel("cpu", "any_unary", dtype=_types, rank=1)

_test("Not", np.logical_not, "ONNX Not-1")
_test("IsNaN", np.isnan, "ONNX IsNaN-20")
_test("IsInf", _is_inf, "ONNX IsInf-20", detect_negative=1, detect_positive=1)
