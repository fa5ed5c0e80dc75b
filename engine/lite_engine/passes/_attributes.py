"""Attributes in patterns: what they must be, and words that stand for them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lite_messages import tr

from ..ir import Node
from ..ops import find_op

#: Numbers count as equal when they differ by less than this, relatively.
NUMBER_TOLERANCE = 1e-4
#: What ONNX takes for each element of a list that a node leaves out.
_LEFT_OUT = {"strides": 1, "dilations": 1, "pads": 0}
_ORDERS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


@dataclass(frozen=True)
class A:
    """An attribute, bound to a word ("": to none), where its value fits all of `conditions`:
    values, predicates or comparisons."""

    name: str
    conditions: Sequence[Any] = ()


@dataclass(frozen=True)
class Comparison:
    """A condition for attributes: one of `= != < <= > >=` and a number, a text or a list. One
    number is compared with every element of a list."""

    sign: str
    wanted: Any

    def __call__(self, value: Any) -> bool:
        if self.sign in _ORDERS:
            values = value if isinstance(value, (list, tuple)) else [value]
            return len(values) > 0 and all(
                isinstance(v, (int, float)) and _ORDERS[self.sign](v, self.wanted) for v in values
            )
        each = isinstance(value, (list, tuple)) and not isinstance(self.wanted, (list, tuple))
        values = value if each else [value]
        same = len(values) > 0 and all(fits(v, self.wanted) for v in values)
        return same == (self.sign == "=")


def check_names(ops: Sequence[str], names: Mapping[str, Any]) -> None:
    """Raises ValueError for an attribute that one of the operators does not have."""
    for op in filter(None, map(find_op, ops)):
        for name in names:
            if name not in op.attrs:
                has = ", ".join(op.attrs) or tr("none")
                raise ValueError(
                    tr(
                        "{name} has no attribute {unknown!r} (it has: {attrs})",
                        name=op.name, unknown=name, attrs=has,
                    )
                )  # fmt: skip


def bound_attributes(
    wanted: Mapping[str, Any], node: Node, bound: Mapping[str, Any]
) -> dict[str, Any] | None:
    """`bound` with the words for this node's attributes, None where one does not fit."""
    found = dict(bound)
    for name, condition in wanted.items():
        value = _attribute(node, name)
        conditions = condition.conditions if isinstance(condition, A) else [condition]
        if not all(fits(_seen(name, value, c), c) for c in conditions):
            return None
        if isinstance(condition, A) and condition.name:
            if value is None or (
                condition.name in found and not fits(value, found[condition.name])
            ):
                return None
            found[condition.name] = value
    return found


def _attribute(node: Node, name: str) -> Any:
    """What the node has, or the operator's default; None where there is neither, and for graphs."""
    op = find_op(node.op)
    value = node.attrs.get(name, op.attrs.get(name) if op else None)
    return value if isinstance(value, (int, float, str, list, tuple)) else None


def _seen(name: str, value: Any, condition: Any) -> Any:
    """A list that is left out as ONNX reads it, as long as the one that it is compared with."""
    if value or not isinstance(value, (list, tuple)) or name not in _LEFT_OUT:
        return value
    wanted = condition.wanted if isinstance(condition, Comparison) else condition
    return [_LEFT_OUT[name]] * (len(wanted) if isinstance(wanted, (list, tuple)) else 1)


def fits(value: Any, wanted: Any) -> bool:
    """Is it the wanted value, or does the predicate accept it? Lists are compared element by
    element; numbers within NUMBER_TOLERANCE, since files hold them in single precision."""
    if callable(wanted):
        return bool(wanted(value))
    if isinstance(wanted, (list, tuple)):
        is_list = isinstance(value, (list, tuple)) and len(value) == len(wanted)
        return is_list and all(map(fits, value, wanted))
    if isinstance(wanted, (int, float)) and isinstance(value, (int, float)):
        return abs(value - wanted) <= NUMBER_TOLERANCE * max(abs(wanted), 1e-9)
    return bool(value == wanted)
