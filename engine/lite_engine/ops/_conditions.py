"""Conditions of kernels, as small functions to combine: each answers True, or why not.

op.kernel("cpu", "f32_gemm", when=all_of(constant(1), attr("transA", 0)))
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lite_messages import tr

from ..ir import DType, Node, TypeInfo
from ._core import get_op

Types = list[TypeInfo | None]
Condition = Callable[[Node, Types], bool | str]


def all_of(*conditions: Condition) -> Condition:
    """The first reason of those that do not hold."""

    def check(node: Node, types: Types) -> bool | str:
        for condition in conditions:
            answer = condition(node, types)
            if answer is not True:
                return answer
        return True

    return check


def rank(*ranks: int) -> Condition:
    """The first input has one of these ranks."""

    def check(node: Node, types: Types) -> bool | str:
        x = types[0]
        if x is not None and x.shape is not None and len(x.shape) in ranks:
            return True
        return tr("its rank is not {ranks}", ranks=" or ".join(map(str, ranks)))

    return check


def within_frames(node: Node, types: Types) -> bool | str:
    """The window has one or two axes, or three of which depth, the first, does nothing: then the
    frames of all depths are images."""
    x = types[0]
    if x is None or x.rank not in (3, 4, 5):
        return tr("its rank is not {ranks}", ranks="3, 4 or 5")
    if x.rank < 5:
        return True
    filled = get_op(node.op).filled_attrs(node)
    kernel = [*filled["kernel_shape"]] or _window_of_weight(node, types)
    steps = [filled["strides"][:1] or [1], filled["dilations"][:1] or [1]]
    depth = (kernel[:1], steps, filled["pads"][::3] or [0, 0])
    return depth == ([1], [[1], [1]], [0, 0]) or tr("its window spans depth")


def _window_of_weight(node: Node, types: Types) -> list[int]:
    weight = types[get_op(node.op).inputs.index("w")]
    return [int(d or 0) for d in weight.dims[2:]] if weight is not None else []  # type: ignore[call-overload]


def constant(*indices: int) -> Condition:
    """These inputs are constants, or absent."""

    def check(node: Node, types: Types) -> bool | str:
        for i in indices:
            info = types[i] if i < len(types) else None
            if info is not None and not info.is_const:
                return tr(
                    "its {input_name} is computed, not constant",
                    input_name=get_op(node.op).input_name(i),
                )
        return True

    return check


def absent(*indices: int) -> Condition:
    """These optional inputs are not given."""

    def check(node: Node, types: Types) -> bool | str:
        for i in indices:
            if i < len(types) and types[i] is not None:
                return tr("it has {input_name}", input_name=get_op(node.op).input_name(i))
        return True

    return check


def of_type(*indices: int, dtype: str = "f32") -> Condition:
    """These inputs have one of the element types, or are absent."""
    wanted = {DType(d) for d in dtype.split(",")}

    def check(node: Node, types: Types) -> bool | str:
        for i in indices:
            info = types[i] if i < len(types) else None
            if info is not None and info.dtype not in wanted:
                return tr(
                    "its {input} is {type}", input=get_op(node.op).input_name(i), type=info.dtype
                )
        return True

    return check


def has_elements(index: int) -> Condition:
    """This input has elements, or the result has none: kernels divide by its sizes."""

    def check(node: Node, types: Types) -> bool | str:
        info = types[index]
        empty = info is not None and 0 in info.dims and 0 not in (node.output.shape or ())
        name = get_op(node.op).input_name(index)
        return not empty or tr("its input {input} is empty", input=name)

    return check


def byte_output(node: Node, types: Types) -> bool | str:
    """The output is i8 or u8."""
    return node.output.dtype in (DType.I8, DType.U8) or tr(
        "its output is {dtype}", dtype=node.output.dtype
    )


def separate_axes(node: Node, types: Types) -> bool | str:
    """At most six axes: what the kernels of a device walk."""
    ranks = [len(t.shape) for t in types if t is not None and t.shape is not None]
    return all(r <= 6 for r in ranks) or tr("more than six axes")


def one_output(node: Node, types: Types) -> bool | str:
    if len(node.outputs) == 1:
        return True
    return tr("its output {outputs} is used", outputs=get_op(node.op).outputs[1])


def attr(name: str, *values: Any) -> Condition:
    """The attribute (default filled in) is one of these."""

    def check(node: Node, types: Types) -> bool | str:
        given = get_op(node.op).filled_attrs(node)[name]
        return given in values or tr("{attribute} is {value}", attribute=name, value=given)

    return check
