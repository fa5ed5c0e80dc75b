"""A node of the file while it is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...ir import Value

#: A constant that a node of the file needs although the file has none is named after the node.
Emit = Callable[..., Value]


@dataclass
class Call:
    """One node being read."""

    op: str
    inputs: list[Value | None]
    outputs: list[Value]
    attrs: dict[str, Any]
    label: str
    domain: str
    version: int
    #: Constants of narrow integers in the whole model → 8-bit ones.
    wider: dict[Value, Value] = field(default_factory=dict)
    _constants: dict[tuple[object, ...], Value] = field(default_factory=dict)

    def input(self, index: int) -> Value | None:
        return self.inputs[index] if index < len(self.inputs) else None

    def set_input(self, index: int, value: Value | None) -> None:
        self.inputs += [None] * (index + 1 - len(self.inputs))
        self.inputs[index] = value

    def constant(self, key: str, array: Any, dtype: Any = np.int64) -> Value:
        """A constant named after this node and what it is for: one, however often it is asked for,
        as no two values may have one name."""
        out = self.outputs[0].name if self.outputs else self.label
        const = np.asarray(array, dtype)
        name = f"{out}.{key}"
        same = (name, const.dtype.str, const.shape, const.tobytes())
        return self._constants.setdefault(same, Value(name, const=const))

    def rank(self, index: int = 0) -> int | None:
        value = self.input(index)
        return None if value is None or value.shape is None else len(value.shape)

    def to_input(self, key: str, index: int, dtype: Any = np.int64) -> None:
        """An attribute that became an input."""
        if key in self.attrs:
            self.set_input(index, self.constant(key, self.attrs.pop(key), dtype))
