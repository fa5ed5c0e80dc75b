"""Optionals of tensors: an input that may be absent, and whether it is there."""

from __future__ import annotations

import numpy as np

from ..ir import DType, TypeInfo
from ._core import define_op

has_element = define_op("OptionalHasElement", inputs="x?", source="ONNX OptionalHasElement-18")
has_element.infer(lambda x: TypeInfo(DType.BOOL, ()))


@has_element.reference
def _(x: np.ndarray | None) -> np.ndarray:
    """Whether x is given"""
    return np.array(x is not None)


get_element = define_op("OptionalGetElement", inputs="x", source="ONNX OptionalGetElement-18")
get_element.infer(lambda x: x)


@get_element.reference
def _(x: np.ndarray) -> np.ndarray:
    """x"""
    return x
